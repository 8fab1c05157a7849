/** Readers of the staged sources. Each yields facts about host names, in the source's spelling. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { isLanguage } from '../../src/record/language-codes.ts';
import type { CategoryRule, SourceMapping } from './mapping.ts';

export interface Fact {
  readonly source: string;
  /** The host in the source's spelling, not cleaned. */
  readonly domain: string;
  readonly language?: string;
  readonly category?: CategoryRule;
  readonly rank?: number;
}

function readText(root: string, path: string): string {
  const bytes = readFileSync(join(root, path));
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
}

export function sourceLines(root: string, path: string): string[] {
  return readText(root, path)
    .split('\n')
    .map((line) => line.replace(/\r$/, ''))
    .filter((line) => line !== '');
}

/** Returns the lines after the heading, split at a separator. The columns read here contain no quoted separators in any of the files. */
function readRows(root: string, path: string, separator: string): string[][] {
  return sourceLines(root, path)
    .slice(1)
    .map((line) => line.split(separator));
}

type Categories = SourceMapping['categories'];

function whole(categories: Categories, source: string): CategoryRule {
  return categories[source]?.['*'] ?? {};
}

function* governmentFacts(root: string, categories: Categories): Generator<Fact> {
  for (const [source, file] of [
    ['dotgov', 'dotgov-current-full.csv.gz'],
    ['dotgov-other', 'dotgov-other-websites.csv.gz'],
  ] as const) {
    const category = whole(categories, source);
    for (const [domain = ''] of readRows(root, `categories/${file}`, ',')) yield { source, domain, category };
  }
}

function* universityFacts(root: string, categories: Categories): Generator<Fact> {
  const category = whole(categories, 'universities');
  const list = JSON.parse(readText(root, 'categories/world-universities.json.gz')) as { domains: string[] }[];
  for (const { domains } of list) {
    for (const domain of domains) yield { source: 'universities', domain, category };
  }
}

function* disposableFacts(root: string, categories: Categories): Generator<Fact> {
  const category = whole(categories, 'disposable');
  for (const domain of sourceLines(root, 'categories/disposable-email-domains.txt.gz')) {
    yield { source: 'disposable', domain, category };
  }
}

/**
 * Feeds with language, topic and 2020 rank. A site's language and topic are taken only from its main feed, on the site's own host. A domain whose
 * main feeds disagree on the language gets none.
 */
export function* newscatcherFacts(root: string, categories: Categories): Generator<Fact> {
  const rows = readRows(root, 'lang/newscatcher-feeds.tsv.gz', '\t').map(
    ([domain = '', language = '', topic = '', main = '', , feed = '', rank = '']) => {
      const host = URL.parse(feed)?.hostname ?? '';
      const isMainFeed = main === '1' && (host === domain || host.endsWith(`.${domain}`));
      return { domain, language, topic, isMainFeed, rank: Number(rank) };
    },
  );
  const languages = new Map<string, Set<string>>();
  for (const { domain, language, isMainFeed } of rows) {
    if (isMainFeed) languages.set(domain, (languages.get(domain) ?? new Set()).add(language));
  }
  for (const { domain, language, topic, isMainFeed, rank } of rows) {
    const category = isMainFeed ? categories['newscatcher']?.[topic] : undefined;
    yield {
      source: 'newscatcher',
      domain,
      ...(isMainFeed && isLanguage(language) && languages.get(domain)?.size === 1 ? { language } : {}),
      ...(category === undefined ? {} : { category }),
      ...(Number.isInteger(rank) && rank >= 1 ? { rank } : {}),
    };
  }
}

