/** URLs of which somebody said what their page is for, and which verdict that asks for. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { registrableDomain } from '../../src/domain/public-suffix.ts';
import { parseTarget, type Target } from '../../src/domain/target.ts';

/** The sets, each with the file that holds it. */
export const SETS = {
  /** Taken from lists whose makers did not look at our rules. */
  labelled: 'labelled-urls.tsv.gz',
  /** Written for pagegate: well-known sites by their public structure, and feeds of news sites and blogs. */
  own: 'eval/own-urls.tsv',
  /** Frozen before the rules were last changed; of its half `report` only counts were looked at while they were. */
  unseen: 'eval/unseen-urls.tsv',
  /** What makers of packages say of a URL by the field that they put it in. */
  declared: 'eval/declared-urls.tsv.gz',
  /** Known sites and programs, written down from memory by somebody who had not seen the rules. */
  remembered: 'eval/remembered-urls.tsv',
  /** The same, once more, by somebody else; no site is in both halves. */
  recalled: 'eval/recalled-urls.tsv',
  /** Public pages that a search found, most of them to read; nobody chose one for its address. */
  found: 'eval/found-urls.tsv',
  /** Where links of real pages lead, and what packages cite: labelled by the words of the link, or by what they are cited for. */
  linked: 'eval/linked-urls.tsv.gz',
  /** Acts in forms that are hard to tell. */
  hard: 'eval/hard-acts.tsv',
  /** What agents that write code read, and what the same hosts must not be asked for. */
  code: 'eval/code-urls.tsv',
} as const;

export type SetName = keyof typeof SETS;

const DATA = new URL('../../test/data/', import.meta.url);

/** What a person does there. Account deletion and recovery stand apart: many of those pages are help articles. */
const ACT_TYPES = 'login oauth_authorize change_password account_recovery checkout upload account_delete'.split(' ');
/** Reading matter. */
const READING_TYPES = 'docs blog legal careers about contact pricing status'.split(' ');
export const LABELLED_TYPES: readonly string[] = [...ACT_TYPES, ...READING_TYPES];

export interface Row {
  readonly set: SetName;
  readonly category: string;
  /** ISO 639-1; empty where nobody said. */
  readonly language: string;
  readonly expect: 'allow' | 'deny';
  /** Rules are developed on one half; the other is only reported. */
  readonly half: 'develop' | 'report';
  readonly url: string;
  readonly target: Target;
}

export interface Rows {
  readonly rows: readonly Row[];
  /** Rows that were left out: no URL, said twice, or by a correction. */
  readonly unparsable: number;
  readonly duplicates: number;
  readonly corrected: number;
}

/** Half of the sites, by a hash of the registrable domain. */
function halfOf(key: string): Row['half'] {
  const owner = registrableDomain(key) ?? key;
  return (createHash('sha256').update(owner).digest()[0]! & 1) === 0 ? 'develop' : 'report';
}

/** Cells by column name; gzip or plain, tab-separated, a heading first. */
function readTable(path: string | URL): Readonly<Record<string, string>>[] {
  const bytes = readFileSync(path);
  const text = (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString('utf8');
  const [heading = '', ...lines] = text.split('\n').filter((line) => line !== '');
  const names = heading.split('\t');
  return lines.map((line) => {
    const cells = line.split('\t');
    return Object.fromEntries(names.map((name, at) => [name, cells[at] ?? '']));
  });
}

/** Type and URL → what the page is: another type, or `-` for none that is scored. */
export function corrections(): Map<string, string> {
  const rows = readTable(new URL('eval/corrections.tsv', DATA));
  return new Map(rows.map(({ type, url, is }) => [`${type} ${url}`, is!]));
}

/** Reads a set. `file` stands in its place: a table of the same columns that cannot be passed on. */
export function readRows(set: SetName, file?: string): Rows {
  const corrected = corrections();
  const seen = new Set<string>();
  const rows: Row[] = [];
  const left = { unparsable: 0, duplicates: 0, corrected: 0 };
  for (const cells of readTable(file ?? new URL(SETS[set], DATA))) {
    const { url = '', type, language = '' } = cells;
    const category = corrected.get(`${type} ${url}`) ?? cells['category'] ?? type ?? '';
    if (category !== (cells['category'] ?? type)) left.corrected++;
    if (type !== undefined && !LABELLED_TYPES.includes(category)) continue;
    const target = parseTarget(url);
    if ('problem' in target) {
      left.unparsable++;
      continue;
    }
    const identity = `${category} ${target.url.href}`;
    if (seen.has(identity)) {
      left.duplicates++;
      continue;
    }
    seen.add(identity);
    const expect = (cells['expect'] ?? (ACT_TYPES.includes(category) ? 'deny' : 'allow')) as Row['expect'];
    const half = (cells['half'] ?? halfOf(target.key)) as Row['half'];
    rows.push({ set, category, language, expect, half, url, target });
  }
  return { rows, ...left };
}
