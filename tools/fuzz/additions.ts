/** The fuzzer's second property: no addition to a URL, and no other spelling of it, turns a deny or a flag into an allow. */
import { domainToASCII, domainToUnicode } from 'node:url';
import { hidesTraversal } from '../../src/domain/dot-segments.ts';
import { parseTarget } from '../../src/domain/target.ts';
import type { Policy } from '../../src/policy/policy.ts';
import type { Verdict } from '../../src/policy/types.ts';
import { Random } from '../random.ts';
import { mutate, randomUrl } from './urls.ts';
import { judgeValue, verdictText } from './verdict.ts';

/** Rules whose matches depend on the case of letters: a key or base64 text in another case is a different one, or not valid. */
const CASE_RULES: ReadonlySet<string> = new Set(['secret_in_url', 'bulk_query', 'open_redirect', 'nested_internal']);

/** Characters that follow a URL in running text, and suffixes that some servers drop at the end of a name. */
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
  // A parameter of an empty segment.
  '/;x=1',
  // A parameter where a query should begin.
  '&x=1',
  '&x=',
  '%26x=',
];
/** Suffixes that end a path for servers that decode it before they parse it. */
const ENCODED_QUERIES = ['%3Fx=1', '%3Fx', '%23x', '%26x=1', '&x=1', '%3F', '/%3Fx=1', '/&x=1', '%3fx=1%26y=2'];

/** Segments that name nothing. */
const EMPTY_SEGMENTS = ['/', '//', '/.', '/%20', '/%E2%80%8B', '/;x=1', '/;', '/%2F', '/...'];

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
  '',
  '&',
  ';',
  ';x=1',
  'x[]=1',
  '?x=1',
];

const LANGUAGES = ['en', 'de', 'en-us', 'pt-BR', 'zh-hans', 'fr_FR', 'us/en'];
const INDEX_FILES = ['/index.html', '/index.php', '/index.htm', '/default.aspx', '/Index.jsp'];
const SEGMENT_PARAMETERS = [';jsessionid=0A1B2C', ';x=1', ';', ';a=b;c=d', ';v=1.0'];

