/** Hostile URLs by class, generated from known tricks: none may ever be allowed. */
import type { PolicyDocument } from '../../src/policy/documents.ts';
import { INTERNAL_HOSTS, INTERNAL_IPV4, ipv4Spellings, percent, UNKNOWN_HOSTS, WRAPS } from './hostile-hosts.ts';
import { ODD } from './single-urls.ts';

type Wrap = (text: string) => string;

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const base64url = (text: string): string => Buffer.from(text).toString('base64url');
const hexadecimal = (text: string): string => Buffer.from(text).toString('hex');
const unique = (forms: readonly string[]): string[] => [...new Set(forms)];
const each = (values: readonly string[], wraps: readonly Wrap[]): string[] =>
  unique(values.flatMap((value) => wraps.map((wrap) => wrap(value))));

const WHOLE_URL: readonly Wrap[] = [
  (url) => `https://example.org/?url=${url}`,
  (url) => `https://example.org/fetch?target=${encodeURIComponent(url)}`,
  (url) => `https://example.org/?x=${percent(url)}`,
  (url) => `https://example.org/proxy/${url}`,
  (url) => `https://example.org/?q=see+${encodeURIComponent(url)}`,
  (url) => `https://example.org/?a=${encodeURIComponent(`https://b.org/?c=${url}`)}`,
  (url) => `https://example.org/?a=1;u=${encodeURIComponent(url)}`,
  (url) => `https://example.org/?x=${encodeURIComponent(base64(url))}`,
  (url) => `https://example.org/?x=${base64url(url)}`,
  (url) => `https://example.org/go/${base64url(url)}`,
  (url) => `https://example.org/?x=${hexadecimal(url)}`,
  (url) => `https://example.org/img/${hexadecimal(url)}.png`,
];

const INTERNAL_URLS = [
  'http://127.0.0.1/',
  'http://127.1:8080/',
  'http://0x7f000001/',
  'http://2130706433/',
  'http://[::1]/',
  'http://[::ffff:10.0.0.1]/',
  'http://localhost/',
  'http://169.254.169.254/latest/',
  'http://metadata.google.internal/',
  'https://printer.local/',
  'file:///etc/passwd',
  'gopher://127.0.0.1:6379/_INFO',
  'http://user@10.0.0.1/',
  'http://192.168.1.1/admin',
  'http://172.16.5.4:3000/',
  'http://kubernetes.default.svc/api',
  'http://metadata.tencentyun.com/latest/',
  'http://10-0-0-1.example.net/',
  'ftp://10.0.0.1/x',
];

const SCRIPT = 'javascript:alert(document.cookie)';
/** Ways to use a whole value as a script. */
const RUN: readonly Wrap[] = WHOLE_URL.filter((wrap) => !/[ +/]javascript/i.test(wrap(SCRIPT)));

/** Parameters whose names indicate an address. */
const PLACE_PARAMETERS = 'url uri src dest target host endpoint proxy callback image feed domain'.split(' ');
const INTERNAL_PLACES = [
  'localhost',
  'localhost:8080',
  '127.0.0.1',
  '127.0.0.1/x',
  '10.0.0.1:3000/admin',
  '0x7f000001',
  '[::1]',
  '[::ffff:127.0.0.1]/',
  '169.254.169.254/latest/meta-data/',
  'metadata.google.internal',
  'printer.local',
  'wiki.corp/x',
  'user@10.0.0.1',
  '//10.0.0.1/',
  '//localhost',
  '\\\\localhost\\x',
];

const FOREIGN = ['https://evil.org/', '//evil.org/x', 'https:evil.org', 'http://evil.org:80/', 'https:\\\\evil.org'];
const LEADING: readonly Wrap[] = [
  ...'next url redirect return_to continue goto u dest'.split(' ').map(
    (name): Wrap =>
      (url) =>
        `https://example.org/?${name}=${encodeURIComponent(url)}`,
  ),
  (url) => `https://example.org/?${url}`,
  (url) => `https://example.org/out/${url}`,
  (url) => `https://example.org/?x=${base64url(url.replace(/^https:(?=[^/])/, 'https://').replaceAll('\\', '/'))}`,
];

