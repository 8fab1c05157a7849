/** Splits documents into sentences, for the tests that limit their length. */

/** Punctuation inside code does not end a sentence. */
const asOneWord = (code: string): string => code.replaceAll(/[^\w]/g, '_');

/** Returns the sentences of a Markdown text outside code blocks, tables and headings. Each list item is a separate text; a colon ends a sentence. */
export function sentencesOf(markdown: string): string[] {
  const text = markdown
    .replaceAll(/^ *```[\s\S]*?^ *```$/gm, '\n')
    .replaceAll(/^ {4}.*$/gm, '')
    .replaceAll(/<!--[\s\S]*?-->/g, '')
    .replaceAll(/^ *[|#].*$/gm, '\n');
  return text
    .split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )/)
    .map((block) =>
      block
        .replace(/^\s*(?:[-*]|\d+\.) /, '')
        .replaceAll(/\]\([^)]*\)/g, ']')
        .replaceAll(/`[^`]*`/g, asOneWord)
        .replaceAll(/\s+/g, ' ')
        .trim(),
    )
    .flatMap((block) => block.split(/(?<=[.!?:][)"”*]*) (?=\S)/))
    .filter((sentence) => wordsOf(sentence) > 0);
}

/** Returns the number of words in a sentence. */
export function wordsOf(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}_]/u.test(word)).length;
}

/** Returns the length that nine of ten sentences do not exceed. */
export function ninetiethPercentile(lengths: readonly number[]): number {
  const sorted = [...lengths].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.9) - 1] ?? 0;
}
