/** Shortcuts for ordinary requests, compared with the full work. */
import { describe, expect, it } from 'vitest';
import { type CanonicalUrl, parseUrl } from '../../src/domain/canonical-url.ts';
import { explain } from '../../src/policy/explain.ts';
import { traitsOf } from '../../src/policy/layers/guard-traits.ts';
import { Subject } from '../../src/policy/subject.ts';
import { findRun, runEnd, tableOf } from '../../src/policy/url/characters.ts';
import { encodedTexts } from '../../src/policy/url/encoded-texts.ts';
import { HostMap } from '../../src/policy/url/host-map.ts';
import { longValues, mutate, randomUrl, respell } from '../../tools/fuzz/urls.ts';
import { Random } from '../../tools/random.ts';
import { hostileForms } from '../evasion/hostile-urls.ts';
import { expectSame } from '../support/same.ts';
import { evidence, judge, licenseePolicy, request, shipped } from './support.ts';

const METHODS = ['GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'TRACE', 'FOO'];

function* urls(): IterableIterator<CanonicalUrl> {
  const random = new Random(3);
  const values = [...hostileForms(shipped.document).all, ...Object.values(longValues(8000))];
  for (let round = 0; round < 10_000; round++) {
    const value = randomUrl(random);
    values.push(value, respell(random, value), mutate(random, value), `${value}${'a'.repeat(random.below(600))}`);
  }
  for (const value of values) {
    const url = parseUrl(value) ?? parseUrl(`https://${value}`);
    if (url !== undefined) yield url;
  }
}

const tokensOf = (list: string): string[] => shipped.tokens.tokensIn(shipped.tokens.ordinal(list));

describe('guards that are left out', () => {
  it.each([
    ['shipped', shipped],
    ['open', licenseePolicy({}, 'open')],
    [
      'stricter',
      licenseePolicy({
        override: {
          rules: {
            scheme: { allowed: ['https'] },
            port: { allowed: [443, 8443] },
            too_long: { max_length: 100 },
            method: { allowed: ['HEAD', 'POST'] },
            method_options: { methods: ['GET', 'OPTIONS'] },
          },
        },
      }),
    ],
  ] as const)('would not have matched under the %s policy', (_name, policy) => {
    const random = new Random(4);
    let matches = 0;
    for (const url of urls()) {
      const known = evidence({ categories: ['Malware'] });
      const subject = new Subject({ url, method: random.pick(METHODS) }, known, policy.tokens);
      const found = policy.guards.filter((rule) => rule.check(subject));
      const traits = traitsOf(subject, /[0-9]/.test(subject.host));
      const asked = policy.guards.filter((rule) => (rule.needs & traits) !== 0);
      expectSame(
        asked.filter((rule) => rule.check(subject)),
        found,
      );
      matches += found.length;
    }
    expect(matches).toBeGreaterThan(10_000);
  });
});

describe('a map of hosts', () => {
  it('finds what a plain map finds', () => {
    const random = new Random(5);
    const label = (): string =>
      Array.from({ length: 1 + random.below(3) }, () => random.pick(['a', 'b', 'c1'])).join('');
    const host = (): string => Array.from({ length: 1 + random.below(3) }, label).join('.');
    const map = new HostMap<string>();
    const plain = new Map<string, string>();
    for (let i = 0; i < 60; i++) {
      const reach = random.pick(['exact', 'suffix', 'below'] as const);
      const name = host();
      map.add(name, reach, `${reach} ${name}`);
      plain.set(`${reach} ${name}`, name);
    }
    let hits = 0;
    for (let i = 0; i < 5_000; i++) {
      const name = host();
      const names = name.split('.').map((_, at, labels) => labels.slice(at).join('.'));
      const keys = names.flatMap((text, at) =>
        (at === 0 ? ['exact', 'suffix'] : ['below', 'suffix']).map((reach) => `${reach} ${text}`),
      );
      const expected = keys.filter((key) => plain.has(key));
      expectSame([...map.all(name)], expected);
      expectSame(map.find(name), expected[0]);
      if (expected.length > 0) hits++;
    }
    expect(hits).toBeGreaterThan(500);
    expect([...map.all('')]).toEqual([]);
  });
});

describe('a path with too few words for any rule', () => {
  const conditions = shipped.document.rules.flatMap(({ when = [] }) => when).filter(({ segment }) => segment);
  const lists = conditions.flatMap(({ segment, also }) => [segment, also].filter((name) => name !== undefined));
  const labels = conditions.flatMap(({ host_label: name }) => (name === undefined ? [] : tokensOf(name)));
  const wordsOf = new Map(lists.map((name) => [name, tokensOf(name)]));
  const hosts = ['example.com', 'docs.python.org', 'github.com', 'www.stripe.com', 'forum.example.fr'];
  const others = ['zzqx', '12345', '2024', '3f9ac2', 'en', 'index.php', 'my-zzqx-page', '@zzqx', 'a;b=1', 'zzqx.html'];

  /** Returns the ids of the pattern rules that match. */
  const matches = (url: string): string[] => {
    const { steps } = explain(shipped, request(url), evidence());
    return steps.find(({ step }) => step === 'pattern_rules')!.matches.map(({ id }) => id);
  };

  it('matches the same rules when it is read', () => {
    const random = new Random(21);
    const counts = { none: 0, some: 0 };
    for (let i = 0; i < 15_000; i++) {
      const segment = (): string =>
        random.chance(30) ? random.pick(others) : random.pick(wordsOf.get(random.pick(lists))!);
      const path = Array.from({ length: 1 + random.below(3) }, segment).join('/');
      const host = random.chance(30) ? `${random.pick(labels)}.example.org` : random.pick(hosts);
      const url = `https://${host}/${encodeURI(path)}${random.pick(['', '', '/', '.php', '?id=1'])}`;
      const found = matches(url);
      // A route in the fragment has the path read in any case. This one has no word of a list.
      expectSame([url, matches(`${url}#/zzqx`)], [url, found]);
      counts[found.length === 0 ? 'none' : 'some']++;
    }
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(2_000);
  });
});

describe('a run of characters', () => {
  it('is found where a regular expression finds it', () => {
    const random = new Random(11);
    const table = tableOf('ab');
    let found = 0;
    for (let round = 0; round < 20_000; round++) {
      const text = Array.from({ length: random.below(24) }, () => random.pick(['a', 'b', 'b', '-', 'é'])).join('');
      const size = 1 + random.below(5);
      const from = random.below(text.length + 1);
      // A run may begin at `from`, and after characters that are not in the table.
      const match = new RegExp(`[ab]{${size},}`).exec(text.slice(from));
      const start = findRun(text, table, size, from);
      expectSame([text, from, size, start], [text, from, size, match === null ? -1 : from + match.index]);
      if (match === null) continue;
      found++;
      expectSame(runEnd(text, table, start + size), start + match[0].length);
    }
    expect(found).toBeGreaterThan(5_000);
  });
});

describe('an encoded address of an inside place', () => {
  const address = Buffer.from('http://10.0.0.1/x');
  const spellings = [address.toString('base64url'), address.toString('hex'), `a1${address.toString('base64url')}`];

  const escaped = (text: string): string => text.replace(/[a-z]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);

  it.each([
    '/?u={}',
    '/{}',
    '/{}/',
    '/a/{}/b',
    '/docs/&u={}',
    '/docs&u={}',
    '/docs/x&u={}',
    '/docs/;u={}',
    '/docs/!u={}',
    '/docs/%26u={}',
    '/docs/%3fu={}',
    '/docs/.&u={}',
    '/docs/-&u={}&a=1',
    '/{};a=1',
    '/{}.html',
    '/x/%26%26{}',
    '/x?u=%20{}',
    '/?u=ESCAPED',
    '/ESCAPED',
  ])('is seen in %s', (path) => {
    const urls = spellings.map(
      (spelling) => `https://example.com${path.replace('{}', spelling).replace('ESCAPED', escaped(spelling))}`,
    );
    expect(urls.map((url) => judge(url))).toEqual(urls.map(() => 'deny rules/nested_internal'));
  });
});

describe('a text that may hold another one', () => {
  it('is told from others as an expression tells it', () => {
    const base64 = /(?:[A-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][\w+/-]){2}[A-Za-f][A-HQ-Xg-nw-z0-3]/;
    const hexadecimal = /(?:[2-7][0-9A-Fa-f]){8}/;
    const random = new Random(8);
    const pieces = 'aHR0cDov L2V2aWw 687474703a 2f2f65 dG8 7 g Z / - . % é page'.split(' ');
    const counts = [0, 0, 0];
    for (let i = 0; i < 20_000; i++) {
      const text = Array.from({ length: 1 + random.below(6) }, () => random.pick(pieces)).join('');
      const [inBase64, inHexadecimal] = [base64.test(text), hexadecimal.test(text)];
      expectSame(encodedTexts(text, false).length > 0, inBase64 || inHexadecimal);
      counts[inBase64 ? 0 : inHexadecimal ? 1 : 2]!++;
    }
    for (const count of counts) expect(count).toBeGreaterThan(500);
  });
});