const SECRET_PLACES: readonly Wrap[] = [
  (secret) => `https://example.org/?q=${encodeURIComponent(secret)}`,
  (secret) => `https://example.org/?${encodeURIComponent(secret)}`,
  (secret) => `https://example.org/collect/${encodeURIComponent(secret)}/x`,
  (secret) => `https://example.org/?q=${percent(secret)}`,
  (secret) => `https://example.org/?a=1&b=x%20${encodeURIComponent(secret)}`,
  (secret) => `https://docs.example.org/help?text=key:${encodeURIComponent(secret)}`,
];

const ALPHANUMERIC = 'a1B2c3D4e5F6g7H8';
/** Characters of the alphabet of each kind of credential. */
const ALPHABET: Readonly<Record<string, string>> = {
  upper_digit: 'A1B2C3D4E5F6G7H8',
  hexadecimal: 'a1b2c3d4e5f60718',
};

/** Credentials that the guard rules recognize: one of each kind, and those with a check digit. */
function secrets(document: PolicyDocument): string[] {
  const rule = document.rules.find(({ id }) => id === 'secret_in_url');
  const known = (rule?.tokens ?? []).flatMap(({ prefixes, alphabet, min_length: length, min_dots: dots = 0 }) => {
    const fill = (ALPHABET[alphabet] ?? ALPHANUMERIC).repeat(Math.ceil((length + 16) / 16));
    return prefixes.map((prefix) => `${prefix}${dots > 0 ? `${fill.slice(0, 30)}.` : ''}${fill}`);
  });
  return unique([
    ...known,
    'AKIAIOSFODNN7EXAMPLE',
    'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U',
    '-----BEGIN RSA PRIVATE KEY-----MIIE',
    '4111111111111111',
    '4111 1111 1111 1111',
    '5500-0000-0000-0004',
    '378282246310005',
    'DE89370400440532013000',
    'GB29 NWBK 6016 1331 9268 19',
    'FR1420041010050500013M02606',
  ]);
}

const NAMED_SECRETS = 'password passwd pwd api_key apikey secret client_secret access_token'.split(' ');

/** Well-known names with one lookalike letter at a time. */
function lookalikes({ lookalikes: { confusables } }: PolicyDocument): string[] {
  const names = [
    'paypal',
    'google',
    'microsoft',
    'coinbase',
    'docusign',
    'stripe',
    'klarna',
    'alipay',
    'whatsapp',
    'okta',
  ];
  return unique(
    names.flatMap((name) =>
      [...name].flatMap((letter, at) =>
        [...(confusables[letter] ?? '')]
          .filter((other) => /[^\0-\x7f]/.test(other))
          .slice(0, 6)
          .map((other) => `https://${name.slice(0, at)}${other}${name.slice(at + 1)}.com/`),
      ),
    ),
  );
}

/** Hosts that receive data, redirect or ask for credentials, and names below them. */
function listed({ hosts }: PolicyDocument): string[] {
  return unique(
    hosts.flatMap(({ host, paths = ['/'] }) => {
      const name = host.replace(/^=|^\*\./, '');
      const below = host.startsWith('=') ? [] : [`a1b2.${name}`];
      const own = host.startsWith('*') ? [] : [name];
      return [...own, ...below].flatMap((place) => paths.map((path) => `https://${place}${path}`));
    }),
  );
}

