import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { HashedKey } from '../../src/index/format/key-hash.ts';
import { NO_RECORD, openIndex, openIndexBytes } from '../../src/index/read.ts';
import { verifyIndex } from '../../src/index/verify.ts';
import { bytesInMemory, entryOf, tinyIndexBytes, withTempDirectory, writeTinyIndex } from '../support/tiny-index.ts';

const stripe = entryOf(
  'stripe.com',
  {
    login: 'https://dashboard.stripe.com/login',
    pricing: 'https://stripe.com/pricing',
    docs: 'https://docs.stripe.com/',
    blog: 'http://www.stripe.com/blog?a=\\b&c=%22',
  },
  { language: 'en', iabCategory: 3, filteringCategories: [2, 5], openPageRankHundredths: 706, globalRank: 812 },
);

function answerOf(index: ReturnType<typeof openIndex>, key: string): unknown {
  const out = new Uint8Array(index.info.maxAnswerSizeBytes);
  const handle = index.find(key);
  const end = index.writeTail(handle, out, index.writeHead(handle, out, 0));
  return JSON.parse(Buffer.from(out.subarray(0, end)).toString());
}

describe('an index', () => {
  it('finds what was written, and nothing else', () => {
    const index = openIndexBytes(bytesInMemory(tinyIndexBytes([stripe, entryOf('example.org')])));
    expect(index.info.recordCount).toBe(2);
    expect(index.find('example.com')).toBe(NO_RECORD);
    for (const key of ['', 'strip', 'stripe.co', 'stripe.com.', 'x'.repeat(254), 'strıpe.com'])
      expect(index.find(key)).toBe(NO_RECORD);
    const record = index.decode(index.find('stripe.com'));
    expect(record).toEqual({
      domain: 'stripe.com',
      language: 'en',
      pageTypes: stripe.pageTypes.map(({ type, url }) => ({ type, url })),
      iabCategory: index.info.iab.names[3],
      filteringCategories: [index.info.filtering.names[2], index.info.filtering.names[5]],
      openPageRank: 7.06,
      globalRank: 812,
    });
    expect(index.decode(index.find('example.org'))).toEqual({ domain: 'example.org', pageTypes: [] });
  });

  it('does not match characters whose low bits are those of a key', () => {
    const index = openIndexBytes(bytesInMemory(tinyIndexBytes([stripe])));
    const key = 'stripe.com';
    for (let i = 0; i < key.length; i++) {
      // Bits above a byte could be read as the next character.
      for (const high of [key.charCodeAt(i + 1) || 1, 1, 0x80]) {
        const twin = String.fromCharCode(key.charCodeAt(i) | (high << 8));
        expect(index.find(key.slice(0, i) + twin + key.slice(i + 1))).toBe(NO_RECORD);
      }
      const latin1 = String.fromCharCode(key.charCodeAt(i) | 0x80);
      expect(index.find(key.slice(0, i) + latin1 + key.slice(i + 1))).toBe(NO_RECORD);
    }
  });

  it('does not match a key that is longer or shorter than the record with the same fingerprint', () => {
    const fingerprint = (key: string): number => {
      const hashed = new HashedKey();
      hashed.set(key);
      return hashed.hashB() & 0xff;
    };
    const hosts = Array.from({ length: 20_000 }, (_, i) => `stripe.com.${i}`);
    const longer = hosts.find((host) => fingerprint(host) === fingerprint('stripe.com'))!;
    for (const [stored, wanted] of [
      ['stripe.com', longer],
      [longer, 'stripe.com'],
    ] as const) {
      const index = openIndexBytes(bytesInMemory(tinyIndexBytes([entryOf(stored)], { bucketCount: 1 })));
      expect(index.find(stored)).not.toBe(NO_RECORD);
      expect(index.find(wanted)).toBe(NO_RECORD);
    }
  });

  it('finds a name of maximum length', () => {
    const longest = `${'a23456789.'.repeat(25)}com`;
    const index = openIndexBytes(bytesInMemory(tinyIndexBytes([entryOf(longest)])));
    expect(index.decode(index.find(longest)).domain).toBe(longest);
  });

  it('refuses handles that no record can have', () => {
    const index = openIndexBytes(bytesInMemory(tinyIndexBytes([stripe])));
    for (const handle of [Number.NaN, 2 ** 52, 1024 * 256])
      expect(() => index.decode(handle)).toThrow(expect.objectContaining({ code: 'record_corrupt' }));
  });

  it('renders the same record as JSON bytes', () => {
    const index = openIndexBytes(bytesInMemory(tinyIndexBytes([stripe])));
    expect(answerOf(index, 'stripe.com')).toEqual({
      domain: 'stripe.com',
      found: true,
      language: 'en',
      page_types: Object.fromEntries(stripe.pageTypes.map(({ type, url }) => [type, url])),
      iab_category: index.info.iab.names[3],
      filtering_categories: [index.info.filtering.names[2], index.info.filtering.names[5]],
      open_page_rank: 7.06,
      global_rank: 812,
    });
  });

  it('is one file that can be opened, verified and closed', async () => {
    await withTempDirectory(async (directory) => {
      const path = join(directory, 'tiny.pgx');
      const entries = Array.from({ length: 5000 }, (_, i) =>
        entryOf(`host-${i}.example`, { login: `https://host-${i}.example/login` }),
      );
      writeTinyIndex(path, entries);
      expect(await verifyIndex(path)).toMatchObject({ ok: true, recordCount: 5000, damages: [] });
      const index = openIndex(path);
      for (const { domain } of entries) expect(index.decode(index.find(domain)).domain).toBe(domain);
      index.close();
      index.close();
      expect(() => index.find('host-1.example')).toThrowError(/closed/);
    });
  });
});
