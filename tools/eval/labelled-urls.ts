/** URLs labelled with the purpose of their page, and the verdict that this purpose requires. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { registrableDomain } from '../../src/domain/public-suffix.ts';
import { parseTarget, type Target } from '../../src/domain/target.ts';

/** The sets, each with its file. */
export const SETS = {
  /** Taken from public lists, whose authors did not know our rules. */
  labelled: 'labelled-urls.tsv.gz',
  /** Written for pagegate: well-known sites by their public structure, and feeds of news sites and blogs. */
  own: 'eval/own-urls.tsv',
  /** Frozen before the rules were last changed. During that change, only the counts of its half `report` were inspected. */
  unseen: 'eval/unseen-urls.tsv',
  /** URLs in package metadata, labelled by the field that the package's authors put them in. */
  declared: 'eval/declared-urls.tsv.gz',
  /** URLs of known sites and programs, written from memory by an author who had not seen the rules. */
  remembered: 'eval/remembered-urls.tsv',
  /** The same by a different author. No site is in both halves. */
  recalled: 'eval/recalled-urls.tsv',
  /** Public pages found by search, mostly reading pages. None was selected for its address. */
  found: 'eval/found-urls.tsv',
  /** Targets of links in real pages, and URLs that packages cite, labelled by the link text or by what they are cited for. */
  linked: 'eval/linked-urls.tsv.gz',
  /** Action pages with URLs that are hard to recognize. */
  hard: 'eval/hard-acts.tsv',
  /** Pages that coding agents read, and pages of the same hosts that must be denied. */
  code: 'eval/code-urls.tsv',
} as const;

export type SetName = keyof typeof SETS;

const DATA = new URL('../../test/data/', import.meta.url);

/** Types of action pages. Many pages of account deletion and recovery are help articles. */
const ACT_TYPES = 'login oauth_authorize change_password account_recovery checkout upload account_delete'.split(' ');
/** Types of reading pages. */
const READING_TYPES = 'docs blog legal careers about contact pricing status'.split(' ');
export const LABELLED_TYPES: readonly string[] = [...ACT_TYPES, ...READING_TYPES];

export interface Row {
  readonly set: SetName;
  readonly category: string;
  /** ISO 639-1; empty if unknown. */
  readonly language: string;
  readonly expect: 'allow' | 'deny';
  /** Rules are developed with the half `develop`; `report` is only reported. */
  readonly half: 'develop' | 'report';
  readonly url: string;
  readonly target: Target;
}

export interface Rows {
  readonly rows: readonly Row[];
  /** Numbers of rows that were left out: not a URL, a duplicate, or removed by a correction. */
  readonly unparsable: number;
  readonly duplicates: number;
  readonly corrected: number;
}

/** Returns the half that a site belongs to, by a hash of its registrable domain. */
function halfOf(key: string): Row['half'] {
  const owner = registrableDomain(key) ?? key;
  return (createHash('sha256').update(owner).digest()[0]! & 1) === 0 ? 'develop' : 'report';
}

/** Reads a tab-separated table with a heading line, gzip or plain. Returns its rows as cells by column name. */
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

/** Reads the corrections: type and URL → the correct type, or `-` if that is not a scored type. */
export function corrections(): Map<string, string> {
  const rows = readTable(new URL('eval/corrections.tsv', DATA));
  return new Map(rows.map(({ type, url, is }) => [`${type} ${url}`, is!]));
}

/** Reads a set. `file` replaces its file by a table with the same columns that may not be redistributed. */
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