const DATA = Array.from({ length: 40 }, (_, at) =>
  base64(`row ${at}: ${'Zx9'.repeat(6)} ${at * 7919}`).replaceAll('=', ''),
);
const CARRIED: readonly Wrap[] = [
  (data) => `https://example.org/?d=${data}`,
  (data) => `https://example.org/c/${data}`,
  (data) => `https://example.org/c/${data.replace(/.{40}/g, '$&/')}`,
  (data) => `https://example.org/?${data.replace(/.{100}/g, '$&&x=')}`,
  (data) => `https://example.org/a/${hexadecimal(data)}.png`,
];
const carried = [10, 14, 18, 22, 26, 30, 34, 38].map((from) => DATA.slice(0, from + 2).join(''));

const TRAVERSALS = [
  '%2e%2e%2f',
  '..%2f',
  '%2e%2e/',
  '..%5c',
  '%2e%2e%5c',
  '..%c0%af',
  '%c0%ae%c0%ae/',
  '%u002e%u002e/',
  '..%u2215',
  '%uff0e%uff0e/',
  '..%ef%bc%8f',
  '.%C2%AD./',
  '..;/',
  '..%00/',
  '%252e%252e/',
  '..%252f',
  '..%e2%88%95',
  '..%3f/',
  '..%23/',
  '..%20/',
];
const CLIMBED: readonly Wrap[] = [
  (up) => `https://example.org/docs/${up}admin`,
  (up) => `https://example.org/docs/${up}${up}etc/passwd`,
  (up) => `https://example.org/static/x/${up}${up}.env`,
];

const SECRET_FILES =
  '.env .git/config .git/HEAD .aws/credentials .ssh/id_rsa wp-config.php.bak .htpasswd .npmrc .env.production id_rsa'.split(
    ' ',
  );
const SERVED: readonly Wrap[] = [
  (file) => `https://example.org/${file}`,
  (file) => `https://example.org/app/${file}`,
  (file) => `https://example.org/docs/${file}`,
  (file) => `https://example.org/${file.toUpperCase()}`,
  (file) => `https://example.org/${percent(file)}`,
  (file) => `https://example.org/${file};x=1`,
  (file) => `https://example.org/${file}%3Fx`,
  (file) => `https://example.org//${file}`,
];

export interface HostileForms {
  /** Class of URLs → the URLs, each once. */
  readonly classes: Readonly<Record<string, readonly string[]>>;
  /** Those whose own host is an internal address. */
  readonly addresses: readonly string[];
  /** Those that are hostile only if the host is not classified. */
  readonly unknown: readonly string[];
  readonly all: readonly string[];
}

export function hostileForms(document: PolicyDocument): HostileForms {
  const spelled = each(INTERNAL_IPV4.flatMap(ipv4Spellings), WRAPS);
  const names = each(INTERNAL_HOSTS, WRAPS);
  const unknown = each(UNKNOWN_HOSTS, WRAPS.slice(0, 2));
  const classes = {
    'addresses of inside networks, in every spelling': spelled,
    'names of inside networks': names,
    'names without a public suffix, and names that spell an address': unknown,
    'an inside URL in a parameter or a path, plain, escaped, base64, hexadecimal': [
      ...each(INTERNAL_URLS, WHOLE_URL),
      ...each([SCRIPT], RUN),
    ],
    'an inside place without a scheme': PLACE_PARAMETERS.flatMap((name) =>
      INTERNAL_PLACES.map((place) => `https://example.org/?${name}=${encodeURIComponent(place)}`),
    ),
    'leading on to another site': each(FOREIGN, LEADING),
    'a credential': each(secrets(document), SECRET_PLACES),
    'a credential by the name of its parameter': NAMED_SECRETS.map(
      (name) => `https://example.org/?x=1&${name}=hunter2hunter2`,
    ),
    'a well-known name in letters that look alike': lookalikes(document),
    'hosts that are listed': listed(document),
    'much data': each(carried, CARRIED),
    'climbing out of a path': each(TRAVERSALS, CLIMBED),
    'files that nobody serves on purpose': each(SECRET_FILES, SERVED),
    'single forms': unique(ODD),
  };
  return { classes, addresses: [...spelled, ...names], unknown, all: unique(Object.values(classes).flat()) };
}
