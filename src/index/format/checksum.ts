/** Checksums: XXH64 for sections and blocks, CRC-8 for a record. The only import of xxhash-wasm. */
import xxhash from 'xxhash-wasm';

const api = await xxhash();

/** XXH64 with seed 0. */
export function xxh64(bytes: Uint8Array): bigint {
  return api.h64Raw(bytes);
}

/** Computes XXH64 for each block of a stream. The last block may be shorter. */
export class BlockChecksums {
  readonly #blockSizeBytes: number;
  readonly #values: bigint[] = [];
  #hash = api.create64();
  #filled = 0;

  /** Call `update` for each piece of the stream, then `finish`. */
  constructor(blockSizeBytes: number) {
    this.#blockSizeBytes = blockSizeBytes;
  }

  update(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const take = Math.min(bytes.length - at, this.#blockSizeBytes - this.#filled);
      this.#hash.update(bytes.subarray(at, at + take));
      this.#filled += take;
      at += take;
      if (this.#filled === this.#blockSizeBytes) this.#close();
    }
  }

  finish(): readonly bigint[] {
    if (this.#filled > 0) this.#close();
    return this.#values;
  }

  #close(): void {
    this.#values.push(this.#hash.digest());
    this.#hash = api.create64();
    this.#filled = 0;
  }
}

// CRC-8/AUTOSAR: polynomial 0x2F, initial value 0xFF, final exclusive or with 0xFF. Four tables, to process four bytes in one step.
const POLYNOMIAL = 0x2f;
const TABLES: Uint8Array = (() => {
  const tables = new Uint8Array(4 * 256);
  for (let value = 0; value < 256; value++) {
    let crc = value;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80 ? (crc << 1) ^ POLYNOMIAL : crc << 1) & 0xff;
    tables[value] = crc;
  }
  for (let value = 0; value < 3 * 256; value++) tables[256 + value] = tables[tables[value]!]!;
  return tables;
})();

/** Returns the CRC-8 of a range of bytes: CRC-8/AUTOSAR, except that the initial value is `0xFF ^ seed`. */
export function crc8(bytes: Uint8Array, start: number, end: number, seed: number): number {
  let crc = 0xff ^ seed;
  let at = start;
  for (; at + 4 <= end; at += 4) {
    crc =
      TABLES[768 + (crc ^ bytes[at]!)]! ^
      TABLES[512 + bytes[at + 1]!]! ^
      TABLES[256 + bytes[at + 2]!]! ^
      TABLES[bytes[at + 3]!]!;
  }
  for (; at < end; at++) crc = TABLES[crc ^ bytes[at]!]!;
  return crc ^ 0xff;
}
