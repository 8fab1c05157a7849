/**
 * Learns the small model that the dataset generator draws from, and writes tools/dataset/model.json. The model holds counts and
 * short pieces of names; no list of hosts is in it.
 * Usage: node tools/dataset/learn.ts STAGED_DATA SAMPLE_DROP > tools/dataset/model.json
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { keyFromHost } from '../../src/domain/normalize.ts';
import { registrableDomain } from '../../src/domain/public-suffix.ts';
import { Counter } from './counter.ts';
import { learnPages } from './learn-pages.ts';
import { learnTokens } from './learn-tokens.ts';

const SUFFIXES = 400;
const FAMILIES = 512;
const SUBLABELS = 200;
/** A registrable domain with at least this many hosts is a family. */
const FAMILY_SIZE = 400;

export function readLines(path: string): string[] {
  const bytes = readFileSync(path);
  const text = path.endsWith('.gz') ? gunzipSync(bytes) : path.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes;
  return text
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '');
}

interface Host {
  readonly key: string;
  readonly registrable: string;
}

function readHost(name: string): Host | undefined {
  const result = keyFromHost(name);
  if (!('key' in result)) return undefined;
  const registrable = registrableDomain(result.key);
  return registrable === undefined ? undefined : { key: result.key, registrable };
}

/** Shares of public suffixes and the registrable labels, from ranked lists: they reach over all top-level domains. */
function learnRanked(root: string): { suffixes: Counter; labels: Set<string>; international: number } {
  const suffixes = new Counter();
  const labels = new Set<string>();
  let international = 0;
  const names = [
    ...readLines(join(root, 'ranked/tranco-1m-partial-2025.tsv.gz')).map((line) => line.split('\t')[0] ?? ''),
    ...readLines(join(root, 'ranked/tranco-top100k-2026-08.csv.gz')).map((line) => line.split(',').at(-1) ?? ''),
  ];
  for (const name of names) {
    const host = readHost(name.trim());
    if (host === undefined) continue;
    const dot = host.registrable.indexOf('.');
    const label = host.registrable.slice(0, dot);
    suffixes.add(host.registrable.slice(dot + 1));
    if (label.startsWith('xn--')) international += 1;
    else labels.add(label);
  }
  return { suffixes, labels, international };
}

interface HostShapes {
  /** Shares of the kinds of host: registrable, below a small domain, below a family. */
  readonly apex: number;
  readonly below: number;
  readonly family: number;
  /** Hosts of each family, largest first. */
  readonly families: readonly number[];
  readonly sublabels: readonly [string, number][];
  readonly international: number;
}

/** How hosts lie below domains, from ten million raw names. */
function learnRaw(root: string, labels: Set<string>): HostShapes {
  const owners = new Counter();
  const sublabels = new Counter();
  let apex = 0;
  let below = 0;
  let international = 0;
  for (const part of ['00', '01', '02', '03']) {
    for (const [i, name] of readLines(join(root, `domains-tb0hdan/part-${part}.txt.gz`)).entries()) {
      const host = readHost(name);
      if (host === undefined) continue;
      if (host.key.includes('xn--')) international += 1;
      if (host.key === host.registrable) {
        apex += 1;
        if (i % 16 === 0) labels.add(host.registrable.slice(0, host.registrable.indexOf('.')));
      } else {
        below += 1;
        owners.add(host.registrable);
        sublabels.add(host.key.slice(0, host.key.indexOf('.')));
      }
    }
  }
  const families = owners.top(FAMILIES).filter(([, count]) => count >= FAMILY_SIZE);
  const family = families.reduce((sum, [, count]) => sum + count, 0);
  return {
    apex,
    below: below - family,
    family,
    families: families.map(([, count]) => count),
    sublabels: sublabels.top(SUBLABELS).filter(([label]) => /^[a-z0-9-]+$/.test(label)),
    international,
  };
}

/** Languages by top-level domain, from two lists that give a language for each site. */
function learnLanguages(root: string): Record<string, [string, number][]> {
  const byTop = new Map<string, Counter>();
  const add = (domain: string, language: string): void => {
    if (!/^[a-z]{2}$/.test(language)) return;
    for (const top of ['*', domain.slice(domain.lastIndexOf('.') + 1)]) {
      const counter = byTop.get(top) ?? new Counter();
      byTop.set(top, counter);
      counter.add(language);
    }
  };
  for (const line of readLines(join(root, 'lang/newscatcher-feeds.tsv.gz')).slice(1)) {
    const [domain = '', language = ''] = line.split('\t');
    add(domain, language);
  }
  for (const line of readLines(join(root, 'ranked/alexa-shopping-lang-2018.csv.gz')).slice(1)) {
    const [domain = '', language = ''] = line.split(',');
    add(domain, language);
  }
  const learned: Record<string, [string, number][]> = {};
  for (const [top, counter] of [...byTop].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (top === '*' || counter.total >= 60) learned[top] = counter.top(top === '*' ? 40 : 8);
  }
  return learned;
}

function main(root: string, sample: string): void {
  const { suffixes, labels, international } = learnRanked(root);
  const raw = learnRaw(root, labels);
  const entries = readLines(join(sample, 'with-pages.ndjson.zst')).map(
    (line) => JSON.parse(line) as { domain: string; page_types: Record<string, string> },
  );
  const model = {
    comment: 'Made by tools/dataset/learn.ts: statistics of real host names and page paths. See README.md.',
    names: {
      suffixes: suffixes.top(SUFFIXES),
      kinds: [raw.apex, raw.below, raw.family],
      families: raw.families,
      sublabels: raw.sublabels,
      international: [international, suffixes.total],
      ...learnTokens([...labels].sort()),
    },
    languages: learnLanguages(root),
    pages: learnPages(entries),
  };
  process.stdout.write(`${JSON.stringify(model, null, 1).replace(/\n +(?=[^\s"][^\n]*\n? *\])/g, ' ')}\n`);
}

if (import.meta.main) {
  const [root, sample] = process.argv.slice(2);
  if (root === undefined || sample === undefined) throw new Error('usage: learn.ts STAGED_DATA SAMPLE_DROP');
  main(root, sample);
}
