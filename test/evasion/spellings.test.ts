/** Encodings that some reader decodes do not hide an internal address, a credential or the name of a parameter: each spelling in each position. */
import { describe, expect, it } from 'vitest';
import { judge } from '../policy/support.ts';

type Spelling = (text: string) => string;

const hex = (text: string): string => Buffer.from(text).toString('hex');
const base64 = (text: string): string => encodeURIComponent(Buffer.from(text).toString('base64'));
const each = (text: string, turn: Spelling): string => [...text].map(turn).join('');
const wide = (text: string): string =>
  encodeURIComponent(each(text, (sign) => String.fromCharCode(sign.charCodeAt(0) + 0xfee0)));
const unicode = (text: string): string => each(text, (sign) => `\\u00${hex(sign)}`);

/** Ways to spell an ASCII text. */
const SPELLINGS: Readonly<Record<string, Spelling>> = {
  'full-width letters': wide,
  'a soft hyphen': (text) => encodeURIComponent(`${text.slice(0, 2)}\u00ad${text.slice(2)}`),
  'an invisible sign in front': (text) => encodeURIComponent(`\u200b${text}`),
  'entities of HTML': (text) => encodeURIComponent(each(text, (sign) => `&#x${hex(sign)};`)),
  'decimal entities': (text) => encodeURIComponent(each(text, (sign) => `&#${sign.charCodeAt(0)};`)),
  base64,
  'base64 for URLs': (text) => Buffer.from(text).toString('base64url'),
  'base64 of JSON': (text) => base64(JSON.stringify({ ä: 1, u: text })),
  'base64 of an escaped text': (text) => base64(encodeURIComponent(text)),
  'base64 in lines': (text) => base64(text).replace(/\w{8}/g, '$&%0d%0a'),
  'base64 after a word': (text) => `Bearer%20${base64(text)}`,
  hexadecimal: hex,
  'hexadecimal with its sign': (text) => `0x${hex(text).toUpperCase()}`,
};
/** More of them, for query values only: in a path a backslash is denied anyway. */
const IN_VALUES: Readonly<Record<string, Spelling>> = {
  'escapes of JSON': (text) => encodeURIComponent(unicode(text)),
  'escapes of JavaScript': (text) => encodeURIComponent(each(text, (sign) => `\\x${hex(sign)}`)),
  'escapes in JSON': (text) => encodeURIComponent(`{"u":"${unicode(text)}"}`),
};

const VALUES = [
  '/?x={}',
  '/?url={}',
  '/?x=1&x={}',
  '/?a=1;x={}',
  '/?a[]={}',
  '/?x=a,{}',
  '/?x=a%20{}',
  '/?{}',
  '/?{}=1',
];
const PATHS = ['/{}', '/a/{}', '/a/{}/b', '/a/{}.png', '/a;x={}', '/a&x={}', '/a%26x={}', '/a//{}', '/a/-/{}', '/a,{}'];

const ADDRESSES = [
  'http://10.0.0.1/x',
  'Http://127.0.0.1/',
  'http://169.254.169.254/latest/meta-data/',
  'http://[::1]/x',
  'http://localhost:8080/',
  'gopher://127.0.0.1:6379/_INFO',
  'dict://127.0.0.1:11211/',
];
const SECRETS = ['AKIAIOSFODNN7EXAMPLE', `ghp_${'a1B2c3D4e5'.repeat(4)}`, 'DE89370400440532013000'];

const place = (path: string, text: string): string => `https://example.com${path.replace('{}', () => text)}`;

describe.each([
  ['an inside address', 'deny rules/nested_internal', ADDRESSES],
  ['a credential', 'deny rules/secret_in_url', SECRETS],
])('%s', (_name, expected, texts) => {
  const all = [
    ...Object.entries(SPELLINGS).map(([name, spell]) => [name, spell, [...VALUES, ...PATHS]] as const),
    ...Object.entries(IN_VALUES).map(([name, spell]) => [name, spell, VALUES] as const),
  ];
  it.each(all)('is detected in %s', (_spelling, spell, places) => {
    const urls = places.flatMap((path) => texts.map((text) => place(path, spell(text))));
    expect(urls.filter((url) => !judge(url).startsWith('deny'))).toEqual([]);
    expect(urls.some((url) => judge(url) === expected)).toBe(true);
  });
});

