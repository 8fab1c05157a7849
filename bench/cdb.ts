/**
 * The constant database of D. J. Bernstein (https://cr.yp.to/cdb/cdb.txt), in the format that tinycdb reads and writes: the simplest store for
 * data that never changes. A file of at most 4 GiB: the positions of 256 hash tables, the records, the tables.
 */
import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';
import { ADVICE, mapFile } from '../src/platform/libc.ts';

const TABLES = 256;
/** Size of each pair of 32-bit numbers: position and slot count in the header, hash and position in a table, the two sizes before a record. */
const PAIR_SIZE_BYTES = 8;
const HEADER_SIZE_BYTES = TABLES * PAIR_SIZE_BYTES;
const SIZE_MAX_BYTES = 2 ** 32 - 1;
const CHUNK_SIZE_BYTES = 1 << 20;

/** Returns cdb's hash of a key. Keys are ASCII. */
function hashOf(key: string): number {
  let hash = 5381;
  for (let i = 0; i < key.length; i++) hash = (Math.imul(hash, 33) ^ key.charCodeAt(i)) >>> 0;
  return hash;
}

/** Writes records. All keys must differ. The file is complete after `close`. */
export class CdbWriter {
  readonly #fd: number;
  readonly #hashes: number[][] = Array.from({ length: TABLES }, () => []);
  readonly #positions: number[][] = Array.from({ length: TABLES }, () => []);
  #chunk = Buffer.allocUnsafe(CHUNK_SIZE_BYTES);
  #filled = 0;
  #position = HEADER_SIZE_BYTES;

  constructor(path: string) {
    this.#fd = openSync(path, 'w');
    writeSync(this.#fd, Buffer.alloc(HEADER_SIZE_BYTES));
  }

  add(key: string, value: Uint8Array): void {
    const hash = hashOf(key);
    this.#hashes[hash % TABLES]!.push(hash);
    this.#positions[hash % TABLES]!.push(this.#position);
    this.#reserve(PAIR_SIZE_BYTES + key.length + value.length);
    this.#pair(key.length, value.length);
    this.#filled += this.#chunk.write(key, this.#filled, 'latin1');
    this.#chunk.set(value, this.#filled);
    this.#filled += value.length;
    this.#position += key.length + value.length;
  }

  close(): void {
    const header = Buffer.alloc(HEADER_SIZE_BYTES);
    for (let table = 0; table < TABLES; table++) {
      const hashes = this.#hashes[table]!;
      const slots = 2 * hashes.length;
      header.writeUInt32LE(this.#position, table * PAIR_SIZE_BYTES);
      header.writeUInt32LE(slots, table * PAIR_SIZE_BYTES + 4);
      // Each slot holds the number of a record, counted from 1; 0 is an empty slot.
      const order = new Uint32Array(slots);
      for (const [i, hash] of hashes.entries()) {
        let slot = (hash >>> 8) % slots;
        while (order[slot] !== 0) slot = (slot + 1) % slots;
        order[slot] = i + 1;
      }
      for (const record of order) {
        this.#reserve(PAIR_SIZE_BYTES);
        if (record === 0) this.#pair(0, 0);
        else this.#pair(hashes[record - 1]!, this.#positions[table]![record - 1]!);
      }
    }
    this.#flush();
    writeSync(this.#fd, header, 0, header.length, 0);
    closeSync(this.#fd);
  }

  #reserve(size: number): void {
    if (this.#position + size > SIZE_MAX_BYTES) throw new Error('a constant database has at most 4 GiB');
    if (this.#filled + size > CHUNK_SIZE_BYTES) this.#flush();
  }

  #pair(first: number, second: number): void {
    this.#chunk.writeUInt32LE(first, this.#filled);
    this.#chunk.writeUInt32LE(second, this.#filled + 4);
    this.#filled += PAIR_SIZE_BYTES;
    this.#position += PAIR_SIZE_BYTES;
  }

  #flush(): void {
    for (let at = 0; at < this.#filled; ) at += writeSync(this.#fd, this.#chunk, at, this.#filled - at);
    this.#filled = 0;
  }
}

/** Opens a file for reading. `get` returns views of the mapping. Only the key is checked. */
export function openCdb(path: string): { get(key: string): Uint8Array | undefined; close(): void } {
  const fd = openSync(path, 'r');
  const mapping = mapFile(fd, fstatSync(fd).size);
  mapping.advise(ADVICE.random);
  const { buffer } = mapping;
  const view = new DataView(buffer);
  const bytes = new Uint8Array(buffer);
  const holds = (at: number, key: string): boolean => {
    for (let i = 0; i < key.length; i++) if (bytes[at + i] !== key.charCodeAt(i)) return false;
    return true;
  };
  return {
    get: (key) => {
      const hash = hashOf(key);
      const table = view.getUint32((hash % TABLES) * PAIR_SIZE_BYTES, true);
      const slots = view.getUint32((hash % TABLES) * PAIR_SIZE_BYTES + 4, true);
      let slot = slots === 0 ? 0 : (hash >>> 8) % slots;
      for (let tried = 0; tried < slots; tried++) {
        const at = table + slot * PAIR_SIZE_BYTES;
        const record = view.getUint32(at + 4, true);
        if (record === 0) return undefined;
        if (view.getUint32(at, true) === hash && view.getUint32(record, true) === key.length) {
          const start = record + PAIR_SIZE_BYTES;
          if (holds(start, key)) return new Uint8Array(buffer, start + key.length, view.getUint32(record + 4, true));
        }
        slot = slot + 1 === slots ? 0 : slot + 1;
      }
      return undefined;
    },
    close: () => {
      mapping.unmap();
      closeSync(fd);
    },
  };
}
