/** The small sections of an index, checked and decoded: dictionary and metadata, and the block checksums' own checksum. */
import { xxh64 } from '../format/checksum.ts';
import { decodeDictionary } from '../format/dictionary.ts';
import { corrupt, type Header } from '../format/header.ts';
import { decodeMetadata } from '../format/metadata.ts';
import type { IndexBytes } from './index-bytes.ts';
import { RenderTables } from './render-tables.ts';

/** Reads and checks the small sections. */
export function readTables(bytes: IndexBytes, header: Header): RenderTables {
  const section = <T>(name: 'dictionary' | 'metadata' | 'blocks', decode: (content: Uint8Array) => T): T => {
    const { offset, size, checksum } = header.sections[name];
    const content = bytes.view(offset, size);
    const found = xxh64(content);
    if (found !== checksum) throw corrupt(bytes.path, name, `the checksum is ${found}, expected ${checksum}`);
    try {
      return decode(content);
    } catch (error) {
      if (error instanceof RangeError) throw corrupt(bytes.path, name, error.message);
      throw error;
    }
  };
  section('blocks', () => undefined);
  const metadata = section('metadata', decodeMetadata);
  return section('dictionary', (content) => new RenderTables(decodeDictionary(content), metadata));
}
