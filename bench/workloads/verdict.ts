/**
 * `npm run bench -- verdict [--beside CHECKOUT]`: parsing a value and judging it, compared with `new URL`, tldts and a naive list of regular
 * expressions. The evidence is a list in memory or, in a separate column, the records of an index as a server reads them. With `--beside`,
 * another checkout judges the same values in the same rounds.
 */
import { pathToFileURL } from 'node:url';
import { Bench } from 'tinybench';
import { getDomain } from 'tldts';
import { parseTarget, type Target } from '../../src/domain/target.ts';
import { openIndex } from '../../src/index/read.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import { loadPolicy } from '../../src/policy/load.ts';
import type { Policy } from '../../src/policy/policy.ts';
import type { Evidence } from '../../src/policy/types.ts';
import { RecordEvidence } from '../../src/server/record-evidence.ts';
import { AnswerWriter } from '../../src/server/request/answer-body.ts';
import { CHECKOUT, datasetOf, ensureServedIndex } from '../data.ts';
import { mixedTargets } from '../http/mix.ts';
import { naivePolicy } from '../naive-policy.ts';
import { type BenchOptions, type BenchReport, median, type Workload } from '../workload.ts';

const ROUNDS = 7;
/** Many times longer than 4 ms, the kernel's resolution for the processor time of a running thread. */
const ROUND_MS = 150;
const WARM_MS = 5;
/** Calls between two readings of the clock. */
const CALLS = 256;

/** Number of records of the index that are judged in turn, each with eight pages. */
const HOSTS = 4_096;
/** Larger indexes are not needed, because the bench measures verdicts, not lookups. */
const RECORDS_MAX = 1_000_000;

const PAGES = ['login', 'signup', 'pricing', 'docs', 'contact', 'about', 'careers', 'blog'].map((type) => ({
  type,
  url: `https://www.example.com/${type}`,
}));

const evidence = (pages: readonly { type: string; url: string }[]): Evidence => ({
  found: true,
  parentFound: false,
  pages: () => pages,
  filteringCategories: () => [],
});
const NO_PAGES = evidence([]);
const EIGHT_PAGES = evidence(PAGES);

/** Number of URLs of the HTTP bench that are judged in turn. */
const MIXED = 20_000;
/** URLs longer than this are those of 1 to 2 KB. */
const LONG = 900;

/** Four values of each kind, so that a cache of one value does not help. But the processor's branch prediction soon learns them. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  'bare domain': ['example.com', 'docs.python.org', 'news.bbc.co.uk', 'stripe.com'],
  'plain URL': [
    'https://example.com/some/path-to/article.html',
    'https://docs.python.org/3/library/asyncio-task.html',
    'https://www.stripe.com/en-us/payments/features',
    'https://news.bbc.co.uk/2024/05/a-long-title-of-an-article',
  ],
  'URL with a query': [
    'https://example.com/search?q=memory+mapped+files&page=2',
    'https://shop.example.org/item/123?utm_source=mail&utm_medium=news',
    'https://docs.python.org/3/search.html?q=asyncio&check_keywords=yes',
    'https://news.bbc.co.uk/topics?sort=new&from=40',
  ],
  'login page': [
    'https://example.com/login',
    'https://accounts.example.org/users/sign_in',
    'https://example.fr/connexion',
    'https://forum.example.org/ucp.php?mode=login',
  ],
  'URL of 2 KB': [1, 2, 3, 4].map(
    (n) => `https://example.com/a/${'segment-of-a-path/'.repeat(50 + n)}?${'name=value&'.repeat(95)}`,
  ),
  'hostile URL': [
    'https://example.com/?u=http%3A%2F%2F0x7f.0.0.1%2Fadmin',
    'http://2130706433/latest/meta-data/',
    'https://example.com/..%2f..%2fetc/passwd',
    'https://xn--80ak6aa92e.com/%252e%252e/',
  ],
};

/** Kinds whose values are also judged on hosts of the index. */
const ON_HOSTS: ReadonlySet<string> = new Set(['bare domain', 'plain URL', 'URL with a query', 'login page']);

