/** `manifest.json` of a drop, which is not trusted: checked against data/schema/manifest.schema.json. */
import { createHash } from 'node:crypto';
import { lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ErrorObject, Ajv2020 as Validator } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { counted } from '../counted.ts';
import { PagegateError } from '../errors.ts';
import { describePlace, describeSchemaError, pointerOf } from '../json/schema-problem.ts';
import { SELDOM_USED_SCHEMA_OPTIONS } from '../json/shipped-schemas.ts';
import { parseDocument } from '../json/strict-json.ts';
import { VOCABULARY_NAME, VOCABULARY_VERSION } from '../record/vocabulary.ts';
import { MANIFEST_FILE, readManifestBytes } from './drop-files.ts';
import { recordsMax } from './unpack/part-limits.ts';

export const DROP_FORMAT = 'pagegate-drop/1';

export interface DropPart {
  /** A plain file name beside the manifest. */
  readonly name: string;
  /** Size as delivered. */
  readonly bytes: number;
  /** Number of lines that are not blank. */
  readonly records: number;
  /** SHA-256 of the file as delivered, in lower-case hexadecimal. */
  readonly sha256: string;
}

export interface Manifest {
  readonly format: typeof DROP_FORMAT;
  readonly dataset: string;
  readonly revision: number;
  /** RFC 3339. */
  readonly created: string;
  readonly kind: 'full' | 'delta';
  readonly vocabulary: { readonly name: string; readonly version: number };
  readonly page_types: 'complete' | 'partial';
  readonly notice?: string;
  readonly files: readonly DropPart[];
}

/** A manifest and its hash, which identifies it. */
export interface ManifestFile {
  readonly manifest: Manifest;
  /** SHA-256 of the manifest's bytes, lower-case hexadecimal. */
  readonly sha256: string;
}

const ajv = new Validator({ allErrors: false, strict: true, verbose: true, ...SELDOM_USED_SCHEMA_OPTIONS });
addFormats.default(ajv, ['date-time']);
const validate = ajv.compile<Manifest>(
  JSON.parse(readFileSync(new URL('../../data/schema/manifest.schema.json', import.meta.url), 'utf8')),
);

/**
 * Parses a manifest's bytes.
 *
 * @throws PagegateError manifest_invalid, with the problem and its place
 * @throws PagegateError drop_file_name if two parts have the same name
 * @throws PagegateError drop_vocabulary if the drop is for a vocabulary that this program does not know
 */
export function parseManifest(bytes: Uint8Array): Manifest {
  const value = parseDocument(bytes, 'manifest_invalid', MANIFEST_FILE);
  if (!validate(value)) {
    const [error] = validate.errors as [ErrorObject];
    const place = pointerOf(error);
    throw new PagegateError('manifest_invalid', `${describePlace(place)} ${describeSchemaError(error)}.`, { place });
  }
  if (!isTime(value.created)) {
    const what = `created must be a time like 2026-11-21T00:00:00Z; got "${value.created}".`;
    throw new PagegateError('manifest_invalid', what, { place: '/created' });
  }
  const partNames = new Set<string>();
  for (const [i, part] of value.files.entries()) {
    const { name, bytes, records } = part;
    if (partNames.has(name)) throw new PagegateError('drop_file_name', `${name} is listed twice.`, { file: name });
    partNames.add(name);
    if (records <= recordsMax(part)) continue;
    const place = `/files/${i}/records`;
    const what = `files[${i}].records: ${counted(records, 'line')} cannot be in the ${counted(bytes, 'byte')} of ${name}, at most ${recordsMax(part)} can.`;
    throw new PagegateError('manifest_invalid', what, { place, file: name });
  }
  const { name, version } = value.vocabulary;
  if (name !== VOCABULARY_NAME || version > VOCABULARY_VERSION) {
    const what = `Expected ${VOCABULARY_NAME} up to version ${VOCABULARY_VERSION}, got ${name} version ${version}.`;
    throw new PagegateError('drop_vocabulary', what, { expected: VOCABULARY_VERSION, got: version });
  }
  return value;
}

/**
 * True if a text that the schema accepts is an unambiguous time. The schema's format also accepts a space instead of the T, zones without a
 * colon, and a second 60, which JavaScript's `Date` cannot represent.
 */
function isTime(text: string): boolean {
  return /^.{10}T.*(?:Z|[+-]\d{2}:\d{2})$/i.test(text) && !Number.isNaN(Date.parse(text));
}

/** @throws PagegateError drop_kind if the drop contains only changes */
export function assertFullDrop({ kind }: Manifest): void {
  if (kind !== 'full') throw new PagegateError('drop_kind', `This one is of kind "${kind}".`);
}

/**
 * Reads and parses the manifest of a drop.
 *
 * @throws PagegateError whatever `readManifestBytes` and `parseManifest` throw
 */
export function readManifest(drop: string): ManifestFile {
  const bytes = readManifestBytes(drop);
  return { manifest: parseManifest(bytes), sha256: createHash('sha256').update(bytes).digest('hex') };
}

/**
 * Checks names, kinds and sizes of all parts without reading them.
 *
 * @throws PagegateError drop_part_missing, drop_file_kind, drop_part_size for the first part that differs from the manifest
 */
export function checkParts(drop: string, manifest: Manifest): void {
  for (const part of manifest.files) {
    const path = join(drop, part.name);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) throw new PagegateError('drop_part_missing', `Looked for ${path}.`, { part: part.name });
    if (!stats.isFile()) {
      throw new PagegateError('drop_file_kind', `${path} is not a regular file.`, { file: part.name });
    }
    if (stats.size === part.bytes) continue;
    const what = `${part.name}: the manifest says ${part.bytes} bytes, the file has ${stats.size}.`;
    throw new PagegateError('drop_part_size', what, { part: part.name, expected: part.bytes, got: stats.size });
  }
}
