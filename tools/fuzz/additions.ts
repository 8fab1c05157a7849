/** The fuzzer's second property: what anyone can add to a URL, or write otherwise, never makes an allow of a denial or of a flag. */

import { hidesTraversal } from '../../src/domain/dot-segments.ts';
import { parseTarget } from '../../src/domain/target.ts';
import type { Policy } from '../../src/policy/policy.ts';
import type { Verdict } from '../../src/policy/types.ts';
import { Random } from '../random.ts';
import { mutate, randomUrl } from './urls.ts';
import { judgeValue, verdictText } from './verdict.ts';

/** What is known by the case of its letters: a key or base64 in other letters is another one, or none. */
const CASE_RULES: ReadonlySet<string> = new Set(['secret_in_url', 'bulk_query', 'open_redirect', 'nested_internal']);

/** Signs that stand behind a URL in running text, and what some servers drop at the end of a name. */
const TRAILING_SIGNS = [
  ...'.,;:!?)]}\'"*~-_+=&|$@/\\>',
  '%20',
  '%2f',
  '…',
  '%E2%80%8B',
  '....',
  ',)',
  '/.',
  '/./',
  '//',
  // A parameter of a segment that has no name.
  '/;x=1',
  // A parameter where a query should begin.
  '&x=1',
  '&x=',
  '%26x=',
];

const FRAGMENTS = [
  '',
  'top',
  '/',
  '/docs',
  '!help',
  '/blog/x',
  '!/wiki/Page',
  '/login',
  '?a=b',
  '/a?b=/docs',
  ':~:text=docs',
];
const PARAMETERS = [
  'x=1',
  'x',
  '=',
  'id=5',
  'title=Docs',
  'page=docs',
  'q=docs/help',
  'lang=en',
  'utm_source=x',
  'x=docs%2Fhelp',
  'search=x',
];

/** The kinds of additions: what each makes of a URL. */
const ADDITIONS = {
  'a fragment': (random, url) => (url.includes('#') ? url : `${url}#${random.pick(FRAGMENTS)}`),
  'a parameter': (random, url) => withParameter(url, random.pick(PARAMETERS), random.chance(50)),
  'another case': (random, url) => otherCase(random, url),
  'a sign at the end': (random, url) => (endsInPath(url) ? url + random.pick(TRAILING_SIGNS) : url),
  'a sign behind the path': (random, url) => (endsInPath(url) ? behindPath(url, random.pick(TRAILING_SIGNS)) : url),
} as const satisfies Readonly<Record<string, (random: Random, url: string) => string>>;

export type Addition = keyof typeof ADDITIONS;

export interface AdditionReport {
  /** Denials and flags to which something was added, by kind. */
  readonly tried: Readonly<Record<Addition, number>>;
  readonly failures: readonly string[];
}

/** Runs the fuzzer on URLs of its own and on some of `urls`; stops at the first ten failures. */
export function fuzzAdditions(
  policy: Policy,
  seed: number,
  count: number,
  urls: readonly string[] = [],
): AdditionReport {
  const random = new Random(seed);
  const words = [...policy.tokens.entries()].map(({ token }) => token);
  const kinds = Object.keys(ADDITIONS) as Addition[];
  const tried = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<Addition, number>;
  const failures: string[] = [];
  for (let at = 0; at < count && failures.length < 10; at++) {
    const url = urls.length > 0 && random.chance(40) ? random.pick(urls) : randomAct(random, policy, words);
    const verdict = judgeValue(policy, url, 'GET');
    if (verdict === undefined || verdict.verdict === 'allow') continue;
    for (const kind of kinds) {
      const other = ADDITIONS[kind](random, url);
      if (other === url || !isBound(verdict, kind)) continue;
      tried[kind]++;
      if (judgeValue(policy, other, 'GET')?.verdict !== 'allow') continue;
      failures.push(
        `${kind}: ${JSON.stringify(url)} gets ${verdictText(verdict)}, ${JSON.stringify(other)} is allowed`,
      );
    }
  }
  return { tried, failures };
}

/** Whether the property speaks of a verdict and a kind of addition. */
function isBound({ verdict, id }: Verdict, kind: Addition): boolean {
  return verdict !== 'allow' && !(kind === 'another case' && CASE_RULES.has(id));
}

