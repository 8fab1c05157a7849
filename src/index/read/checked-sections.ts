/** Reads, checks and decodes the header and the small sections of an index: dictionary, metadata and blocks (of which only the checksum). */
import { PagegateError } from '../../errors.ts';
import { xxh64 } from '../format/checksum.ts';
import { decodeDictionary } from '../format/dictionary.ts';
import { decodeHeader, type Header, indexCorrupt, validateHeader } from '../format/header.ts';
import { HEADER_SIZE_BYTES, MAGIC } from '../format/layout.ts';
import { decodeMetadata } from '../format/metadata.ts';
import { type IndexSource, readBytes } from './index-source.ts';
import { RenderTables } from './render-tables.ts';

/**
 * Reads and checks the header of a file.
 *
 * @throws PagegateError index_not_recognized, index_newer_version, index_older_version, index_corrupt, index_changed
 */
export function readHeader(source: IndexSource): Header {
  const { path, sizeBytes } = source;
  const bytes = readBytes(source, 0, Math.min(sizeBytes, HEADER_SIZE_BYTES));
  assertMagic(path, bytes.subarray(0, MAGIC.length));
  if (bytes.length === HEADER_SIZE_BYTES) return validateHeader(decodeHeader(bytes), path, sizeBytes);
  throw indexCorrupt(path, 'file', `there are ${sizeBytes} bytes, a header alone has ${HEADER_SIZE_BYTES}`);
}

/** A file that begins like an index, however short it is, counts as a damaged index. Any other file is not recognized. */
function assertMagic(path: string, found: Uint8Array): void {
  if (found.every((byte, i) => byte === MAGIC[i])) return;
  const what = `${path}: found ${hex(found)}, expected ${hex(Uint8Array.from(MAGIC))}.`;
  throw new PagegateError('index_not_recognized', what, { path });
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/**
 * Reads and checks the small sections.
 *
 * @throws PagegateError index_corrupt, index_changed
 */
export function readTables(source: IndexSource, header: Header): RenderTables {
  const section = <T>(name: 'dictionary' | 'metadata' | 'blocks', decode: (content: Uint8Array) => T): T => {
    const { offset, size, checksum } = header.sections[name];
    const content = readBytes(source, offset, size);
    const found = xxh64(content);
    if (found !== checksum) throw indexCorrupt(source.path, name, `the checksum is ${found}, expected ${checksum}`);
    try {
      return decode(content);
    } catch (error) {
      if (error instanceof RangeError) throw indexCorrupt(source.path, name, error.message);
      throw error;
    }
  };
  section('blocks', () => undefined);
  const metadata = section('metadata', decodeMetadata);
  return section('dictionary', (content) => new RenderTables(decodeDictionary(content), metadata));
}