/** Personal sites in English, since the list accepts only English ones. A host with more than three of them hosts many sites. */
export function* smallwebFacts(root: string, mapping: SourceMapping): Generator<Fact> {
  const category = whole(mapping.categories, 'smallweb');
  const many = new Set(mapping.pages.hosts_of_many);
  const counts = new Map<string, number>();
  for (const feed of sourceLines(root, 'lang/smallweb-english-feeds.txt.gz')) {
    const host = /^https?:\/\/([^/?#]+)/i.exec(feed)?.[1];
    if (host !== undefined) counts.set(host, (counts.get(host) ?? 0) + 1);
  }
  for (const [domain, count] of counts) {
    if (count > 3 || many.has(domain.replace(/^(www|feeds2?)\./, ''))) continue;
    yield { source: 'smallweb', domain, language: 'en', category };
  }
}

function* siteCategoryFacts(root: string, categories: Categories): Generator<Fact> {
  for (const [source, path, separator] of [
    ['whotracksme', 'categories/whotracksme-site-categories.csv.gz', ','],
    ['blocklistproject', 'categories/blocklistproject-domains.tsv.gz', '\t'],
  ] as const) {
    for (const [domain = '', name = ''] of readRows(root, path, separator)) {
      const category = categories[source]?.[name];
      if (category !== undefined) yield { source, domain, category };
    }
  }
}

interface ListRule {
  readonly kind: 'domain' | 'include';
  readonly value: string;
  readonly attributes: readonly string[];
}

function readListRule(rule: string): ListRule | undefined {
  const [first = '', ...attributes] = rule.split(/\s+/);
  const [, kind = 'domain', value = ''] = /^(?:(full|domain|include|keyword|regexp):)?(.*)$/.exec(first) ?? [];
  if (kind === 'include') return { kind, value, attributes };
  return kind === 'keyword' || kind === 'regexp' ? undefined : { kind: 'domain', value, attributes };
}

/** The domains of a list and of the lists it includes. An include with an attribute takes only the rules that carry it. */
function domainsOfList(
  lists: ReadonlyMap<string, readonly ListRule[]>,
  name: string,
  wanted: readonly string[],
  path: Set<string>,
): string[] {
  if (path.has(name)) return [];
  const found: string[] = [];
  for (const rule of lists.get(name) ?? []) {
    if (rule.kind === 'include') {
      found.push(...domainsOfList(lists, rule.value, [...wanted, ...rule.attributes], new Set([...path, name])));
    } else if (wanted.every((attribute) => rule.attributes.includes(attribute))) {
      found.push(rule.value);
    }
  }
  return found;
}

export function* domainListFacts(root: string, categories: Categories): Generator<Fact> {
  const lists = new Map<string, ListRule[]>();
  const advertising: string[] = [];
  for (const line of sourceLines(root, 'categories/v2fly-domain-list.tsv.gz')) {
    const [name = '', text = ''] = line.split('\t');
    const rule = readListRule(text);
    if (rule === undefined) continue;
    lists.set(name, [...(lists.get(name) ?? []), rule]);
    if (rule.kind === 'domain' && rule.attributes.includes('@ads')) advertising.push(rule.value);
  }
  for (const [name, category] of Object.entries(categories['v2fly'] ?? {})) {
    const domains = name === '@ads' ? advertising : domainsOfList(lists, name, [], new Set());
    for (const domain of domains) yield { source: 'v2fly', domain, category };
  }
}

/** Moz's 500 domains with the most links from other domains. Their rank is used if no list by traffic has one. */
function* mozFacts(root: string): Generator<Fact> {
  const list = JSON.parse(readText(root, 'ranked/moz-top500.json.gz')) as { rank: number; rootDomain: string }[];
  for (const { rank, rootDomain } of list) yield { source: 'moz', domain: rootDomain, rank };
}

/** Yields all facts except the pages, strongest source first: of two values for one field, the first is kept. */
export function* allFacts(root: string, mapping: SourceMapping): Generator<Fact> {
  yield* newscatcherFacts(root, mapping.categories);
  yield* universityFacts(root, mapping.categories);
  yield* domainListFacts(root, mapping.categories);
  yield* siteCategoryFacts(root, mapping.categories);
  yield* disposableFacts(root, mapping.categories);
  yield* governmentFacts(root, mapping.categories);
  yield* smallwebFacts(root, mapping);
  yield* mozFacts(root);
}
