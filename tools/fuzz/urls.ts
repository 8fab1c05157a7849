/** URLs for the fuzzer: built from pieces that are significant to a parser or a rule, mutated, and written in other spellings. */
import type { Random } from '../random.ts';

const SCHEMES = [
  'https://',
  'http://',
  'HTTPS://',
  'ftp://',
  '',
  '//',
  'http:',
  'javascript:',
  'file://',
  'data:',
  'https:\\\\',
];
const HOSTS = [
  'example.org',
  'www.example.co.uk',
  'login.example.org',
  'docs.example.com',
  'a.b.github.io',
  '127.0.0.1',
  '0x7f.1',
  '[::1]',
  '[::ffff:10.0.0.1]',
  'localhost',
  'münchen.de',
  'xn--mnchen-3ya.de',
  'пример.рф',
  'pastebin.com',
  'x.nip.io',
  '2130706433',
  'a..b',
  'foo_bar.example.org',
  '169.254.169.254',
  'acme.okta.com',
];
const SEGMENTS = [
  'login',
  'Sign-In',
  'docs',
  'help',
  'account',
  'settings',
  'cart',
  'checkout',
  'войти',
  'ログイン',
  'index.php',
  '.env',
  '.git',
  'a',
  'upload',
  '..',
  '.',
  '%2e%2e',
  '%2f',
  '%00',
  'wp-admin',
  'blog',
  '2024',
  'title-of-a-page',
  'setup.exe',
  ';jsessionid=1',
  '%25',
  '%252e',
  '%u006cogin',
  '%c1%acogin',
  '..%c0%af',
  'login%3Fx=1',
  'a%26page=login',
  'edit',
  'oauth',
  '',
  'profile',
  'new',
];
const NAMES = [
  'page',
  'action',
  'next',
  'url',
  'q',
  'utm_source',
  'password',
  '_method',
  'id',
  'sig',
  'mode',
  'u',
  '%75rl',
  'a[b]',
  '',
];
const VALUES = [
  'login',
  'edit',
  'https://evil.org/',
  'http%3A%2F%2F127.0.0.1',
  '//10.0.0.1',
  '1',
  '',
  'AKIAIOSFODNN7EXAMPLE',
  'aGVsbG8gd29ybGQ0aGVsbG8gd29ybGQ0',
  '%',
  '+',
  'file:///etc',
  'localhost:80',
  '%25%32',
];
const NOISE = [
  '\t',
  '\n',
  ' ',
  '\\',
  '/',
  '//',
  '@',
  ':',
  '%',
  '%2',
  '#',
  '?',
  '&',
  '=',
  ';',
  '.',
  '..',
  '\u00ad',
  '。',
  '\ud800',
  '\0',
  '"',
  '<',
  '|',
  '^',
  '[',
  ']',
  'A',
  '0',
  'é',
  '😀',
];

/** Returns a random URL, or a text that looks like one. */
export function randomUrl(random: Random): string {
  let text = random.chance(85) ? random.pick(['https://', 'http://']) : random.pick(SCHEMES);
  if (random.chance(5)) text += random.pick(['user@', 'user:word@', '@']);
  text += random.pick(HOSTS);
  if (random.chance(8)) text += random.pick([':80', ':443', ':', ':8080', ':99999', ':0']);
  for (let left = random.below(5); left > 0; left--) text += `/${random.pick(SEGMENTS)}`;
  if (random.chance(40)) {
    text += '?';
    for (let left = 1 + random.below(3); left > 0; left--) text += `${random.pick(NAMES)}=${random.pick(VALUES)}&`;
  }
  if (random.chance(10)) text += random.pick(['#', '#/login', '#top', '#!/settings?x']);
  return text;
}

/** Mutates a text: inserts noise, and removes, doubles or repeats pieces. */
export function mutate(random: Random, text: string): string {
  let mutated = text;
  for (let left = 1 + random.below(4); left > 0; left--) {
    const at = random.below(mutated.length + 1);
    const end = Math.min(mutated.length, at + random.below(8));
    const kind = random.below(5);
    if (kind === 0) mutated = mutated.slice(0, at) + random.pick(NOISE) + mutated.slice(at);
    else if (kind === 1) mutated = mutated.slice(0, at) + mutated.slice(end);
    else if (kind === 2)
      mutated = mutated.slice(0, at) + random.pick(NOISE).repeat(1 + random.below(40)) + mutated.slice(at);
    else if (kind === 3) mutated = mutated.slice(0, end) + mutated.slice(at, end) + mutated.slice(end);
    else mutated = mutated.slice(0, at) + random.pick(SEGMENTS) + mutated.slice(end);
  }
  return mutated;
}

