/**
 * The requests of the HTTP bench. All URLs differ, so that no cache of URLs or answers determines the result. {@link MIX} has the shares of the
 * kinds. Pages and path segments are real: they come from the sample drop, which is part of the served index.
 */
import { readFileSync } from 'node:fs';
import { zstdDecompressSync } from 'node:zlib';
import { Random } from '../../tools/random.ts';
import { datasetOf, SAMPLE_PART } from '../data.ts';

const SAMPLE = new URL(`../../data/sample/${SAMPLE_PART}`, import.meta.url);

export interface AskedRecord {
  readonly domain: string;
  readonly page_types: Readonly<Record<string, string>>;
}

/** Returns the records of the sample drop that have pages. */
export function sampleRecords(): AskedRecord[] {
  const lines = zstdDecompressSync(readFileSync(SAMPLE)).toString('utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as AskedRecord);
}

/** Kinds of requests, with their shares in percent. */
export const MIX = {
  /** A verified page of the sample drop, exactly as the drop has it. */
  page: 30,
  /** A page on a classified domain, with a path of real segments. */
  found: 25,
  /** Such a page with a query of one to four parameters. */
  query: 15,
  /** A page on an unclassified domain. */
  unknown: 15,
  /** A request that should be denied: a login, an internal address, a secret, an open redirect, a write. */
  denied: 10,
  /** A URL of 1 to 2 KB. */
  long: 5,
} as const;
type Kind = keyof typeof MIX;

/** Generates requests from real path segments and the domains of the dataset. */
class Source {
  readonly #random: Random;
  readonly #records: number;
  readonly #dataset: ReturnType<typeof datasetOf>;
  readonly #pages: string[];
  readonly #segments: string[];

  constructor(records: number, seed: number) {
    this.#random = new Random(seed);
    this.#records = records;
    this.#dataset = datasetOf(records);
    this.#pages = sampleRecords().flatMap(({ page_types }) => Object.values(page_types));
    const isReading = ([type]: [string, string]): boolean => !/login|password|account/.test(type);
    const reading = sampleRecords().flatMap(({ page_types }) => Object.entries(page_types).filter(isReading));
    this.#segments = reading.flatMap(([, url]) => new URL(url).pathname.split('/')).filter((segment) => segment !== '');
  }

  /** Returns the domain of a random record. */
  known(): string {
    return this.#dataset.nameOf(this.#random.below(this.#records));
  }

  /** Returns a domain that has no record. */
  unknown(): string {
    return this.#dataset.absentNameOf(this.#random.below(this.#records));
  }

  #path(segments: number): string {
    return Array.from({ length: segments }, () => `/${this.#random.pick(this.#segments)}`).join('');
  }

  #query(parameters: number): string {
    const names = ['q', 'page', 'id', 'utm_source', 'lang', 'sort', 'ref', 'category', 'from', 'v'];
    const value = (): string =>
      this.#random.chance(40) ? String(this.#random.below(1_000_000)) : this.#random.pick(this.#segments);
    return Array.from({ length: parameters }, () => `${this.#random.pick(names)}=${value()}`).join('&');
  }

  #denied(): string {
    const secret = (): string => Array.from({ length: 36 }, () => this.#random.below(36).toString(36)).join('');
    const path = this.#path(1);
    return this.#random.pick([
      `https://${this.known()}/login`,
      `https://${this.known()}/account/signin?next=${path}`,
      `http://10.${this.#random.below(256)}.${this.#random.below(256)}.7${path}`,
      `http://169.254.169.254/latest/meta-data${path}`,
      `https://${this.known()}${path}?token=ghp_${secret()}`,
      `https://${this.known()}/r?url=http%3A%2F%2F127.0.0.1%2Fadmin${this.#random.below(10_000)}`,
      `https://${this.known()}${path}/../..%2f..%2fetc/passwd`,
      `https://${this.known()}${path}`,
    ]);
  }

  url(kind: Kind): string {
    const segments = 1 + this.#random.below(4);
    if (kind === 'page') return this.#random.pick(this.#pages);
    if (kind === 'unknown') return `https://${this.unknown()}${this.#path(segments)}`;
    if (kind === 'denied') return this.#denied();
    const host = `${this.#random.chance(30) ? 'www.' : ''}${this.known()}`;
    if (kind === 'found') return `https://${host}${this.#path(segments)}`;
    if (kind === 'query') return `https://${host}${this.#path(segments)}?${this.#query(segments)}`;
    return `https://${host}${this.#path(40)}?${this.#query(40)}`.slice(0, 1_000 + this.#random.below(1_000));
  }

  kind(): Kind {
    let at = this.#random.below(100);
    for (const [kind, share] of Object.entries(MIX)) {
      at -= share;
      if (at < 0) return kind as Kind;
    }
    throw new RangeError('The shares of the mix are not 100 in all.');
  }

  /** Returns the query parameter with the method: POST in about one of ten requests, otherwise empty. */
  method(kind: Kind): string {
    return this.#random.chance(kind === 'denied' ? 30 : 8) ? '&method=POST' : '';
  }
}

/** Returns request targets of the mix, for an index of `records` generated records and the sample. */
export function mixedTargets(records: number, count: number, seed: number): string[] {
  const source = new Source(records, seed);
  return Array.from({ length: count }, () => {
    const kind = source.kind();
    return `/api/check?url=${encodeURIComponent(source.url(kind))}${source.method(kind)}`;
  });
}

/** Returns request targets for bare domains. Four of five have a record. */
export function bareTargets(records: number, count: number, seed: number): string[] {
  const source = new Source(records, seed);
  const random = new Random(seed + 1);
  return Array.from({ length: count }, () => `/api/check?url=${random.chance(80) ? source.known() : source.unknown()}`);
}

/** Returns as many targets, drawn from the first `hot` ones with a frequency of the k-th in proportion to 1 / k. */
export function zipfTargets(targets: readonly string[], hot: number, seed: number): string[] {
  const random = new Random(seed);
  return targets.map(() => targets[Math.floor(hot ** (random.below(2 ** 30) / 2 ** 30)) - 1]!);
}
