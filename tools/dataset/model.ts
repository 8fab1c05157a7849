/** Reads and unpacks the learned model (model.json) and the additional assumptions (assumptions.json). */
import { readFileSync } from 'node:fs';
import { makeWheel, type Wheel } from './weighted-choice.ts';

/** Sum of the shares of all pieces that can follow a piece of a label. */
const SCALE = 512;

type Counts = readonly (readonly [string, number])[];

interface TypeModel {
  readonly urls: number;
  readonly paths: Counts;
  readonly hosts: Counts;
}

interface ModelFile {
  readonly names: {
    readonly suffixes: Counts;
    readonly kinds: readonly [number, number, number];
    readonly families: readonly number[];
    readonly sublabels: Counts;
    readonly international: readonly [number, number];
    readonly pieces: readonly string[];
    readonly follow: string;
    readonly lengths: readonly number[];
  };
  readonly languages: Readonly<Record<string, Counts>>;
  readonly pages: {
    readonly schemes: readonly [number, number];
    readonly hosts: readonly [number, number, number];
    readonly endings: Counts;
    readonly locales: Counts;
    readonly local: readonly [number, number];
    readonly types: Readonly<Record<string, TypeModel>>;
    readonly words: readonly string[];
  };
}

export interface SiteProfile {
  readonly share: number;
  /** Page type → share of the profile's sites that have it. */
  readonly has: Readonly<Record<string, number>>;
}

interface AssumedFile {
  readonly profiles: Readonly<Record<string, SiteProfile>>;
  readonly paths: Readonly<Record<string, Counts>>;
  readonly hosts: Readonly<Record<string, { readonly share: number; readonly labels: readonly string[] }>>;
  readonly fields: {
    readonly language: number;
    readonly iab_category: number;
    readonly filtering_categories: number;
    readonly second_filtering_category: number;
    readonly open_page_rank: number;
    readonly global_rank: number;
    readonly odd_urls: number;
  };
  readonly filtering_of_iab: Readonly<Record<string, string>>;
}

const read = (name: string): unknown => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'));

export const model = read('./model.json') as ModelFile;
export const assumed = read('./assumptions.json') as AssumedFile;

/** Shares of the pieces that follow each piece, the context. Context number `pieces.length` is the beginning of a label. */
export interface Follow {
  /** Number of slots per context. */
  readonly scale: number;
  /** Number of contexts; also the row length of `base` and `width`. */
  readonly symbols: number;
  /** `context * scale + slot` → piece. */
  readonly table: Uint16Array;
  /** `context * symbols + piece` → first slot, number of slots. */
  readonly base: Uint16Array;
  readonly width: Uint16Array;
}

/** Reads the packed rows: for each context, the share of each symbol in 512ths. @throws Error if a row does not add up */
function readRows(symbols: number): number[][] {
  const bytes = Buffer.from(model.names.follow, 'base64');
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] ?? 0;
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  return Array.from({ length: symbols }, (_, context) => {
    const row = new Array<number>(symbols).fill(0);
    let piece = 0;
    for (let left = varint(); left > 0; left -= 1) {
      piece += varint();
      row[piece] = varint();
    }
    const sum = row.reduce((total, share) => total + share, 0);
    if (sum !== SCALE) throw new Error(`model.json: the shares after piece ${context} add up to ${sum}, not ${SCALE}`);
    return row;
  });
}

/** Unpacks the piece model. The end of a label is left out, because the length is chosen first. */
export function unpackFollow(): Follow {
  const symbols = model.names.pieces.length + 1;
  const end = symbols - 1;
  const rows = readRows(symbols);
  const table = new Uint16Array(symbols * SCALE);
  const base = new Uint16Array(symbols * symbols);
  const width = new Uint16Array(symbols * symbols);
  for (const [context, row] of rows.entries()) {
    // A piece that occurs only at the end of labels uses the shares of the beginning.
    const known = row[end] === SCALE ? rows[end]! : row;
    const wheel = makeWheel(
      known.map((share, piece) => (piece === end ? 0 : share)),
      SCALE,
    );
    table.set(wheel.table, context * SCALE);
    base.set(wheel.base, context * symbols);
    width.set(wheel.width, context * symbols);
  }
  return { scale: SCALE, symbols, table, base, width };
}

export const wheelOf = (counts: Counts, size: number): Wheel =>
  makeWheel(
    counts.map(([, count]) => count),
    size,
  );
export const namesOf = (counts: Counts): string[] => counts.map(([name]) => name);