const ESCAPED_DOTS = ['%2e', '%2E', '.'];

/** Returns the URL in another spelling that a browser treats as the same. The caller checks that it is the same. */
export function respell(random: Random, text: string): string {
  const match = /^(https?):\/\/([^/?#\\]*)([^?#]*)(.*)$/su.exec(text);
  if (match === null) return text;
  const [, scheme = '', authority = '', path = '', rest = ''] = match;
  let head = random.chance(50) ? scheme.toUpperCase() : scheme;
  head += random.pick(['://', '://', '://', ':\\\\', ':', ':///']);
  let host = authority;
  if (random.chance(40)) host = [...host].map((c) => (random.chance(30) ? c.toUpperCase() : c)).join('');
  if (random.chance(10)) host = host.replace(/[a-z]/, (c) => `%${c.charCodeAt(0).toString(16)}`);
  if (random.chance(10)) host = host.replace('.', random.pick(['。', '．', '%2e']));
  if (random.chance(20) && !/:[0-9]*$/.test(host))
    host += scheme === 'http' ? ':80' : random.pick([':443', ':', ':00443']);
  let tail = path;
  if (random.chance(30))
    tail = `/x/${random.pick(ESCAPED_DOTS)}${random.pick(ESCAPED_DOTS)}${tail === '' ? '/' : tail}`;
  if (random.chance(20)) tail = `/${random.pick(ESCAPED_DOTS)}${tail === '' ? '/' : tail}`;
  let spelled = `${head}${host}${tail}${rest}`;
  if (random.chance(10)) {
    const at = random.below(spelled.length);
    spelled = `${spelled.slice(0, at)}${random.pick(['\t', '\n', '\r'])}${spelled.slice(at)}`;
  }
  if (random.chance(5)) spelled = ` ${spelled}\u0001`;
  return spelled;
}

/** Returns long values whose cost would grow faster than their length in a careless program. */
export function longValues(length: number): Readonly<Record<string, string>> {
  const fill = (piece: string, head = 'https://example.org/'): string =>
    head + piece.repeat(Math.floor((length - head.length) / piece.length));
  return {
    'one segment': fill('a'),
    'many segments': fill('a/'),
    'login segments': fill('login/'),
    'encoded segments': fill('%6c%6f/'),
    'broken escapes': fill('%'),
    'UTF-16 escapes': fill('%u006c'),
    'too long UTF-8': fill('%f8%80%81%81%ac'),
    'dots and blanks': fill('.%c2%ad'),
    'encoded blanks': fill('%20'),
    'dot segments': fill('../'),
    hyphens: fill('-'),
    dots: fill('.'),
    'non-ASCII': fill('é'),
    'many parameters': fill('a=1&', 'https://example.org/?'),
    'many logins': fill('page=login&', 'https://example.org/?'),
    'many URLs': fill('u=http://a.b/&', 'https://example.org/?'),
    'nested schemes': fill('http://', 'https://example.org/?u='),
    colons: fill(':', 'https://example.org/?u='),
    'token prefixes': fill('-eyJ', 'https://example.org/?u='),
    'dashes of a key': fill('xoxb-', 'https://example.org/?u='),
    'plus signs': fill('+', 'https://example.org/?u='),
    ampersands: fill('&', 'https://example.org/?'),
    'a query in the path': fill('page=login&', 'https://example.org/a%3F'),
    'question marks in the path': fill('%3F'),
    backslashes: fill('\\'),
    blanks: `${fill(' ', 'https://example.org/?u=x').slice(0, -1)}x`,
    'line ends': `${fill('\n').slice(0, -1)}x`,
    'at signs': fill('@', 'https://'),
    labels: fill('a.', 'https://'),
    'international labels': fill('é.', 'https://'),
    'host escapes': fill('%61', 'https://'),
    'a route': fill('login/', 'https://example.org/#/'),
    'dashes and dots': fill('a-b.c', 'https://example.org/'),
  };
}
