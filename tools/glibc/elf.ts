/**
 * Makes a shared object that was linked on glibc 2.38 loadable on 2.36 and 2.37.
 *
 * Compiled against 2.38, `strtol`, `strtoul` and `sscanf` become `__isoc23_strtol` and so on: the same functions but for binary literals
 * (`0b…`) in C23 mode. Each old name is the tail of the new one, so the dynamic symbol can point nine bytes further into the same string.
 * Nothing is moved and nothing is added: a name offset, a version index and one flag are overwritten in place.
 */

/** Length of `__isoc23_`, the prefix that is skipped. */
const PREFIX = '__isoc23_';
const NEW_VERSION = 'GLIBC_2.38';
/** `VER_FLG_WEAK`: the loader goes on when the library does not define the version. */
const VERSION_FLAG_WEAK = 2;

const ELF_MAGIC = 0x464c457f;
const CLASS_64 = 2;
const LITTLE_ENDIAN = 1;
const TYPE_SHARED_OBJECT = 3;
const SEGMENT_LOAD = 1;
const SEGMENT_DYNAMIC = 2;
const PROGRAM_HEADER_SIZE = 56;
const DYNAMIC_ENTRY_SIZE = 16;
const SYMBOL_SIZE = 24;

const TAG = { strings: 5n, symbols: 6n, gnuHash: 0x6ffffef5n, versym: 0x6ffffff0n, verneed: 0x6ffffffen } as const;

interface Segment {
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

/** One change of a few bytes. */
export interface Edit {
  readonly offset: number;
  readonly what: string;
}

export class ElfError extends Error {}

function need(condition: boolean, what: string): asserts condition {
  if (!condition) throw new ElfError(what);
}

/** Segments that are mapped, and the dynamic table, from a checked header. */
function readSegments(image: Buffer): { loads: Segment[]; dynamic: Segment } {
  need(image.length >= 64 && image.readUInt32LE(0) === ELF_MAGIC, 'not an ELF file');
  need(image[4] === CLASS_64 && image[5] === LITTLE_ENDIAN, 'not a 64-bit little-endian ELF file');
  need(image.readUInt16LE(16) === TYPE_SHARED_OBJECT, 'not a shared object');
  need(image.readUInt16LE(54) === PROGRAM_HEADER_SIZE, 'program headers of an unknown size');
  const start = Number(image.readBigUInt64LE(32));
  const count = image.readUInt16LE(56);
  need(start + count * PROGRAM_HEADER_SIZE <= image.length, 'program headers outside the file');
  const loads: Segment[] = [];
  let dynamic: Segment | undefined;
  for (let i = 0; i < count; i++) {
    const at = start + i * PROGRAM_HEADER_SIZE;
    const type = image.readUInt32LE(at);
    const segment = {
      offset: Number(image.readBigUInt64LE(at + 8)),
      address: Number(image.readBigUInt64LE(at + 16)),
      size: Number(image.readBigUInt64LE(at + 32)),
    };
    need(segment.offset + segment.size <= image.length, 'a segment lies outside the file');
    if (type === SEGMENT_LOAD) loads.push(segment);
    if (type === SEGMENT_DYNAMIC) dynamic = segment;
  }
  need(dynamic !== undefined, 'no dynamic segment');
  return { loads, dynamic };
}

/** Where the tables of the dynamic segment lie in the file. */
function readTables(image: Buffer): Record<keyof typeof TAG, number> {
  const { loads, dynamic } = readSegments(image);
  const byTag = new Map<bigint, bigint>();
  for (let at = dynamic.offset; at + DYNAMIC_ENTRY_SIZE <= dynamic.offset + dynamic.size; at += DYNAMIC_ENTRY_SIZE) {
    byTag.set(image.readBigUInt64LE(at), image.readBigUInt64LE(at + 8));
  }
  const locate = (name: keyof typeof TAG): number => {
    const address = Number(byTag.get(TAG[name]) ?? -1n);
    const home = loads.find((load) => address >= load.address && address < load.address + load.size);
    need(home !== undefined, `the dynamic table has no usable entry for ${name}`);
    return home.offset + (address - home.address);
  };
  return {
    strings: locate('strings'),
    symbols: locate('symbols'),
    gnuHash: locate('gnuHash'),
    versym: locate('versym'),
    verneed: locate('verneed'),
  };
}

function readString(image: Buffer, offset: number): string {
  const end = image.indexOf(0, offset);
  need(offset < image.length && end !== -1, 'a string without an end');
  return image.toString('latin1', offset, end);
}

/** Version needs of libc.so.6: name → version index and the offset of its flags. */
function readLibcVersions(
  image: Buffer,
  tables: ReturnType<typeof readTables>,
): Map<string, { index: number; flagsAt: number }> {
  const versions = new Map<string, { index: number; flagsAt: number }>();
  for (let at = tables.verneed, more = true; more; ) {
    const file = readString(image, tables.strings + image.readUInt32LE(at + 4));
    let aux = at + image.readUInt32LE(at + 8);
    for (let i = image.readUInt16LE(at + 2); i > 0; i--) {
      const name = readString(image, tables.strings + image.readUInt32LE(aux + 8));
      if (file === 'libc.so.6') versions.set(name, { index: image.readUInt16LE(aux + 6), flagsAt: aux + 4 });
      aux += image.readUInt32LE(aux + 12);
    }
    const next = image.readUInt32LE(at + 12);
    more = next > 0;
    at += next;
  }
  return versions;
}

/**
 * Edits the image in place so that it no longer needs glibc 2.38, and lists what it changed (nothing, if it never needed it).
 * @throws ElfError if the image is no such file, or needs something of 2.38 beyond the three aliases: then it was not edited.
 */
export function relaxGlibcNeed(image: Buffer): Edit[] {
  const tables = readTables(image);
  const versions = readLibcVersions(image, tables);
  const newest = versions.get(NEW_VERSION);
  if (newest === undefined) return [];
  const baseline = versions.get('GLIBC_2.2.5') ?? versions.get('GLIBC_2.17');
  need(baseline !== undefined, 'no baseline version of glibc to point at');
  // Undefined symbols come before the first one that the GNU hash table covers.
  const undefinedCount = image.readUInt32LE(tables.gnuHash + 4);
  const writes: (Edit & { readonly write: () => void })[] = [];
  for (let i = 1; i < undefinedCount; i++) {
    const versionAt = tables.versym + 2 * i;
    if ((image.readUInt16LE(versionAt) & 0x7fff) !== newest.index) continue;
    const symbolAt = tables.symbols + SYMBOL_SIZE * i;
    const nameOffset = image.readUInt32LE(symbolAt);
    const name = readString(image, tables.strings + nameOffset);
    const plain = name.slice(PREFIX.length);
    need(
      name.startsWith(PREFIX) && /^(sscanf|strtol|strtoul)$/.test(plain),
      `${name} needs ${NEW_VERSION} and has no older twin`,
    );
    writes.push({
      offset: symbolAt,
      what: `${name} → ${plain}`,
      write: () => {
        image.writeUInt32LE(nameOffset + PREFIX.length, symbolAt);
        image.writeUInt16LE(baseline.index, versionAt);
      },
    });
  }
  writes.push({
    offset: newest.flagsAt,
    what: `${NEW_VERSION} → not required`,
    write: () => image.writeUInt16LE(VERSION_FLAG_WEAK, newest.flagsAt),
  });
  for (const { write } of writes) write();
  return writes.map(({ offset, what }) => ({ offset, what }));
}