type Subject = (turn: number) => unknown;

interface Served {
  /** Returns the timed functions for the values of a kind, each value on a different host. */
  subjectsOf(values: readonly string[]): Readonly<Record<'found' | 'judged', Subject>>;
  close(): void;
}

/** Opens an index to parse values on its hosts and look up their records, as a server does before it judges, and to judge them, too. */
async function openServed(options: BenchOptions, policy: Policy): Promise<Served> {
  const { records } = options;
  const index = openIndex(ensureServedIndex(options, CHECKOUT));
  await index.warm();
  const dataset = datasetOf(records);
  const hosts: string[] = [];
  for (let at = 0; at < records && hosts.length < HOSTS; at++) {
    const name = dataset.nameOf(at);
    if (index.pageUrls(index.find(name)).length === PAGES.length) hosts.push(name);
  }
  const writer = new AnswerWriter();
  const find = (target: Target): RecordEvidence => {
    const evidence = new RecordEvidence(index, target, 'parent', writer);
    writer.begin(index, evidence.handle, evidence.domain);
    return evidence;
  };
  return {
    subjectsOf: (values) => {
      const asked = hosts.map((host, at) => values[at & 3]!.replace(/^(https:\/\/)?[^/]+/, `$1${host}`));
      const next = (turn: number): Target => parseTarget(asked[turn % asked.length]!) as Target;
      return {
        found: (turn) => find(next(turn)),
        judged: (turn) => {
          const target = next(turn);
          return evaluate(policy, { url: target.url, method: 'GET' }, find(target));
        },
      };
    },
    close: () => index.close(),
  };
}

/** Returns the processor time of this thread in milliseconds. Wall time would include other programs on the machine. */
function processorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

type Round = Readonly<Record<string, number>>;

/** Measures one round, one subject after the other. Returns the nanoseconds per call of each. */
function round(subjects: Readonly<Record<string, Subject>>): Round {
  const bench = new Bench({
    now: processorMs,
    time: ROUND_MS,
    iterations: 1,
    warmupTime: WARM_MS,
    warmupIterations: 1,
    throws: true,
  });
  for (const [name, subject] of Object.entries(subjects)) {
    let first = 0;
    bench.add(name, () => {
      for (let turn = first; turn < first + CALLS; turn++) subject(turn);
      first += CALLS;
    });
  }
  const ns = bench.runSync().map(({ name, result }) => {
    if (!('latency' in result)) throw new Error(`${name}: ${result.state}`);
    return [name, (result.latency.mean / CALLS) * 1e6] as const;
  });
  return Object.fromEntries(ns);
}

/** Returns the URLs of the HTTP bench, which all differ, as in a real server's traffic. */
function mixedValues(records: number): Readonly<Record<string, readonly string[]>> {
  const values = mixedTargets(records, MIXED, 1).map(
    (target) => new URLSearchParams(target.slice(target.indexOf('?'))).get('url')!,
  );
  return {
    'URLs of the HTTP bench': values,
    'plain ones of them': values.filter((value) => value.length < LONG && !value.includes('?')),
  };
}

/** What judges a value in one checkout. */
interface Engine {
  readonly parseTarget: typeof parseTarget;
  readonly evaluate: typeof evaluate;
  readonly policy: Policy;
}

/** Loads the engine of another checkout. Its functions need the same signatures. */
async function engineOf(checkout: string): Promise<Engine> {
  const load = (file: string): Promise<unknown> => import(pathToFileURL(`${checkout}/src/${file}`).href);
  const target = (await load('domain/target.ts')) as Pick<Engine, 'parseTarget'>;
  const layers = (await load('policy/evaluate.ts')) as Pick<Engine, 'evaluate'>;
  const { loadPolicy: loadOther } = (await load('policy/load.ts')) as { loadPolicy: typeof loadPolicy };
  return { parseTarget: target.parseTarget, evaluate: layers.evaluate, policy: loadOther() };
}