describe('an internal address in text that clients ignore', () => {
  const long = 'p'.repeat(700);
  it.each([
    'http://example.org,b@10.0.0.1/',
    `http://example.org:${long}@10.0.0.1/`,
    'http://example.org%23@10.0.0.1/',
    'http://example.org%3Fa@10.0.0.1/',
    `http://example.org:${long}%23@10.0.0.1/`,
    'http://[fe80::1%25eth0]/',
    'http://[::1%25lo]:80/x',
  ])('is detected in %s', (text) => {
    const urls = [...VALUES, ...PATHS].map((path) => place(path, text));
    expect(urls.filter((url) => !judge(url).startsWith('deny rules/nested_internal'))).toEqual([]);
  });

  it.each(['http:%09//10.0.0.1/', 'http:/%0a/10.0.0.1/', '/%09/10.0.0.1/', '%22//10.0.0.1/%22', '%3C//10.0.0.1/%3E'])(
    'is detected in %s',
    (text) => {
      const urls = ['/?x={}', '/?url={}', '/?{}', '/?a=1;x={}'].map((path) => place(path, text));
      expect(urls.map((url) => judge(url))).toEqual(urls.map(() => 'deny rules/nested_internal'));
    },
  );

  it.each([
    '/?x=a,http:%09//10.0.0.1/',
    '/?u=view-source:http://b.org',
    '/#/x?url=http://10.0.0.1/',
    '/#?u=//127.0.0.1',
  ])('is detected in %s', (path) => {
    expect(judge(place(path, ''))).toBe('deny rules/nested_internal');
  });

  it('is detected if it is short, in base64', () => {
    const texts = ['//[::1]', '//127.1', 'ftp://h/', 'http://h'];
    const urls = texts.flatMap((text) => [...VALUES, ...PATHS].map((path) => place(path, base64(text))));
    expect(urls.filter((url) => judge(url) !== 'deny rules/nested_internal')).toEqual([]);
  });

  it('is detected after many that are not internal', () => {
    const outside = `a=${base64('//b.org/x')}&`.repeat(20);
    expect(judge(`https://example.com/?${outside}u=${base64('//10.0.0.1/')}`)).toBe('deny rules/nested_internal');
  });

  it('is not detected if no client would read one', () => {
    const urls = ['/?u=mailto:me@example.org', '/?x=a@10.0.0.1', '/?x=see%20http://example.com/@10.0.0.1'];
    expect(urls.map((path) => judge(`https://example.com${path}`))).toEqual(
      urls.map(() => 'allow default/classified_read'),
    );
  });
});

describe('a name or a word', () => {
  it.each([
    ['/?_method[0]=DELETE', 'deny rules/method_override'],
    ['/?x[_method][]=DELETE', 'deny rules/method_override'],
    ['/?action[0]=logout', 'deny rules/action_get'],
    ['/?form[action][0]=logout', 'deny rules/action_get'],
    ['/?url[0]=localhost:8080', 'deny rules/nested_internal'],
    ['/?page=login%00.jpg', 'deny rules/login'],
    ['/?page=%26%23108;ogin', 'deny rules/login'],
    ['/?_%5Cu006dethod=DELETE', 'deny rules/method_override'],
    ['/logout.php/x.css', 'deny rules/action_get'],
    ['/x/logout.aspx/a/b', 'deny rules/action_get'],
    ['/subscribe.cgi/x', 'deny rules/subscribe'],
    ['/logout.html/x', 'allow default/classified_read'],
  ])('is detected: %s', (path, expected) => {
    expect(judge(`https://example.com${path}`)).toBe(expected);
  });
});
