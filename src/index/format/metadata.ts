/**
 * The metadata of an index, in MessagePack. This is the only file that imports msgpackr, and only its JavaScript parts. The main module of
 * `msgpackr` loads native code to extract texts, which silently returns wrong texts when the system is short of memory
 * (kriszyp/msgpackr-extract#18). This made an index look damaged; it could also have given a wrong URL. Once a fix is released and pinned
 * here, the main module may be imported again, if that is worthwhile.
 */
import { Packr } from 'msgpackr/pack';
import { Unpackr } from 'msgpackr/unpack';
import { messageOf } from '../../errors.ts';
import type { RecordNames } from '../../record/names.ts';
import { ANSWER_MAX_BYTES, PAGE_TYPES_MAX } from './layout.ts';

/** The metadata section. It does not depend on when or where the build ran: the same drop gives the same bytes. */
export interface Metadata extends RecordNames {
  readonly dataset: string;
  readonly revision: number;
  /** When the drop was created, RFC 3339. */
  readonly created: string;
  readonly generation: number;
  /** SHA-256 of the drop's manifest, in hexadecimal. */
  readonly manifestSha256: string;
  /** True if a page type that a record lacks is known not to exist. */
  readonly pageTypesComplete: boolean;
  readonly unicodeVersion: string;
  /** Name and version of the program that wrote the file. */
  readonly generator: string;
  /** Upper bound for the size of any answer, head and tail together. */
  readonly maxAnswerSizeBytes: number;
}

const packr = new Packr({ useRecords: false, variableMapSize: true });
// 64-bit integers become doubles. One that a double cannot hold exactly is not a safe integer and is refused below.
const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' });

/** Encodes a map as MessagePack. */
export function encodeMap(map: Readonly<Record<string, unknown>>): Uint8Array {
  return Uint8Array.from(packr.pack(map));
}

/**
 * Decodes a MessagePack map. Its values may be views of `bytes`.
 *
 * @throws RangeError if the bytes are not a MessagePack map
 */
export function decodeMap(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = unpackr.unpack(bytes);
  } catch (error) {
    throw new RangeError(`not MessagePack (${messageOf(error)})`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new RangeError('not a MessagePack map');
  return value as Readonly<Record<string, unknown>>;
}

/** Returns the integer in a form that msgpackr packs as an integer: it packs numbers beyond 32 bits as floats. */
function packable(value: number): number | bigint {
  return value > 0xffff_ffff ? BigInt(value) : value;
}

/** Encodes the metadata as the bytes of its section. */
export function encodeMetadata(metadata: Metadata): Uint8Array {
  return encodeMap({
    dataset: metadata.dataset,
    revision: packable(metadata.revision),
    created: metadata.created,
    generation: packable(metadata.generation),
    manifest_sha256: metadata.manifestSha256,
    page_types_complete: metadata.pageTypesComplete,
    vocabulary: metadata.vocabulary.name,
    vocabulary_version: metadata.vocabulary.version,
    page_types: metadata.vocabulary.pageTypes,
    iab_version: metadata.iab.version,
    iab_categories: metadata.iab.names,
    filtering_version: metadata.filtering.version,
    filtering_categories: metadata.filtering.names,
    unicode_version: metadata.unicodeVersion,
    generator: metadata.generator,
    max_answer_size: metadata.maxAnswerSizeBytes,
  });
}

/**
 * Decodes and checks the section.
 *
 * @throws RangeError if the section is invalid; the message is the reason
 */
export function decodeMetadata(bytes: Uint8Array): Metadata {
  const map = decodeMap(bytes);
  const pageTypes = texts(map, 'page_types', PAGE_TYPES_MAX);
  for (const name of pageTypes) {
    if (!/^[a-z][a-z0-9_]{0,31}$/.test(name)) throw new RangeError('page_types has a name that is not one');
  }
  return {
    dataset: text(map, 'dataset'),
    revision: integer(map, 'revision'),
    created: text(map, 'created'),
    generation: integer(map, 'generation'),
    manifestSha256: text(map, 'manifest_sha256'),
    pageTypesComplete: map['page_types_complete'] === true,
    vocabulary: { name: text(map, 'vocabulary'), version: integer(map, 'vocabulary_version'), pageTypes },
    iab: { version: text(map, 'iab_version'), names: texts(map, 'iab_categories', 0xffff) },
    filtering: { version: text(map, 'filtering_version'), names: texts(map, 'filtering_categories', 255) },
    unicodeVersion: text(map, 'unicode_version'),
    generator: text(map, 'generator'),
    maxAnswerSizeBytes: integer(map, 'max_answer_size', ANSWER_MAX_BYTES),
  };
}

function text(map: Readonly<Record<string, unknown>>, name: string): string {
  const value = map[name];
  if (typeof value !== 'string' || value.length > 1024) throw new RangeError(`${name} is not a text`);
  return value;
}

function integer(map: Readonly<Record<string, unknown>>, name: string, most = Number.MAX_SAFE_INTEGER): number {
  const value = map[name];
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new RangeError(`${name} is not a whole number`);
  if ((value as number) > most) throw new RangeError(`${name} is ${value}, at most ${most} is possible`);
  return value as number;
}

function texts(map: Readonly<Record<string, unknown>>, name: string, maxCount: number): string[] {
  const value = map[name];
  if (!Array.isArray(value) || value.length > maxCount)
    throw new RangeError(`${name} is not a list of at most ${maxCount}`);
  return value.map((item) => {
    if (typeof item !== 'string' || item.length > 1024) throw new RangeError(`${name} has an item that is not a text`);
    return item;
  });
}