/** Returns the timed function that parses and judges each value in turn. */
function judge(engine: Engine, values: readonly string[], known: Evidence): Subject {
  const { parseTarget, evaluate, policy } = engine;
  return (turn) => {
    const target = parseTarget(values[turn % values.length]!);
    return 'problem' in target ? target : evaluate(policy, { url: target.url, method: 'GET' }, known);
  };
}

async function run(options: BenchOptions): Promise<BenchReport> {
  const policy = loadPolicy();
  const naive = naivePolicy(policy);
  const served = await openServed(options, policy);
  const engine: Engine = { parseTarget, evaluate, policy };
  const other = options.beside === undefined ? undefined : await engineOf(options.beside);
  const rows = Object.entries({ ...VALUES, ...mixedValues(options.records) }).map(([kind, values]) => {
    options.log(kind);
    const each =
      (subject: (value: string) => unknown): Subject =>
      (turn) =>
        subject(values[turn % values.length]!);
    const subjects: Readonly<Record<string, Subject>> = {
      'read ns': each(parseTarget),
      'verdict ns': judge(engine, values, NO_PAGES),
      'with 8 pages ns': judge(engine, values, EIGHT_PAGES),
      ...(other === undefined
        ? {}
        : { other: judge(other, values, NO_PAGES), 'other with 8 pages': judge(other, values, EIGHT_PAGES) }),
      // The naive list takes milliseconds per value, so it is only measured for kinds with few values.
      ...(kind in VALUES ? { 'naive list ns': each(naive) } : {}),
      'new URL ns': each((value) => new URL(value.includes('://') ? value : `https://${value}`).hostname),
      'tldts ns': each((value) => getDomain(value)),
      ...(ON_HOSTS.has(kind) ? served.subjectsOf(values) : {}),
    };
    const rounds = Array.from({ length: ROUNDS }, () => round(subjects));
    const medianOf = (of: (times: Round) => number): number => Math.round(median(rounds.map(of)));
    const ratioOf = (of: (times: Round) => number): number => Number(median(rounds.map(of)).toFixed(2));
    const columns = Object.keys(subjects).filter((name) => name.endsWith(' ns'));
    return {
      value: kind,
      ...Object.fromEntries(columns.map((name) => [name, medianOf((times) => times[name]!)])),
      'with 8 pages of an index ns': ON_HOSTS.has(kind)
        ? medianOf((times) => times['read ns']! + times['judged']! - times['found']!)
        : null,
      ...(other === undefined
        ? {}
        : {
            'verdict, ratio to the other': ratioOf((times) => times['verdict ns']! / times['other']!),
            'with 8 pages, ratio': ratioOf((times) => times['with 8 pages ns']! / times['other with 8 pages']!),
          }),
    };
  });
  served.close();
  return {
    rows,
    notes: [
      `Medians of ${ROUNDS} interleaved rounds of ${ROUND_MS} ms in one process, processor time; four values of each kind in turn, and ${MIXED.toLocaleString('en-US')} URLs of the HTTP bench, which all differ: the processor cannot learn their branches by heart.`,
      'read: value to key and canonical URL; verdict: that and all layers on a classified domain without pages; then with eight pages.',
      `with 8 pages of an index: the same on hosts of ${HOSTS.toLocaleString('en-US')} records that have eight pages, one after the other; the record is found before, and the pages are read from it. Its lookup and the head of its answer are not counted.`,
      ...(other === undefined ? [] : [`ratio to the other: the checkout in ${options.beside} judges the same values.`]),
      'naive list: the same hosts, words and tokens as regular expressions over new URL, without page types, nested URLs or IDN checks.',
    ],
  };
}

export const workload: Workload = {
  name: 'verdict',
  description: 'reading and judging URLs, beside a naive list',
  recordsMax: RECORDS_MAX,
  run,
};
