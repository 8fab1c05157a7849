import { describe, expect, it } from 'vitest';
import type { Index } from '../../src/index/read.ts';
import { AnswerWriter } from '../../src/server/request/answer-body.ts';

const VERDICT = { verdict: 'allow', layer: 'default', id: 'classified_read', note: 'A "note".' } as const;
// A domain that is not found needs only the sizes of the index.
const index = { info: { maxAnswerSizeBytes: 1_000 } } as Index;
const text = (quota: number): string =>
  `{"domain":"unknown.net","found":false,"page_types":{},"quota_remaining":${quota},"verdict":"allow","matched":` +
  `${JSON.stringify({ layer: 'default', id: 'classified_read', note: 'A "note".' })}}`;

describe('the response writer', () => {
  it('inserts quotas of any number of digits, one after the other', () => {
    const writer = new AnswerWriter();
    const max = Number.MAX_SAFE_INTEGER;
    for (const quota of [100, 99, 10, 9, 1, 0, 9, 10, max, 0, max, max - 1, 123_456]) {
      writer.begin(index, -1, 'unknown.net');
      writer.writeVerdict(VERDICT);
      expect(Buffer.from(writer.finish(quota)).toString()).toBe(text(quota));
    }
  });

  it('quotes the name of a domain that is not found', () => {
    const writer = new AnswerWriter();
    for (const key of ['a"b.com', 'a\\b.com', '[::1]', 'x'.repeat(253)]) {
      writer.begin(index, -1, key);
      writer.writeVerdict(VERDICT);
      expect(JSON.parse(Buffer.from(writer.finish(1)).toString())).toMatchObject({ domain: key, found: false });
    }
  });
});
