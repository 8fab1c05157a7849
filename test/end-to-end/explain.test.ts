/** Compares `pagegate explain` and the console's page for trying a URL with the server's response, in every field that they share. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Judge, type TriedVerdict } from '../../src/console/try-verdict.ts';
import { parseTarget } from '../../src/domain/target.ts';
import { PagegateError } from '../../src/errors.ts';
import { LICENSEE, labelledUrls, type Question, questions, worldEntries } from '../guard/local-world.ts';
import { pagegateHere } from '../support/program.ts';
import { SEED } from '../support/seed.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const GENERATED = 2_500;
/** Number of questions that are also put to the command, which reads the policy anew each time. */
const EXPLAINED = 8;
/** Number of concurrent requests. */
const LANES = 32;

/** Of 10 kB: values that are too long in UTF-16 units, only in bytes, or only before surrounding blanks are removed. */
const LONG = ['a'.repeat(10_000), '€'.repeat(3_000), ' '.repeat(10_000)];
const SURE: readonly Question[] = [
  { url: 'https://site-5.example.com/a/contacts', method: 'POST' },
  ...LONG.map((text) => ({ url: `https://site-1.example.com/${text}`, method: 'GET' })),
  ...['a b', 'X'.repeat(100), 'get'].map((method) => ({ url: 'site-1.example.com', method })),
  ...['x.site-6', 'deep.deep.site-6', 'www.deep.app.site-7', 'nobody.site-8'].flatMap((name) => [
    { url: `${name}.example.com`, method: 'GET' },
    { url: `https://${name}.example.com/members?next=https://evil.org/`, method: 'HEAD' },
  ]),
];

interface Said {
  readonly domain: string;
  readonly found: boolean;
  readonly verdict: string;
  readonly matched: unknown;
}

const MODES = [
  { index: { subdomains: 'exact' }, policy: {} },
  { index: { subdomains: 'parent' }, policy: { profile: 'strict' } },
  { index: { subdomains: 'parent' }, policy: { profile: 'open' } },
] as const;

describe.each(MODES)('with $index and $policy', ({ index, policy }) => {
  let folder: string;
  let server: TestServer;
  let cases: readonly Question[];
  let answers: readonly Record<string, unknown>[];
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pagegate-explain-'));
    const file = join(folder, 'licensee.json');
    writeFileSync(file, JSON.stringify(LICENSEE));
    server = await startTestServer({
      entries: worldEntries(SEED),
      accounts: { pro: { plan: 'custom', limit: 1_000_000 } },
      config: { index, policy: { ...policy, file } },
    });
    const labelled = labelledUrls().filter((_, at) => at % 60 === 0);
    cases = [...SURE, ...labelled.map((url) => ({ url, method: 'GET' })), ...questions(SEED, GENERATED)].filter(
      // A request cannot carry text that is not well-formed.
      ({ url }) => url.isWellFormed(),
    );
    answers = await inLanes(cases, (question) => answerOf(server, question));
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  test('covers every layer, and records of parent domains', () => {
    const layers = new Set(
      answers.map(({ verdict, matched }) => `${verdict} ${(matched as Said)?.['layer' as never]}`),
    );
    expect([...layers].sort()).toEqual(
      expect.arrayContaining(['deny page_type_db', 'allow rules', 'allow page_type_db']),
    );
    const above = cases.filter(({ url }, at) => {
      const target = parseTarget(url);
      return !('problem' in target) && answers[at]!['found'] === true && answers[at]!['domain'] !== target.key;
    });
    expect(above.length > 50).toBe(index.subdomains === 'parent');
  });

  test("the console gives the server's answer", () => {
    const judge = new Judge(server.config);
    const differences = cases.flatMap(({ url, method }, at) => {
      const actual = JSON.stringify(triedAs(() => judge.judge(url, method)));
      const expected = JSON.stringify(answers[at]);
      return actual === expected ? [] : [`${method} ${JSON.stringify(url).slice(0, 200)}: ${expected}, here ${actual}`];
    });
    expect(differences).toEqual([]);
  });

  test("explain gives the server's answer", async () => {
    const config = join(folder, 'pagegate.json');
    writeFileSync(config, JSON.stringify({ state_dir: server.config.state_dir, index, policy: server.config.policy }));
    const some = cases
      .map((_, at) => at)
      .filter((at) => at < SURE.length || at % Math.ceil(cases.length / EXPLAINED) === 0);
    for (const at of some) {
      const { url, method } = cases[at]!;
      const args = ['explain', `--method=${method}`, '--config', config, '--json', '--', url];
      const { stdout, stderr } = await pagegateHere(args);
      const expected = answers[at]!;
      if (expected['error'] !== undefined) {
        expect([url, stderr]).toEqual([url, expect.stringContaining(String(expected['error']))]);
        continue;
      }
      const { domain, record, verdict, matched, policy_revision } = JSON.parse(stdout);
      expect([url, { domain, found: record.found, verdict, matched, data: `1.${policy_revision}` }]).toEqual([
        url,
        Object.fromEntries(['domain', 'found', 'verdict', 'matched', 'data'].map((name) => [name, expected[name]])),
      ]);
      const pages = Object.entries(expected['page_types'] as object).map(([type, page]) => ({ type, url: page }));
      expect([url, record.page_urls]).toEqual([url, expect.arrayContaining(pages)]);
    }
  });
});

async function inLanes<T>(items: readonly Question[], ask: (question: Question) => Promise<T>): Promise<T[]> {
  const answers: T[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) answers[at] = await ask(items[at]!);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return answers;
}

/** Returns the server's response, without the quota. */
async function answerOf(server: TestServer, { url, method }: Question): Promise<Record<string, unknown>> {
  const query = `?url=${encodeURIComponent(url)}&method=${encodeURIComponent(method)}`;
  const { status, body, headers } = await server.check(query);
  if (status !== 200) return { error: body.error };
  const { quota_remaining: _, ...answer } = body;
  return { ...answer, data: headers.get('x-pagegate-data') };
}

/** Returns the console's verdict in the same form, with its fields in the same order. */
function triedAs(judge: () => TriedVerdict): Record<string, unknown> {
  try {
    const { domain, record, explanation, generation, policy } = judge();
    const { verdict, layer, id, note } = explanation.verdict;
    return {
      domain,
      found: record !== undefined,
      language: record?.language,
      page_types: Object.fromEntries((record?.pageTypes ?? []).map(({ type, url }) => [type, url])),
      verdict,
      matched: { layer, id, note },
      iab_category: record?.iabCategory,
      filtering_categories: record?.filteringCategories,
      open_page_rank: record?.openPageRank,
      global_rank: record?.globalRank,
      data: `${generation}.${policy.revision}`,
    };
  } catch (error) {
    if (!(error instanceof PagegateError)) throw error;
    return { error: error.code };
  }
}
