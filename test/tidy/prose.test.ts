/** The style of the documents: short sentences. */
import { describe, expect, it } from 'vitest';
import { ninetiethPercentile, sentencesOf, wordsOf } from './prose.ts';
import { filesUnder, textOf } from './tree.ts';

/** The maximum number of words in nine of ten sentences of a document, and in its longest sentence. */
const P90_MAX_WORDS = 30;
const MAX_WORDS = 45;

const documents = filesUnder('').filter(
  (path) => path.endsWith('.md') && !path.startsWith('data/') && !path.startsWith('test/'),
);

/** The maximum number of words in a line of the changelog, which a reader should finish in minutes. */
const CHANGE_MAX_WORDS = 55;

describe('CHANGELOG.md', () => {
  const areas = textOf('CHANGELOG.md')
    .split(/^## /m)
    .slice(1)
    .flatMap((version) => version.split(/^### /m));
  const changesOf = (area: string): string[] =>
    area
      .split(/\n(?=- )/)
      .slice(1)
      .map((change) => change.split(/\n\s*\n/)[0] ?? '');

  it('has its lines below the names of areas', () => {
    const heads = areas.filter((area) => /^(?:Unreleased|\d)/.test(area));
    expect(heads.length).toBeGreaterThan(0);
    expect(heads.flatMap(changesOf)).toEqual([]);
  });

  it('has short lines', () => {
    const changes = areas.flatMap(changesOf);
    expect(changes.length).toBeGreaterThan(20);
    expect(changes.filter((change) => wordsOf(change) > CHANGE_MAX_WORDS)).toEqual([]);
  });
});

describe('sentences', () => {
  it('are found in paragraphs and lists, not in code, tables and headings', () => {
    const text =
      '# A heading.\n\nOne `a.b c` two.\nThree four! Five: six\n\n| a. b. c | d |\n\n```\ncode. more.\n```\n- item. [seven](x.md)\n- eight\n';
    expect(sentencesOf(text)).toEqual(['One _a_b_c_ two.', 'Three four!', 'Five:', 'six', 'item.', '[seven]', 'eight']);
    expect(sentencesOf(text).map(wordsOf)).toEqual([3, 2, 1, 1, 1, 1, 1]);
    expect(ninetiethPercentile([1, 2, 3, 4, 5, 6, 7, 8, 9, 40])).toBe(9);
  });

  it.each(documents)('of %s are short', (path) => {
    const sentences = sentencesOf(textOf(path));
    const long = sentences.filter((sentence) => wordsOf(sentence) > MAX_WORDS);
    expect(long).toEqual([]);
    expect(ninetiethPercentile(sentences.map(wordsOf))).toBeLessThanOrEqual(P90_MAX_WORDS);
  });
});
