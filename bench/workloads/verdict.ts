/** `npm run bench -- verdict`: reading a value and judging it, beside `new URL`, tldts and a naive list of regular expressions. */
import { Bench } from 'tinybench';
import { getDomain } from 'tldts';
import { parseTarget } from '../../src/domain/target.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import { loadPolicy } from '../../src/policy/load.ts';
import type { Evidence } from '../../src/policy/types.ts';
import { naivePolicy } from '../naive-policy.ts';
import { type BenchOptions, type BenchReport, median, type Workload } from '../workload.ts';

const ROUNDS = 7;
const ROUND_MS = 30;
const WARM_MS = 5;
/** Calls between two looks at the clock, which counts in microseconds. */
const CALLS = 256;

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

/** Four values of each kind, so that no cache of one value decides. */
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

type Subject = (value: string) => unknown;

/** Processor time of this thread in milliseconds. Wall time would count what else runs on the machine. */
function processorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Nanoseconds a call of each subject: one round, one subject after the other. */
function round(subjects: Readonly<Record<string, Subject>>, values: readonly string[]): Record<string, number> {
  const bench = new Bench({
    now: processorMs,
    time: ROUND_MS,
    iterations: 1,
    warmupTime: WARM_MS,
    warmupIterations: 1,
    throws: true,
  });
  for (const [name, subject] of Object.entries(subjects)) {
    bench.add(name, () => {
      for (let turn = 0; turn < CALLS; turn++) subject(values[turn & 3]!);
    });
  }
  const ns = bench.runSync().map(({ name, result }) => {
    if (!('latency' in result)) throw new Error(`${name}: ${result.state}`);
    return [name, (result.latency.mean / CALLS) * 1e6] as const;
  });
  return Object.fromEntries(ns);
}

async function run(options: BenchOptions): Promise<BenchReport> {
  const policy = loadPolicy();
  const naive = naivePolicy(policy);
  const judge =
    (known: Evidence): Subject =>
    (value) => {
      const target = parseTarget(value);
      return 'problem' in target ? target : evaluate(policy, { url: target.url, method: 'GET' }, known);
    };
  const subjects: Readonly<Record<string, Subject>> = {
    'read ns': parseTarget,
    'verdict ns': judge(NO_PAGES),
    'with 8 pages ns': judge(EIGHT_PAGES),
    'naive list ns': naive,
    'new URL ns': (value) => new URL(value.includes('://') ? value : `https://${value}`).hostname,
    'tldts ns': (value) => getDomain(value),
  };
  const rows = Object.entries(VALUES).map(([kind, values]) => {
    options.log(kind);
    const rounds = Array.from({ length: ROUNDS }, () => round(subjects, values));
    const medianOf = (name: string): number => Math.round(median(rounds.map((times) => times[name]!)));
    return { value: kind, ...Object.fromEntries(Object.keys(subjects).map((name) => [name, medianOf(name)])) };
  });
  return {
    rows,
    notes: [
      `Medians of ${ROUNDS} interleaved rounds of ${ROUND_MS} ms in one process, processor time; four values of each kind in turn.`,
      'read: value to key and canonical URL; verdict: that and all layers on a classified domain without pages; then with eight pages.',
      'naive list: the same hosts, words and tokens as regular expressions over new URL, without page types, nested URLs or IDN checks.',
    ],
  };
}

export const workload: Workload = {
  name: 'verdict',
  description: 'reading and judging URLs, beside a naive list',
  run,
};
