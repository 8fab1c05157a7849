/** The fuzzer's second property: what anyone can add to a URL, or write otherwise, never makes an allow of a denial or of a flag. */
import { domainToASCII, domainToUnicode } from 'node:url';
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
/** What ends a path for servers that decode before they look. */
const ENCODED_QUERIES = ['%3Fx=1', '%3Fx', '%23x', '%26x=1', '&x=1', '%3F', '/%3Fx=1', '/&x=1', '%3fx=1%26y=2'];

/** What stands between slashes and names nothing. */
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
/** The same where the host is a name below another one. */
const NAMED_HOST = /^(https?:\/\/[a-z][^/?#:@]*\.[a-z]{2,})(?=[/?#]|$)/i;

/** A host, and what stands before it; none with an escape, which is judged by itself. */
const PLAIN_HOST = /^(https?:\/\/)([^/?#:@%\\\s]+)(?=[/?#]|$)/i;

/** The kinds of additions: what each makes of a URL. */
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
  // Of a front page there is no such form.
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
  /** Denials and flags to which something was added, by kind. */
  readonly tried: Readonly<Record<Addition, number>>;
  readonly failures: readonly string[];
}

const FAILURES_MAX = 10;
/** So many things are added to one URL. */
const STEPS = 6;

/** Runs the fuzzer on URLs of its own and on some of `urls`; stops after a few failures. */
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
    // What is allowed is denied where it is a verified login page.
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
    // Several things can be added, one after the other: none lifts what stands before it.
    for (let left = STEPS, steps = url; left > 0; left--) {
      const before = judgeValue(policy, steps, 'GET', page);
      if (before !== undefined) steps = add(random.pick(kinds), steps, before);
    }
  }
  return { tried, failures };
}

/**
 * A URL as a record has the page; undefined where path or fragment hold an encoded query, where the path ends with a segment of signs
 * alone, or where the fragment is nothing else, as none of a record does.
 */
function pageOf(url: string): string | undefined {
  const target = parseTarget(url);
  if ('problem' in target) return undefined;
  const { href, decodedPath, fragment, queryMark } = target.url;
  if (queryMark >= 0 || /[?&]|%3F|%23|%26|^[^a-z0-9%]+$/i.test(fragment)) return undefined;
  return /(?:^|[\p{L}\p{N}])[^\p{L}\p{N}/]*\/*$/u.test(decodedPath) ? href : undefined;
}

/** Whether the property speaks of a verdict and a kind of addition. */
function isBound({ verdict, layer, id }: Verdict, kind: Addition): boolean {
  // A verified page, and a place of a host that is listed, are in their own language.
  if (kind === 'a language in front' && layer !== 'rules') return false;
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

/** The policy's words by list: most lists that say where a word counts are short. */
function wordsByList({ tokens }: Policy): readonly (readonly string[])[] {
  return tokens.names.map((_name, ordinal) => tokens.tokensIn(ordinal)).filter((words) => words.length > 0);
}

/** A word with a sign within: some readers take what follows for an extension, others for the rest of the word. */
function cutWord(random: Random, word: string): string {
  const at = 1 + random.below(Math.max(1, word.length - 1));
  return word.slice(0, at) + random.pick(['.', '.', '.', '-', ';', '!', '&', '%3F', '%2f']) + word.slice(at);
}

/** A URL of the policy's own words, hosts and ordinary pieces: most of them are denied. */
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

/** A host in Unicode where it is in punycode, in punycode where it is not; the same where it has no other form. */
function otherForm(host: string): string {
  const ascii = domainToASCII(host);
  if (ascii === '') return host;
  if (ascii !== host) return ascii;
  // What is no punycode of the standard has no other form.
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

/** The path of a URL that has one, with what stands before and behind it. None with dot segments, which name another one. */
function pathOf(url: string): readonly [before: string, path: string, behind: string] | undefined {
  const [, before = '', path = '', behind = ''] = /^(https?:\/\/[^/?#]+)(\/[^?#]*)(.*)$/is.exec(url) ?? [];
  return path === '' || /\.\.|%2e|\/\./i.test(path) ? undefined : [before, path, behind];
}

/** Puts a language in front, on a host of which nothing is known: on others a first segment is the name of an owner. */
function withLanguage(url: string, language: string): string {
  const [before = '', path, behind] = pathOf(url) ?? [];
  if (path === undefined || path === '/' || /^(?:\/|%2f)+[a-z]{2}(?:[-_/;]|%2f|$)/i.test(path)) return url;
  return /\/\/(?:(?:www|login|mail|my|shop)\.)?example[^.]*\.(?:org|com)$/i.test(before)
    ? `${before}/${language}${path}${behind}`
    : url;
}

/** Whether the path ends with what may be a folder: a name without an extension. */
function isFolder(url: string): boolean {
  const [, path = ''] = pathOf(url) ?? [];
  return endsInPath(url) && /\/(?![^a-z0-9/]*;)[^/.]*(?<!%|%.)[a-z0-9]$/i.test(path);
}

/** Whether the path is a language alone. */
function isFront(url: string): boolean {
  const [, path = ''] = pathOf(url) ?? [];
  return /^\/+(?:[a-z]{2}\/)?[a-z]{2}(?:[-_][a-z]{2,4})?$/i.test(path.replace(/;[^/]*/g, ''));
}

/** Puts a text behind one segment of the path that has a name. */
function behindSegment(random: Random, url: string, text: string): string {
  const [before, path, behind] = pathOf(url) ?? [];
  if (path === undefined || !endsInPath(url)) return url;
  const segments = path.split('/');
  const at = 1 + random.below(segments.length - 1);
  if (!/[a-z0-9]$/i.test(segments[at]!)) return url;
  segments[at] += text;
  return before + segments.join('/') + behind;
}

/** Puts a text in the place of one slash of the path; of the first one only where that stays one. */
function insteadOfSlash(random: Random, url: string, text: string, withFirst = false): string {
  const [before, path, behind] = pathOf(url) ?? [];
  if (path === undefined) return url;
  // Not those of a URL in the path.
  const slashes = [...path.matchAll(/(?<![/:])\/(?!\/)/g)]
    .map(({ index }) => index)
    .filter((at) => at > 0 || withFirst);
  if (slashes.length === 0) return url;
  const at = random.pick(slashes);
  return before + path.slice(0, at) + text + path.slice(at + 1) + behind;
}

/** Escapes one letter of path or query. */
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

/** The parameters of a query as `change` makes them; the URL itself where it has fewer than `least`. */
function withParameters(url: string, least: number, change: (parameters: string[]) => string[]): string {
  const whole = withoutFragment(url);
  const mark = whole.indexOf('?');
  const parameters = mark < 0 ? [] : whole.slice(mark + 1).split('&');
  if (parameters.length < least) return url;
  return `${whole.slice(0, mark)}?${change(parameters).join('&')}${url.slice(whole.length)}`;
}

function inOtherOrder(random: Random, url: string): string {
  const other = withParameters(url, 2, (parameters) => {
    const [moved] = parameters.splice(random.below(parameters.length), 1);
    return parameters.toSpliced(random.below(parameters.length + 1), 0, moved!);
  });
  // Blanks at the end are no part of a value that is asked about.
  return /\s$/.test(other) ? url : other;
}

function withParameterAgain(random: Random, url: string): string {
  return withParameters(url, 1, (parameters) => [...parameters, random.pick(parameters)]);
}
