/** `npm run bench -- verdict`: reading a value and judging it, beside `new URL`, tldts and a naive list of regular expressions. */
import { getDomain } from 'tldts';
import { parseTarget } from '../../src/domain/target.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import { loadPolicy } from '../../src/policy/load.ts';
import type { Evidence } from '../../src/policy/types.ts';
import { naivePolicy } from '../naive-policy.ts';
import { type BenchOptions, type BenchReport, median, type Workload } from '../workload.ts';

const ROUNDS = 15;
const ROUND_MS = 20;

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

/** Nanoseconds of processor time a call, in one round. Wall time would count what else runs on the machine. */
function round(subject: Subject, values: readonly string[]): number {
  let calls = 0;
  const before = process.threadCpuUsage();
  const end = process.hrtime.bigint() + BigInt(ROUND_MS * 1_000_000);
  while (process.hrtime.bigint() < end) {
    for (let turn = 0; turn < 64; turn++) subject(values[turn & 3]!);
    calls += 64;
  }
  const { user, system } = process.threadCpuUsage(before);
  return ((user + system) * 1000) / calls;
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
    const times = new Map<string, number[]>(Object.keys(subjects).map((name) => [name, []]));
    for (let at = -2; at < ROUNDS; at++) {
      for (const [name, subject] of Object.entries(subjects)) {
        const ns = round(subject, values);
        if (at >= 0) times.get(name)!.push(ns);
      }
    }
    return { value: kind, ...Object.fromEntries([...times].map(([name, all]) => [name, Math.round(median(all))])) };
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
