/** Local verdicts on cached records: when they are given, what they cost, and that they equal the server's. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parseTarget } from '../../src/domain/target.ts';
import { Guard } from '../../src/guard/guard.ts';
import { type LocalOptions, LocalVerdicts, readLocalVerdicts } from '../../src/guard/local-verdicts.ts';
import type { Decision } from '../../src/guard/refusal.ts';
import { NPM_PACKAGES, packNpm } from '../../tools/dist/npm-package.ts';
import { pagegate } from '../support/program.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { exportedPolicy, LICENSEE, labelledUrls, type Question, questions, worldEntries } from './local-world.ts';
import { clockAhead } from './support.ts';

/** Generated questions; `make differential` asks a million, and about all labelled pages. */
const GIVEN = process.env['DIFFERENTIAL_QUESTIONS'];
const GENERATED = Number(GIVEN ?? 2_000);
const SEED = Number(process.env['DIFFERENTIAL_SEED'] ?? 7);
/** Number of concurrent requests. */
const LANES = 32;

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
let folder: string;
let policyFile: string;
let server: TestServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-local-'));
  policyFile = join(folder, 'licensee.json');
  writeFileSync(policyFile, JSON.stringify(LICENSEE));
  server = await startTestServer({
    entries: worldEntries(SEED),
    accounts: { pro: { plan: 'custom', limit: 100_000_000 } },
    config: { policy: { file: policyFile } },
    ...(GIVEN && { workers: 2 }),
  });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

const open: Guard[] = [];
afterAll(() => {
  for (const guard of open) guard.close();
});
function createGuard(options: object, at = server): Guard {
  const guard = new Guard({ server: at.url, key: at.keys['pro']!, timeoutMs: 60_000, ...options });
  open.push(guard);
  return guard;
}
const local = () => new LocalVerdicts(exportedPolicy(policyFile));

/** Requests for cases that random ones may miss. */
const SURE: readonly Question[] = [
  { url: 'https://site-5.example.com/a/contacts', method: 'POST' },
  { url: 'https://x.site-6.example.com/', method: 'PUT' },
  { url: 'https://site-3.example.com/', method: 'GET' },
  { url: 'http://10.1.2.3/', method: 'GET' },
  { url: 'site-1.example.com', method: 'GET' },
  // Node.js 24 accepts these hosts, Node.js 20 does not.
  { url: 'https://xn--mnchen/', method: 'GET' },
  { url: 'https://x\nn--mnchen:', method: 'PUT' },
  { url: 'htt://xn--mnchen/', method: 'GET' },
  { url: 'xn--mnchee/a', method: 'GET' },
];

/** The parts of a decision that must be equal. */
const wordOf = ({ verdict, layer, id, note }: Decision): string =>
  verdict === 'error' ? `error ${id}` : `${verdict} ${layer}/${id} ${note}`;

async function ask(guard: Guard, asked: readonly Question[]): Promise<Decision[]> {
  const decisions: Decision[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let at = next++; at < asked.length; at = next++) decisions[at] = await guard.check(asked[at]!.url, asked[at]!);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return decisions;
}

function differences(asked: readonly Question[], expected: readonly string[], got: readonly string[]): string[] {
  return asked.flatMap(({ url, method }, at) =>
    expected[at] === got[at]
      ? []
      : [`${method} ${JSON.stringify(url)}: the server says ${expected[at]}, here ${got[at]}`],
  );
}

