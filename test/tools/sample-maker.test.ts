/** The rules by which the sample maker takes facts from its sources, tested with small folders. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkIabTable, readIabTable } from '../../tools/sample/make-iab.ts';
import { lineOf } from '../../tools/sample/make-sample.ts';
import { mappingProblems, readMapping } from '../../tools/sample/mapping.ts';
import { comparePages, pageFacts } from '../../tools/sample/pages.ts';
import type { SampleRecord } from '../../tools/sample/record.ts';
import { domainListFacts, newscatcherFacts, smallwebFacts } from '../../tools/sample/sources.ts';

let root = '';
const mapping = readMapping();

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'pagegate-sample-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function stage(path: string, lines: readonly string[]): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), gzipSync(lines.map((line) => `${line}\n`).join('')));
}

describe('page rules', () => {
  const admitted = (...rows: string[][]): string[] => {
    const text = rows.map(([source, kind, evidence, given, url]) =>
      [source, kind, evidence, 'label', given, url].join('\t'),
    );
    stage('page-sources/page-urls.tsv.gz', ['source\ttype\tevidence\tlabel\tgiven_domain\turl', ...text]);
    return pageFacts(root, mapping).map(({ domain, type, url }) => `${domain} ${type} ${url}`);
  };

  it.each([
    ['a source that is not listed', ['tosdr', 'legal', 'field', '', 'https://example.com/privacy']],
    ['a kind without a rule', ['simple-icons', 'brand', 'field', '', 'https://example.com/brand']],
    [
      'a page on another domain than its own',
      ['jdm', 'account_delete', 'field', 'example.com', 'https://example.org/account'],
    ],
    ['a page of a host of many', ['public-apis', 'docs', 'list', '', 'https://github.com/some/project']],
    ['a bare home page of a list', ['public-apis', 'docs', 'list', '', 'https://example.com/']],
    ['a script’s link', ['sp500-crawl', 'about', 'label', '', 'https://careers.example.com/about#']],
    ['an address', ['docsearch', 'docs', 'field', '', 'http://192.0.2.1/docs']],
    ['another scheme', ['docsearch', 'docs', 'field', '', 'ftp://example.com/docs']],
    ['an endpoint that only accepts a form', ['yt-dlp', 'login', 'path', '', 'https://www.example.com/v1/login']],
    [
      'a privacy page given for account deletion',
      ['jdm', 'account_delete', 'field', 'example.com', 'https://example.com/privacy'],
    ],
  ])('leave out %s', (_, row) => {
    expect(admitted(row)).toEqual([]);
  });

  it.each([
    [
      'an account page',
      ['jdm', 'account_delete', 'field', 'example.com', 'https://www.example.com/account/delete'],
      'example.com account',
    ],
    [
      'an article about it',
      ['jdm', 'account_delete', 'field', 'example.com', 'https://help.example.com/delete'],
      'example.com help',
    ],
    [
      'a subdomain that is given',
      ['2fa', 'docs', 'field', 'shop.example.com', 'https://shop.example.com/2fa'],
      'shop.example.com help',
    ],
    [
      'the registrable domain if none is given',
      ['docsearch', 'docs', 'field', '', 'https://docs.example.com/a'],
      'example.com docs',
    ],
    ['a private suffix', ['docsearch', 'docs', 'field', '', 'https://me.github.io/a'], 'me.github.io docs'],
  ])('file %s', (_, row, expected) => {
    expect(admitted(row)).toEqual([`${expected} ${row[4]}`]);
  });

  it('leave out a type that occurs on more than three hosts of a domain', () => {
    const rows = ['a', 'b', 'c'].map((host) => ['docsearch', 'docs', 'field', '', `https://${host}.example.com/docs`]);
    expect(admitted(...rows)).toHaveLength(3);
    expect(admitted(...rows, ['docsearch', 'docs', 'field', '', 'https://d.example.com/docs'])).toEqual([]);
  });

  it('prefer the better evidence, https, the shorter URL, and any other page to an authorization page', () => {
    const page = (url: string, evidence = 'field', second = false) => ({
      ...{ source: 's', domain: 'd', type: 't', url, evidence, second },
    });
    const sorted = [
      page('https://a.example/login', 'path'),
      page('https://a.example/oauth', 'field', true),
      page('http://a.example/'),
      page('https://a.example/longer'),
      page('https://a.example/list', 'list'),
      page('https://a.example/'),
    ].sort(comparePages);
    expect(sorted.map(({ url, evidence }) => `${evidence} ${url}`)).toEqual([
      'field https://a.example/',
      'field https://a.example/longer',
      'field http://a.example/',
      'list https://a.example/list',
      'path https://a.example/login',
      'field https://a.example/oauth',
    ]);
  });
});

describe('sources', () => {
  it('give a language from a site’s main feed on its own host, and only if feeds agree', () => {
    stage('lang/newscatcher-feeds.tsv.gz', [
      'clean_url\tlanguage\ttopic\tmain\tcountry\trss_url\tglobal_rank',
      'own.example\tde\tsport\t1\tNone\thttps://www.own.example/feed\t77',
      'side.example\tko\ttech\tNone\tNone\thttps://side.example/feed\t78',
      'foreign.example\ten\tnews\t1\tNone\thttps://other.example/feed\t79',
      'two.example\ten\tnews\t1\tNone\thttps://two.example/a\tNone',
      'two.example\tfr\tnews\t1\tNone\thttps://two.example/b\tNone',
    ]);
    const facts = [...newscatcherFacts(root, mapping.categories)];
    expect(facts.map(({ domain, language, category, rank }) => [domain, language, category?.iab, rank])).toEqual([
      ['own.example', 'de', 'Sports', 77],
      ['side.example', undefined, undefined, 78],
      ['foreign.example', undefined, undefined, 79],
      ['two.example', undefined, undefined, undefined],
      ['two.example', undefined, undefined, undefined],
    ]);
  });

  it('give hosts of the small web, but not a host with many sites', () => {
    const many = ['a', 'b', 'c', 'd'].map((name) => `https://many.example/${name}.xml`);
    stage('lang/smallweb-english-feeds.txt.gz', [
      'https://blog.example:8443/feed',
      'https://medium.com/feed/@me',
      ...many,
    ]);
    expect([...smallwebFacts(root, mapping)].map(({ domain, language }) => `${domain} ${language}`)).toEqual([
      'blog.example:8443 en',
    ]);
  });

  it('follow includes of domain lists, respect attributes, and handle circular ones', () => {
    stage('categories/v2fly-domain-list.tsv.gz', [
      'category-pt\tfull:one.example',
      'category-pt\tinclude:more @bt',
      'category-pt\tkeyword:tracker',
      'more\ttwo.example @bt',
      'more\tthree.example',
      'more\tinclude:category-pt',
      'other\tads.example @ads',
    ]);
    const facts = [...domainListFacts(root, mapping.categories)];
    expect(facts.map(({ domain, category }) => `${domain} ${category?.filtering}`)).toEqual([
      'ads.example advertising',
      'one.example peer_to_peer',
      'two.example peer_to_peer',
    ]);
  });
});

describe('the mapping', () => {
  it('contains no unknown name', () => {
    expect(mappingProblems(mapping)).toEqual([]);
  });

  it('is refused if it contains one', () => {
    const broken = {
      ...mapping,
      sources: { ...mapping.sources, bad: { title: '', url: '', snapshot: '', license: 'GPL-3.0' } },
      categories: { bad: { x: { filtering: ['nonsense'], iab: 'Nowhere' } } },
    };
    expect(mappingProblems(broken)).toEqual(['bad: license GPL-3.0', 'bad x: Nowhere', 'bad x: nonsense']);
  });
});

describe('a line', () => {
  it('has its fields in order, and a source for each', () => {
    const record: SampleRecord = {
      domain: 'Example.COM',
      language: { value: 'en', source: 'smallweb' },
      pages: new Map(
        ['pricing', 'login'].map((type) => [
          type,
          {
            source: 'sso-tax',
            domain: 'example.com',
            type,
            url: `https://example.com/${type}`,
            evidence: 'field',
            second: false,
          },
        ]),
      ),
      filtering: new Map([
        ['blog', new Set(['smallweb'])],
        ['malware', new Set(['blocklistproject', 'v2fly'])],
      ]),
      rank: { value: 7, source: 'moz' },
    };
    const { line, provenance } = lineOf(record);
    expect(line).toBe(
      '{"domain":"Example.COM","language":"en","page_types":{"login":"https://example.com/login","pricing":"https://example.com/pricing"},' +
        '"filtering_categories":["Malware","Blogs & Personal Sites"],"global_rank":7}',
    );
    expect(provenance.split('\t')).toEqual([
      'language=smallweb',
      'page_types.login=sso-tax',
      'page_types.pricing=sso-tax',
      'filtering.malware=blocklistproject+v2fly',
      'filtering.blog=smallweb',
      'global_rank=moz',
    ]);
  });
});

describe('the IAB table', () => {
  const table = (...rows: string[]): string =>
    ['head\r', 'Unique ID\tParent\tName\tTier 1\tTier 2\r', ...rows].join('\n');

  it('gives ids, parents and paths', () => {
    const categories = readIabTable(table('1\t\tPets\tPets\t\t\t\t\r', 'X7\t1\tCats\tPets\tCats\t\t\tSCD\r', ''));
    expect(categories).toEqual([
      { id: '1', parent: null, name: 'Pets', path: 'Pets' },
      { id: 'X7', parent: '1', name: 'Cats', path: 'Pets > Cats' },
    ]);
    expect(checkIabTable(categories)).toEqual([]);
  });

  it.each([
    ['two ids', ['1\t\tPets\tPets', '1\t\tCars\tCars'], /share an id/],
    ['two paths', ['1\t\tPets\tPets', '2\t\tPets\tPets'], /share a path/],
    ['a lost parent', ['1\t9\tPets\tPets'], /parent 9/],
  ])('is refused for %s', (_, rows, message) => {
    expect(() => checkIabTable(readIabTable(table(...rows)))).toThrow(message);
  });
});
