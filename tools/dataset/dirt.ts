/** Optional dirt, as in real lists. The builder repairs or rejects each kind. */
import { mix } from './random.ts';
import type { RecordSource } from './records.ts';

interface Line {
  readonly text: string;
  readonly domain: string;
  /** An earlier name of the same dataset. */
  readonly earlier: string;
  readonly number: number;
}

const withDomain = (line: Line, domain: string): string =>
  line.text.replace(`"${line.domain}"`, JSON.stringify(domain));
const withEnd = (line: Line, more: string): string => `${line.text.slice(0, -1)},${more}}`;

/** Kind of dirt → function that makes its line. All kinds are equally likely. */
export const DIRT: Readonly<Record<string, (line: Line) => string>> = {
  duplicate: (line) => line.text.replaceAll(line.domain, line.earlier),
  duplicate_www: (line) => line.text.replaceAll(line.domain, line.earlier).replace('"domain":"', '"domain":"www.'),
  upper_case: (line) => withDomain(line, line.domain.toUpperCase()),
  trailing_dot: (line) => withDomain(line, `${line.domain}.`),
  mojibake: (line) => withDomain(line, `cafÃ©-${line.domain}`),
  unicode_label: (line) => withDomain(line, `münchen${line.number}.${line.domain}`),
  long_label: (line) => withDomain(line, `${'a'.repeat(64)}.${line.domain}`),
  long_name: (line) => withDomain(line, `${'abcdefgh.'.repeat(30)}${line.domain}`),
  empty_label: (line) => withDomain(line, line.domain.replace('.', '..')),
  edge_hyphen: (line) => withDomain(line, line.domain.replace(/\.(?=[^.]*$)/, '-.')),
  control_byte: (line) => withDomain(line, `a\u0001${line.domain}`),
  port: (line) => withDomain(line, `${line.domain}:8080`),
  path: (line) => withDomain(line, `${line.domain}/index.html`),
  percent: (line) => withDomain(line, `%20${line.domain}`),
  wildcard: (line) => withDomain(line, `*.${line.domain}`),
  ip_address: (line) => withDomain(line, `192.0.2.${line.number % 256}`),
  single_label: (line) => withDomain(line, 'localhost'),
  empty_domain: (line) => withDomain(line, ''),
  no_domain: (line) => line.text.replace('"domain"', '"name"'),
  domain_no_string: (line) => line.text.replace(`"${line.domain}"`, String(line.number)),
  page_off_domain: (line) =>
    line.text.replace('"page_types":{', '"page_types":{"login":"https://elsewhere.example/login",').replace(',}', '}'),
  page_type_unknown: (line) =>
    line.text.replace('"page_types":{', `"page_types":{"guestbook":"https://${line.domain}/g",`).replace(',}', '}'),
  page_not_url: (line) => line.text.replace('"page_types":{', '"page_types":{"login":"/login",').replace(',}', '}'),
  language_unknown: (line) =>
    line.text.replace(/,"language":"..",|,"page_types"/, (found) =>
      found.startsWith(',"l') ? ',"language":"xx",' : found,
    ),
  rank_zero: (line) => withEnd({ ...line, text: withoutRank(line.text) }, '"global_rank":0'),
  rank_huge: (line) => withEnd({ ...line, text: withoutRank(line.text) }, '"global_rank":4294967296'),
  rank_again: (line) => withEnd({ ...line, text: withoutRank(line.text) }, '"global_rank":1'),
  open_page_rank_high: (line) => line.text.replace(/"open_page_rank":[0-9.]+/, '"open_page_rank":10.01'),
  byte_order_mark: (line) => `\ufeff${line.text}`,
  carriage_return: (line) => `${line.text}\r`,
  repeated_key: (line) => withEnd(line, `"domain":"${line.domain}"`),
  unknown_key: (line) => withEnd(line, '"note":"x"'),
  cut_off: (line) => line.text.slice(0, Math.floor(line.text.length / 2)),
  not_json: (line) => line.domain,
  not_an_object: (line) => `["${line.domain}"]`,
  over_long: (line) => withEnd(line, `"note":"${'x'.repeat(100_000)}"`),
};

const KINDS = Object.keys(DIRT);
/** Longest line of dirt. */
export const DIRT_MAX_BYTES = 200_000;

function withoutRank(text: string): string {
  return text.replace(/,"global_rank":\d+/, '');
}

/** Decides deterministically which records become dirt, and writes them. */
export class DirtSource {
  readonly counts: Record<string, number> = {};
  readonly #source: RecordSource;
  readonly #seed: number;
  readonly #chance: number;
  readonly #scratch = Buffer.alloc(32_768);

  /** @param share share of the records that become dirt, from 0 to 1. */
  constructor(source: RecordSource, seed: number, share: number) {
    this.#source = source;
    this.#seed = mix(seed ^ 0x6a09e667);
    this.#chance = share * 0x1_0000_0000;
  }

  isDirt(i: number): boolean {
    return mix(this.#seed + Math.imul(i, 0x9e3779b1)) >>> 0 < this.#chance;
  }

  /** Writes the dirt that replaces record `i`. Returns the offset after its line feed. */
  write(i: number, out: Buffer, at: number): number {
    const choice = mix(this.#seed ^ Math.imul(i + 1, 0x85ebca6b)) >>> 0;
    const kind = KINDS[choice % KINDS.length]!;
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    const scratch = this.#scratch;
    const before = Math.max(0, i - 1 - (choice % 100_000));
    const earlier = scratch.toString('latin1', 0, this.#source.names.write(before, scratch, 0));
    const domain = scratch.toString('latin1', 0, this.#source.names.write(i, scratch, 0));
    const text = scratch.toString('utf8', 0, this.#source.write(i, scratch, 0) - 1);
    const line = DIRT[kind]!({ text, domain, earlier, number: i });
    const end = at + out.write(line, at, 'utf8');
    out[end] = 0x0a;
    return end + 1;
  }
}