describe('local verdicts', () => {
  let asked: Question[];
  let expected: string[];
  /** Folder of the unpacked package. */
  let place: string;
  beforeAll(async () => {
    const labelled = labelledUrls().map((url, at) => ({ url, method: at % 7 === 0 ? 'POST' : 'GET' }));
    const some = GIVEN === undefined ? labelled.filter((_, at) => at % 15 === 0) : labelled;
    asked = [...SURE, ...some, ...questions(SEED, GENERATED)];
    expected = (await ask(createGuard({ cacheSeconds: 0 }), asked)).map(wordOf);
    place = mkdtempSync(join(folder, 'package-'));
    const tarball = await packNpm(NPM_PACKAGES[0]!, place);
    mkdirSync(join(place, 'node_modules/pagegate-guard'), { recursive: true });
    execFileSync('tar', ['-xzf', tarball, '-C', join(place, 'node_modules/pagegate-guard'), '--strip-components=1']);
  });

  test('are compared on requests that reach every layer and every verdict', () => {
    const layers = new Set(expected.map((word) => word.split('/')[0]));
    expect(layers.size).toBeGreaterThanOrEqual(8);
    for (const layer of [
      'deny page_type_db',
      'flag page_type_db',
      'allow page_type_db',
      'allow rules',
      'deny high_value_hosts',
    ]) {
      expect([...layers], layer).toContain(layer);
    }
    const ids = expected.map((word) => word.split(' ')[1]);
    for (const id of ['rules/category_threat', 'rules/crm', 'default/unclassified_subdomain'])
      expect(ids).toContain(id);
  });

  test('equal the server’s', async () => {
    const got = await ask(createGuard({ cacheSeconds: 0, local: local() }), asked);
    expect(differences(asked, expected, got.map(wordOf))).toEqual([]);
    expect(got.filter(({ source }) => source === 'local').length).toBeGreaterThan(asked.length / 10);
  });

  test('equal the server’s in whatever order records arrive', async () => {
    const backwards = [...asked].reverse();
    const got = await ask(createGuard({ cacheSeconds: 0, local: local() }), backwards);
    expect(differences(backwards, [...expected].reverse(), got.map(wordOf))).toEqual([]);
  });

  test.each([
    ['the host', execFileSync('/bin/sh', ['-c', 'command -v node'], { encoding: 'utf8' }).trim()],
    ['this project', join(ROOT, 'node_modules/.bin/node')],
  ])('from the package equal the server’s on the Node.js of %s, or are left to the server', async (_name, node) => {
    rmSync(join(place, 'report.json'), { force: true });
    const exported = exportedPolicy(policyFile);
    for (const [name, value] of Object.entries({ asked, exported }))
      writeFileSync(join(place, `${name}.json`), JSON.stringify(value));
    writeFileSync(join(place, 'judge.mjs'), JUDGE);
    await promisify(execFile)(node, [join(place, 'judge.mjs'), server.url, server.keys['pro']!], {
      maxBuffer: 1 << 20,
    });
    const report = JSON.parse(readFileSync(join(place, 'report.json'), 'utf8')) as {
      words: string[];
      locals: number;
      revision: string;
      isUsable: boolean;
    };
    // An older parser refuses some hosts in punycode. The guard then refuses them with another message than the server.
    const isUnread = ({ url }: Question, at: number): boolean => {
      const target = parseTarget(url);
      const host = 'problem' in target ? '' : target.url.host;
      return !report.isUsable && report.words[at] === 'error wrong_domain' && host.includes('xn--');
    };
    const read = <T>(values: readonly T[]): T[] => values.filter((_, at) => !isUnread(asked[at]!, at));
    expect(differences(read(asked), read(expected), read(report.words))).toEqual([]);
    expect(read(asked).length).toBeGreaterThan(0.95 * asked.length);
    // With another revision or URL parser, nothing is judged locally.
    if (report.isUsable && report.revision === exported.revision)
      expect(report.locals).toBeGreaterThan(asked.length / 10);
    else expect(report.locals).toBe(0);
  });
});

const JUDGE = `
import { readFileSync, writeFileSync } from 'node:fs';
import { Guard } from 'pagegate-guard';
import { readLocalVerdicts } from 'pagegate-guard/local';
const [server, key] = process.argv.slice(2);
const here = (name) => new URL(name, import.meta.url);
const local = readLocalVerdicts(here('exported.json'));
let locals = 0;
const onDecision = ({ source }) => { if (source === 'local') locals += 1; };
const guard = new Guard({ server, key, timeoutMs: 60_000, cacheSeconds: 0, local, onDecision });
const asked = JSON.parse(readFileSync(here('asked.json'), 'utf8'));
const words = [];
let next = 0;
await Promise.all(Array.from({ length: ${LANES} }, async () => {
  for (let at = next++; at < asked.length; at = next++) {
    const { verdict, layer, id, note } = await guard.check(asked[at].url, asked[at]);
      words[at] = verdict === 'error' ? 'error ' + id : verdict + ' ' + layer + '/' + id + ' ' + note;
  }
}));
writeFileSync(here('report.json'), JSON.stringify({ words, locals, revision: local.revision, isUsable: local.isUsable }));
process.exit(0);
`;