/** What stands in URLs beside words. */
const PIECES = ['5', 'a1b2c3d4e5', 'x', 'en', 'docs', '2024', '@name', 'a-b-c-d-e', 'index', 'AKIAIOSFODNN7EXAMPLE'];
const EXTENSIONS = '.php .do .exe .html .git .action .css .ts .h .md .txt .5 .json .env .bak ;x=1 %3Fa=b &a=b !x'.split(
  ' ',
);
const VALUES = [
  'https://evil.org/x',
  'http%3A%2F%2F10.0.0.1',
  '//evil.org',
  'localhost:8080',
  'redis:6379',
  'evil.org',
  'aHR0cHM6Ly9ldmlsLm9yZy94',
  'file:///etc/passwd',
  '4111-1111-1111-1111',
  'user/login',
  'com.example.settings',
  'Special:UserLogin',
  'A1b2C3d4E5f6G7h8I9j0'.repeat(9),
];

/** A word with a sign within: some readers take what follows for an extension, others for the rest of the word. */
function cutWord(random: Random, word: string): string {
  const at = 1 + random.below(Math.max(1, word.length - 1));
  return word.slice(0, at) + random.pick(['.', '.', '.', '-', ';', '!', '&', '%3F', '%2f']) + word.slice(at);
}

/** A URL of the policy's own words, hosts and ordinary pieces: most of them are denied. */
function randomAct(random: Random, policy: Policy, words: readonly string[]): string {
  if (random.chance(20)) return (random.chance(50) ? randomUrl(random) : mutate(random, randomUrl(random))).trim();
  const plain = (): string => encodeURIComponent(random.pick(words));
  const word = (): string => (random.chance(15) ? cutWord(random, plain()) : plain());
  const piece = (): string => random.pick([word, word, () => random.pick(PIECES)])();
  const { host } = random.pick(policy.document.hosts);
  let url = random.pick([
    'https://example.org',
    'https://example.org',
    `https://${plain().toLowerCase()}.example.org`,
    `https://${host.replace(/^[=*]\.?/, host.startsWith('*') ? 'a.' : '')}`,
  ]);
  for (let left = random.below(4); left > 0; left--) url += `/${piece()}`;
  if (random.chance(15)) url += random.pick(EXTENSIONS);
  if (random.chance(30)) url += `?${word()}=${random.chance(20) ? random.pick(VALUES) : piece()}`;
  if (random.chance(10)) url += `&${random.chance(50) ? word() : 'url'}=${random.pick(VALUES)}`;
  if (random.chance(10)) {
    if (random.chance(50)) url = url.replace(/^(https:..[^/?]+).*/s, '$1/');
    url += `#${random.pick(['/', '', '!'])}${piece()}${random.chance(30) ? `/${piece()}` : ''}`;
  }
  return url;
}

function withoutFragment(url: string): string {
  return url.split('#', 1)[0]!;
}

function withParameter(url: string, parameter: string, isFirst: boolean): string {
  const fragment = url.slice(withoutFragment(url).length);
  const [path = '', ...query] = withoutFragment(url).split('?');
  if (query.length === 0) return `${path}?${parameter}${fragment}`;
  const own = query.join('?');
  return `${path}?${isFirst ? `${parameter}&${own}` : `${own}&${parameter}`}${fragment}`;
}

/** Letters of path, query and fragment in another case; not those of an escape, whose case never counts. */
function otherCase(random: Random, url: string): string {
  const mode = random.below(3);
  const start = url.indexOf('/', url.indexOf('://') + 3);
  if (start < 0) return url;
  const turn = (letter: string): string => {
    if (mode === 0 || (mode === 2 && random.chance(50))) return letter.toUpperCase();
    return letter.toLowerCase();
  };
  return (
    url.slice(0, start) +
    url.slice(start).replace(/%[0-9a-f]{2}|[a-z]/gi, (text) => (text.length > 1 ? text : turn(text)))
  );
}

/**
 * Whether a path ends the URL, or its query: a sign behind a host makes another host. By the URL standard a segment is a dot segment only where it is
 * dots and nothing else, so a sign makes another path of one, also of one that is hidden (`/%2f..+`, `/..%af_`, `/. .~`).
 */
function endsInPath(url: string): boolean {
  const [, path = ''] = /^[a-z]+:\/\/[^/?#]+([^?#]*)/i.exec(url) ?? [];
  if (path === '' || /\/(?:\.|%2e){1,2}$/i.test(path)) return false;
  const target = parseTarget(url);
  if ('problem' in target) return true;
  const { decodedPath } = target.url;
  return !hidesTraversal(decodedPath) || hidesTraversal(`${decodedPath}x`);
}

function behindPath(url: string, sign: string): string {
  const end = url.search(/[?#]/);
  return end < 0 ? url + sign : url.slice(0, end) + sign + url.slice(end);
}
