/** Sentences of the documents, for the tests that hold them short. */

/** Marks inside code do not end a sentence. */
const asOneWord = (code: string): string => code.replaceAll(/[^\w]/g, '_');

/** The sentences of a Markdown text outside code blocks, tables and headings. Items of a list are texts of their own; a colon ends a sentence. */
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

/** How many words a sentence has. */
export function wordsOf(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}_]/u.test(word)).length;
}

/** The length that nine of ten sentences do not exceed. */
export function ninetiethPercentile(lengths: readonly number[]): number {
  const sorted = [...lengths].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.9) - 1] ?? 0;
}