describe('the cost of local verdicts', () => {
  let own: TestServer;
  beforeEach(async () => {
    const entries = Array.from({ length: 400 }, (_, i) => ({
      domain: `site-${i}.example.net`,
      language: 'en',
      page_types: {},
    }));
    own = await startTestServer({ entries, accounts: { pro: { plan: 'pro' } } });
    return () => own.stop();
  });
  const spent = async (): Promise<number> => 90_000 - (await own.check('?url=x.example')).body.quota_remaining - 1;

  test('10,000 URLs over 500 domains take 500 lookups and those for their parents', async () => {
    const guard = createGuard({ local: new LocalVerdicts(exportedPolicy()) }, own);
    const asked = Array.from({ length: 10_000 }, (_, i) => ({
      url: `https://site-${i % 500}.example.net/${i % 3 === 0 ? 'news' : 'blog'}/${i}`,
      method: i % 11 === 0 ? 'POST' : 'GET',
    }));
    const decisions = await ask(guard, asked);
    expect(new Set(decisions.map(({ verdict }) => verdict))).toEqual(new Set(['allow', 'deny', 'flag']));
    // All 500 have the same registrable domain as their only parent.
    expect(await spent()).toBe(501);
  });

  test('concurrent requests for a new domain share its record', async () => {
    const guard = createGuard({ local: new LocalVerdicts(exportedPolicy()) }, own);
    await guard.check('https://example.net/');
    const asked = Array.from({ length: 100 }, (_, i) => guard.check(`https://site-7.example.net/${i}`));
    const sources = (await Promise.all(asked)).map(({ source }) => source);
    expect(sources.filter((source) => source === 'lookup')).toHaveLength(1);
    expect(await spent()).toBe(2);
  });

  test('a verdict that needs no record costs nothing', async () => {
    const guard = createGuard({ local: new LocalVerdicts(exportedPolicy()) }, own);
    await guard.check('https://example.net/');
    for (const url of [
      'http://127.0.0.1/',
      'https://webhook.site/x',
      'https://a.example.net:22/',
      'http://intranet/',
    ]) {
      expect(await guard.check(url)).toMatchObject({ verdict: 'deny', source: 'local' });
    }
    expect(await spent()).toBe(1);
  });
});

test.each([
  ['is empty', '', /: it is empty; export it again/],
  ['is cut off', '{"format":', /: it is no JSON; export it again/],
  ['is null', 'null', /its format must be pagegate-policy-export\/1/],
  ['is another file', '{"version":1}', /its format must be pagegate-policy-export\/1/],
])('a file that %s is reported with a message', (_name, text, expected) => {
  const file = join(folder, 'not-exported.json');
  writeFileSync(file, text);
  expect(() => readLocalVerdicts(file)).toThrow(expected);
});

test('the options have defaults for undefined values, and refuse numbers out of range', () => {
  const create = (options: LocalOptions) => new LocalVerdicts(exportedPolicy(policyFile), options);
  expect(create({ recordSeconds: undefined, recordEntries: undefined }).size).toBe(0);
  expect(() => create({ recordSeconds: 0 })).toThrow(/recordSeconds/);
  expect(() => create({ recordEntries: Number.NaN })).toThrow(/recordEntries/);
});