/** A URL up to the end of its host, without a user and a port. */
const BARE_HOST = /^(https?:\/\/[^/?#:@]+)(?=[/?#]|$)/i;
/** The same for a host that is a name with at least one dot. */
const NAMED_HOST = /^(https?:\/\/[a-z][^/?#:@]*\.[a-z]{2,})(?=[/?#]|$)/i;

/** The scheme and the host of a URL. Does not match a host with a percent escape, which has its own rule. */
const PLAIN_HOST = /^(https?:\/\/)([^/?#:@%\\\s]+)(?=[/?#]|$)/i;

/** The kinds of additions. Each returns the changed URL, or the same URL if it cannot be applied. */
const ADDITIONS = {
  'a fragment': (random, url) => (url.includes('#') ? url : `${url}#${random.pick(FRAGMENTS)}`),
  'a parameter': (random, url) => withParameter(url, random.pick(PARAMETERS), random.chance(50)),
  'a parameter of a route': (random, url) =>
    /#[/!]/.test(url) ? `${url}${url.includes('?', url.indexOf('#')) ? '&' : '?'}${random.pick(PARAMETERS)}` : url,
  'another case': (random, url) => otherCase(random, url),
  'a sign at the end': (random, url) => (endsInPath(url) ? url + random.pick(TRAILING_SIGNS) : url),
  'a sign behind the path': (random, url) => (endsInPath(url) ? behindPath(url, random.pick(TRAILING_SIGNS)) : url),
  'an encoded query behind the path': (random, url) =>
    endsInPath(url) ? behindPath(url, random.pick(ENCODED_QUERIES)) : url,
  'a language in front': (random, url) => withLanguage(url, random.pick(LANGUAGES)),
  'an index file': (random, url) => (isFolder(url) ? behindPath(url, random.pick(INDEX_FILES)) : url),
  // Front pages have no AMP form.
  'amp behind': (random, url) =>
    isFolder(url) && !isFront(url) ? behindPath(url, random.pick(['/amp', '/amp/'])) : url,
  'a segment parameter': (random, url) => behindSegment(random, url, random.pick(SEGMENT_PARAMETERS)),
  'an empty segment': (random, url) => insteadOfSlash(random, url, `${random.pick(EMPTY_SEGMENTS)}/`, true),
  'another slash': (random, url) => insteadOfSlash(random, url, random.pick(['//', '/./', '///', '%2F', '%2f'])),
  'an escape': (random, url) => withEscape(random, url),
  'another port': (random, url) => url.replace(BARE_HOST, `$1${random.pick([':8443', ':443', ':80', ':'])}`),
  'a user': (random, url) => url.replace(BARE_HOST, (host) => host.replace('//', `//${random.pick(['a@', 'a:b@'])}`)),
  'www in front': (_random, url) => url.replace(NAMED_HOST, (host) => host.replace('//', '//www.')),
  'a dot behind the host': (_random, url) => url.replace(NAMED_HOST, '$1.'),
  'another form of the host': (_random, url) =>
    url.replace(PLAIN_HOST, (_whole, before, host) => before + otherForm(host)),
  'another scheme': (_random, url) => url.replace(/^http(s?):/i, (_whole, s) => (s === '' ? 'https:' : 'http:')),
  'another order': (random, url) => inOtherOrder(random, url),
  'a parameter again': (random, url) => withParameterAgain(random, url),
} as const satisfies Readonly<Record<string, (random: Random, url: string) => string>>;

export type Addition = keyof typeof ADDITIONS;

export interface AdditionReport {
  /** Number of denied or flagged URLs that were tested, by kind of addition. */
  readonly tried: Readonly<Record<Addition, number>>;
  readonly failures: readonly string[];
}

const FAILURES_MAX = 10;
/** Number of additions that are combined in one URL. */
const STEPS = 6;

/** Runs the fuzzer on generated URLs and on some of `urls`. Stops after a few failures. */
export function fuzzAdditions(
  policy: Policy,
  seed: number,
  count: number,
  urls: readonly string[] = [],
): AdditionReport {
  const random = new Random(seed);
  const words = wordsByList(policy);
  const kinds = Object.keys(ADDITIONS) as Addition[];
  const tried = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<Addition, number>;
  const failures: string[] = [];
  for (let at = 0; at < count && failures.length < FAILURES_MAX; at++) {
    const url = urls.length > 0 && random.chance(40) ? random.pick(urls) : randomAct(random, policy, words);
    // An allowed URL is declared a verified login page, so that it is denied.
    const page = judgeValue(policy, url, 'GET')?.verdict === 'allow' ? pageOf(url) : undefined;
    const verdict = judgeValue(policy, url, 'GET', page);
    if (verdict === undefined || verdict.verdict === 'allow') continue;
    const add = (kind: Addition, to: string, before: Verdict): string => {
      const other = ADDITIONS[kind](random, to);
      if (other === to || !isBound(before, kind)) return to;
      tried[kind]++;
      if (judgeValue(policy, other, 'GET', page)?.verdict !== 'allow') return other;
      const where = page === undefined ? '' : `, with the page ${JSON.stringify(page)}`;
      failures.push(
        `${kind}: ${JSON.stringify(to)} gets ${verdictText(before)}, ${JSON.stringify(other)} is allowed${where}`,
      );
      return to;
    };
    for (const kind of kinds) add(kind, url, verdict);
    // Several additions are combined: none may weaken the verdict before it.
    for (let left = STEPS, steps = url; left > 0; left--) {
      const before = judgeValue(policy, steps, 'GET', page);
      if (before !== undefined) steps = add(random.pick(kinds), steps, before);
    }
  }
  return { tried, failures };
}

/**
 * Returns the URL as a record would have it as a verified page. Undefined for URLs that records never have: path or fragment hold an encoded
 * query, the last segment of the path has only special characters, or the fragment does.
 */
function pageOf(url: string): string | undefined {
  const target = parseTarget(url);
  if ('problem' in target) return undefined;
  const { href, decodedPath, fragment, queryMark } = target.url;
  if (queryMark >= 0 || /[?&]|%3F|%23|%26|^[^a-z0-9%]+$/i.test(fragment)) return undefined;
  return /(?:^|[\p{L}\p{N}])[^\p{L}\p{N}/]*\/*$/u.test(decodedPath) ? href : undefined;
}

/** Whether the property applies to a verdict and a kind of addition. */
function isBound({ verdict, layer, id }: Verdict, kind: Addition): boolean {
  // Verified pages and listed paths of a host exist only in their own language.
  if (kind === 'a language in front' && layer !== 'rules') return false;
  return verdict !== 'allow' && !(kind === 'another case' && CASE_RULES.has(id));
}

/** Segments of URLs that are not words of the policy. */
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

/** Returns the policy's words by list. Picking a list first gives the words of short lists, such as those for contexts, a fair chance. */
function wordsByList({ tokens }: Policy): readonly (readonly string[])[] {
  return tokens.names.map((_name, ordinal) => tokens.tokensIn(ordinal)).filter((words) => words.length > 0);
}

/** Inserts a special character into a word: some servers treat the rest as an extension, others as part of the word. */
function cutWord(random: Random, word: string): string {
  const at = 1 + random.below(Math.max(1, word.length - 1));
  return word.slice(0, at) + random.pick(['.', '.', '.', '-', ';', '!', '&', '%3F', '%2f']) + word.slice(at);
}

/** Returns a URL of words and hosts of the policy and of ordinary segments. Most of these URLs are denied. */
function randomAct(random: Random, policy: Policy, words: readonly (readonly string[])[]): string {
  if (random.chance(20)) return (random.chance(50) ? randomUrl(random) : mutate(random, randomUrl(random))).trim();
  const plain = (): string => encodeURIComponent(random.pick(random.pick(words)));
  const word = (): string => (random.chance(15) ? cutWord(random, plain()) : plain());
  const piece = (): string => random.pick([word, word, () => random.pick(PIECES)])();
  const { host } = random.pick(policy.document.hosts);
  let url = random.pick([
    'https://example.org',
    'https://example.org',
    `https://${random
      .pick(random.pick(words))
      .replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, '-')
      .toLowerCase()}.example.org`,
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

/** Converts a host from punycode to Unicode or the reverse. Returns it unchanged if it has no other form. */
function otherForm(host: string): string {
  const ascii = domainToASCII(host);
  if (ascii === '') return host;
  if (ascii !== host) return ascii;
  // A host with invalid punycode has no other form.
  const unicode = domainToUnicode(host);
  return domainToASCII(unicode) === host ? unicode : host;
}

function withoutFragment(url: string): string {
  return url.split('#', 1)[0]!;
}

function withParameter(url: string, parameter: string, isFirst: boolean): string {
  const fragment = url.slice(withoutFragment(url).length);
  const [path = '', ...query] = withoutFragment(url).split('?');
  if (query.length === 0) return `${path}?${parameter}${fragment}`;
  const present = query.join('?');
  return `${path}?${isFirst ? `${parameter}&${present}` : `${present}&${parameter}`}${fragment}`;
}

/** Changes the case of letters in path, query and fragment, except in percent escapes, whose case never matters. */
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
 * Whether a character can be appended to the path without changing its meaning. Without a path, it would be appended to the host and make another
 * host. By the URL standard, a segment is a dot segment only if it has nothing but dots. So appending to a dot segment makes another path, also
 * to a hidden one (`/%2f..+`, `/..%af_`, `/. .~`).
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

/** Splits a URL at its path. Undefined without a path, and for one with dot segments, which name another path. */
function pathOf(url: string): readonly [before: string, path: string, behind: string] | undefined {
  const [, before = '', path = '', behind = ''] = /^(https?:\/\/[^/?#]+)(\/[^?#]*)(.*)$/is.exec(url) ?? [];
  return path === '' || /\.\.|%2e|\/\./i.test(path) ? undefined : [before, path, behind];
}

/** Inserts a language as the first segment. Only for example hosts: on known hosts the first segment can be the name of an owner. */
function withLanguage(url: string, language: string): string {
  const [before = '', path, behind] = pathOf(url) ?? [];
  if (path === undefined || path === '/' || /^(?:\/|%2f)+[a-z]{2}(?:[-_/;]|%2f|$)/i.test(path)) return url;
  return /\/\/(?:(?:www|login|mail|my|shop)\.)?example[^.]*\.(?:org|com)$/i.test(before)
    ? `${before}/${language}${path}${behind}`
    : url;
}

/** Whether the last segment of the path may be a folder: a name without an extension. */
function isFolder(url: string): boolean {
  const [, path = ''] = pathOf(url) ?? [];
  return endsInPath(url) && /\/(?![^a-z0-9/]*;)[^/.]*(?<!%|%.)[a-z0-9]$/i.test(path);
}

/** Whether the path is only a language. */
function isFront(url: string): boolean {
  const [, path = ''] = pathOf(url) ?? [];
  return /^\/+(?:[a-z]{2}\/)?[a-z]{2}(?:[-_][a-z]{2,4})?$/i.test(path.replace(/;[^/]*/g, ''));
}

/** Appends a text to a random segment of the path that is not empty. */
function behindSegment(random: Random, url: string, text: string): string {
  const [before, path, behind] = pathOf(url) ?? [];
  if (path === undefined || !endsInPath(url)) return url;
  const segments = path.split('/');
  const at = 1 + random.below(segments.length - 1);
  if (!/[a-z0-9]$/i.test(segments[at]!)) return url;
  segments[at] += text;
  return before + segments.join('/') + behind;
}

/** Replaces a random slash of the path by a text. The first slash is only included with `withFirst`. */
function insteadOfSlash(random: Random, url: string, text: string, withFirst = false): string {
  const [before, path, behind] = pathOf(url) ?? [];
  if (path === undefined) return url;
  // Not the slashes of a URL inside the path.
  const slashes = [...path.matchAll(/(?<![/:])\/(?!\/)/g)]
    .map(({ index }) => index)
    .filter((at) => at > 0 || withFirst);
  if (slashes.length === 0) return url;
  const at = random.pick(slashes);
  return before + path.slice(0, at) + text + path.slice(at + 1) + behind;
}

/** Percent-encodes one letter of path or query. */
function withEscape(random: Random, url: string): string {
  const start = url.indexOf('/', url.indexOf('://') + 3);
  if (start < 0) return url;
  const text = withoutFragment(url).slice(start);
  const letters = [...text.matchAll(/(?<!%|%.|%u.{0,3})[a-z]/gi)].map(({ index }) => start + index);
  if (letters.length === 0) return url;
  const at = random.pick(letters);
  const hex = url.charCodeAt(at).toString(16);
  return `${url.slice(0, at)}%${random.chance(50) ? hex.toUpperCase() : hex}${url.slice(at + 1)}`;
}

/** Replaces the query parameters by the result of `change`. Returns the URL unchanged if it has fewer than `least` parameters. */
function withParameters(url: string, least: number, change: (parameters: string[]) => string[]): string {
  const text = withoutFragment(url);
  const mark = text.indexOf('?');
  const parameters = mark < 0 ? [] : text.slice(mark + 1).split('&');
  if (parameters.length < least) return url;
  return `${text.slice(0, mark)}?${change(parameters).join('&')}${url.slice(text.length)}`;
}

function inOtherOrder(random: Random, url: string): string {
  const other = withParameters(url, 2, (parameters) => {
    const [moved] = parameters.splice(random.below(parameters.length), 1);
    return parameters.toSpliced(random.below(parameters.length + 1), 0, moved!);
  });
  // Trailing whitespace is not part of a value that is looked up.
  return /\s$/.test(other) ? url : other;
}

function withParameterAgain(random: Random, url: string): string {
  return withParameters(url, 1, (parameters) => [...parameters, random.pick(parameters)]);
}
