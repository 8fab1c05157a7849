/** Verified pages read from a response body are the same as those read from the index. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parentDomains } from '../../src/domain/public-suffix.ts';
import { parseTarget, type Target } from '../../src/domain/target.ts';
import { BUCKET_SIZE_BYTES } from '../../src/index/format/layout.ts';
import { type Index, openIndex } from '../../src/index/read.ts';
import { openScan } from '../../src/index/read-all.ts';
import { RecordEvidence } from '../../src/server/record-evidence.ts';
import { AnswerWriter } from '../../src/server/request/answer-body.ts';
import { Random } from '../../tools/random.ts';
import { type EntryInput, writeIndex } from '../support/index-file.ts';

const TYPES = ['login', 'pricing', 'docs', 'contact', 'about', 'careers', 'blog', 'checkout'];
const PATHS = [
  '',
  '/',
  '/login',
  '/a/b?c=1&d="{}',
  "/it's",
  '/x?a=b\\c',
  '/"page_types":{',
  '/x","docs":"y',
  '/~a;b=1',
  '?q=}',
  '#/x',
];

const random = new Random(11);
const randomEntry = (domain: string): EntryInput => {
  const types = TYPES.filter(() => random.chance(50));
  const hosts = [domain, `www.${domain}`, `login.${domain}`];
  return {
    domain,
    ...(random.chance(50) ? { language: 'en' } : {}),
    page_types: Object.fromEntries(types.map((type) => [type, `https://${random.pick(hosts)}${random.pick(PATHS)}`])),
  };
};

const domains = Array.from({ length: 300 }, (_, i) => (i % 3 === 0 ? `a.site-${i}.com` : `site-${i}.com`)).flatMap(
  (domain) => (domain.startsWith('a.') ? [domain, domain.slice(2)] : [domain]),
);
let dir: string;
let index: Index;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'pagegate-evidence-'));
  const path = join(dir, 'index.pgx');
  writeIndex(path, domains.map(randomEntry), { generation: 1, dataset: 'test' });
  index = openIndex(path);
});
afterAll(() => {
  index.close();
  rmSync(dir, { recursive: true });
});

const targetOf = (value: string): Target => {
  const target = parseTarget(value);
  if ('problem' in target) throw new Error(target.problem);
  return target;
};

describe('evidence that reads the response body', () => {
  it.each(['exact', 'parent'] as const)('has the same pages as the index, with subdomains "%s"', (subdomains) => {
    const writer = new AnswerWriter();
    let pages = 0;
    let escaped = 0;
    for (const domain of [...domains, ...domains.map((name) => `b.${name}`), 'unknown.net']) {
      const target = targetOf(domain);
      const evidence = new RecordEvidence(index, target, subdomains, writer);
      writer.begin(index, evidence.handle, evidence.domain);
      const told = new RecordEvidence(index, target, subdomains).pages();
      if (told.some(({ url }) => /["\\]/.test(url))) escaped++;
      pages += told.length;
      expect(evidence.pages(() => true)).toEqual(told);
      expect(evidence.pages()).toEqual(told);
      const isLogin = (bytes: Uint8Array, start: number, end: number): boolean =>
        Buffer.from(bytes.subarray(start, end)).toString('latin1').endsWith('login');
      const hostOf = (url: string): string => url.split('/', 3).join('/');
      let hostBefore = '';
      // A page stored with its own full host may have the same host as the one before without being marked so.
      const sees = (bytes: Uint8Array, start: number, end: number, isHostOfBefore: boolean): boolean => {
        const host = hostOf(Buffer.from(bytes.subarray(start, end)).toString('latin1'));
        if (isHostOfBefore) expect(host).toBe(hostBefore);
        hostBefore = host;
        return true;
      };
      expect(evidence.pages(sees)).toEqual(told);
      const left = told.filter(({ url }) => url.endsWith('login'));
      expect(evidence.pages(isLogin).filter(({ url }) => url.endsWith('login'))).toEqual(left);
    }
    expect(pages).toBeGreaterThan(1_000);
    expect(escaped).toBeGreaterThan(50);
  });
});

describe('damage in the bucket of a public suffix', () => {
  const sites = Array.from({ length: 300 }, (_, i) => `site-${i}.${i % 2 === 0 ? 'co.kr' : 'github.io'}`);

  /** Opens the index with a damaged bucket: the one in which a name is looked up. */
  function openDamaged(name: string): Index {
    const path = join(dir, `${name}.pgx`);
    writeIndex(path, sites.map(randomEntry), { generation: 1, dataset: 'test' });
    const scan = openScan(path);
    const { directory } = scan.sections;
    scan.close();
    const bytes = readFileSync(path);
    for (let at = directory.offset; at < directory.offset + directory.size; at += BUCKET_SIZE_BYTES) {
      const damaged = Buffer.from(bytes);
      damaged[at]! ^= 0xff;
      const file = join(dir, `${name}-${at}.pgx`);
      writeFileSync(file, damaged, { mode: 0o444 });
      const opened = openIndex(file);
      if (isDamaged(opened, name)) return opened;
      opened.close();
    }
    throw new Error('No bucket has it.');
  }

  function isDamaged(opened: Index, name: string): boolean {
    try {
      opened.find(name);
      return false;
    } catch {
      return true;
    }
  }

  it.each(['co.kr', 'github.io'])(
    '%s fails no lookup of a name below it, unless the bucket of the name or a parent is damaged',
    (suffix) => {
      const opened = openDamaged(suffix);
      const outcomes = { answered: 0, refused: 0 };
      for (const site of sites.filter((name) => name.endsWith(`.${suffix}`))) {
        for (const name of [site, `a.${site}`, `b.a.${site}`]) {
          const found = (): boolean => {
            const evidence = new RecordEvidence(opened, targetOf(name), 'parent');
            evidence.pages();
            return evidence.answered && evidence.domain === site && evidence.parentFound === (name !== site);
          };
          if ([name, ...parentDomains(name)].some((domain) => isDamaged(opened, domain))) {
            expect(found).toThrow(expect.objectContaining({ code: 'record_corrupt' }));
            outcomes.refused += 1;
          } else {
            expect(found()).toBe(true);
            outcomes.answered += 1;
          }
        }
      }
      opened.close();
      expect(outcomes.answered).toBeGreaterThan(100);
      expect(outcomes.refused).toBeGreaterThan(5);
    },
  );
});