describe('no local verdict is given', () => {
  test('if the server has another policy', async () => {
    const guard = createGuard({ cacheSeconds: 0, local: new LocalVerdicts(exportedPolicy()) });
    for (let i = 0; i < 3; i++)
      expect(await guard.check(`https://site-1.example.com/${i}`)).toMatchObject({ source: 'lookup' });
  });

  test('before the first answer, for characters outside ASCII, and for a text that is not a URL', async () => {
    const guard = createGuard({ cacheSeconds: 0, local: local() });
    const source = async (url: string) => (await guard.check(url)).source;
    expect(await source('https://site-1.example.com/a')).toBe('lookup');
    expect(await source('https://site-1.example.com/a')).toBe('local');
    expect(await source('https://site-1.example.com/ä')).toBe('lookup');
    expect(await source(' https://site-1.example.com/a')).toBe('lookup');
    expect(await guard.check('https://')).toMatchObject({ verdict: 'error', id: 'status_400' });
  });

  test('if the policy lacks a part, which is reported', () => {
    const { document, ...rest } = exportedPolicy(policyFile);
    const { address_exceptions: _, ...older } = document;
    expect(() => new LocalVerdicts({ ...rest, document: older as typeof document })).toThrow(
      'the exported policy lacks a part: export it again',
    );
    expect(() => new LocalVerdicts({ ...rest } as ReturnType<typeof exportedPolicy>)).toThrow('lacks a part');
  });

  test('if URLs are parsed by another parser', async () => {
    const other = new LocalVerdicts({ ...exportedPolicy(policyFile), url_parser: '2.9.2' });
    expect(other.isUsable).toBe(false);
    const guard = createGuard({ cacheSeconds: 0, local: other });
    for (let i = 0; i < 3; i++) expect(await guard.check('https://shop1.co.uk/')).toMatchObject({ source: 'lookup' });
  });

  test('on records that are too old', async () => {
    const judge = new LocalVerdicts(exportedPolicy(policyFile), { recordSeconds: 3_600 });
    const guard = createGuard({ cacheSeconds: 0, local: judge });
    const source = async () => (await guard.check('https://shop1.co.uk/a')).source;
    const goAhead = clockAhead();
    expect([await source(), await source()]).toEqual(['lookup', 'local']);
    goAhead(1_800);
    expect(await source()).toBe('local');
    goAhead(1_801);
    expect(await source()).toBe('lookup');
  });

  test('on more records than the limit', async () => {
    const judge = new LocalVerdicts(exportedPolicy(policyFile), { recordEntries: 2 });
    const guard = createGuard({ cacheSeconds: 0, local: judge });
    for (const i of [1, 2, 3]) await guard.check(`https://shop${i}.co.uk/`);
    expect(judge.size).toBe(2);
    expect((await guard.check('https://shop3.co.uk/')).source).toBe('local');
    expect((await guard.check('https://shop1.co.uk/')).source).toBe('lookup');
  });

  test('on records of an index that was replaced', async () => {
    const own = await startTestServer({ entries: [{ domain: 'a.example.net', page_types: {} }] });
    try {
      const guard = createGuard({ cacheSeconds: 0, local: new LocalVerdicts(exportedPolicy()) }, own);
      const word = async (url: string) => {
        const { verdict, id, source } = await guard.check(url);
        return `${verdict} ${id} ${source}`;
      };
      expect(await word('https://a.example.net/door')).toBe('allow classified_read lookup');
      expect(await word('https://a.example.net/door')).toBe('allow classified_read local');
      own.publish(2, [{ domain: 'a.example.net', page_types: { login: 'https://a.example.net/door' } }]);
      const generation = async () => (await own.check('?url=x.example')).headers.get('x-pagegate-data')?.split('.')[0];
      await expect.poll(generation).toBe('2');
      // The guard does not know about it yet; the next answer tells it.
      expect(await word('https://a.example.net/door')).toBe('allow classified_read local');
      await word('https://b.example.net/');
      expect(await word('https://a.example.net/door')).toBe('deny login lookup');
      expect(await word('https://a.example.net/door')).toBe('deny login local');
    } finally {
      await own.stop();
    }
  });

  test('if a parent’s record is not available: the request is refused', async () => {
    const own = await startTestServer({
      entries: [{ domain: 'app.a.example.net', page_types: {} }],
      accounts: { pro: { plan: 'custom', limit: 1 } },
    });
    try {
      const guard = createGuard({ cacheSeconds: 0, local: new LocalVerdicts(exportedPolicy()) }, own);
      expect(await guard.check('https://app.a.example.net/x')).toMatchObject({ verdict: 'allow', source: 'lookup' });
      expect(await guard.check('https://app.a.example.net/y')).toMatchObject({ verdict: 'error', id: 'status_403' });
    } finally {
      await own.stop();
    }
  });

  test('on the record of a parent domain if the server answers with it', async () => {
    const entries = [{ domain: 'example.net', page_types: { login: 'https://app.example.net/door' } }];
    const own = await startTestServer({ entries, config: { index: { subdomains: 'parent' } } });
    try {
      const plain = createGuard({ cacheSeconds: 0 }, own);
      const guard = createGuard({ cacheSeconds: 0, local: new LocalVerdicts(exportedPolicy()) }, own);
      const urls = ['/', '/door', '/other'].flatMap((path) =>
        ['app.', 'x.app.', ''].map((sub) => `https://${sub}example.net${path}`),
      );
      const said = async (asked: Guard, url: string): Promise<unknown[]> => {
        const decision = await asked.check(url);
        return [url, wordOf(decision), decision.domain, decision.found];
      };
      for (const url of [...urls, ...urls]) expect(await said(guard, url)).toEqual(await said(plain, url));
      expect(await guard.check('https://app.example.net/door')).toMatchObject({
        source: 'local',
        domain: 'example.net',
        found: true,
      });
    } finally {
      await own.stop();
    }
  });
});

describe('pagegate policy export', () => {
  test("writes what a guard reads, with the server's revision", async () => {
    const { status, stdout } = pagegate(['policy', 'export', policyFile]);
    expect(status).toBe(0);
    const file = join(folder, 'exported.json');
    writeFileSync(file, stdout);
    const judge = readLocalVerdicts(file);
    const { headers } = await server.check('?url=example.com');
    expect(headers.get('x-pagegate-data')).toBe(`1.${judge.revision}`);
    expect((JSON.parse(stdout) as { revision: string }).revision).toBe(judge.revision);
  });

  test.each([
    ['another file', '{}'],
    ['a licensee’s policy', JSON.stringify(LICENSEE)],
    ['no JSON', 'x'],
  ])('%s is refused at once', (_name, text) => {
    const file = join(folder, 'wrong.json');
    writeFileSync(file, text);
    expect(() => readLocalVerdicts(file)).toThrow();
  });
});
