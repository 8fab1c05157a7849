/** Where an index is read from: a mapped file, or memory. */

/** The bytes of an index, wherever they are. */
export interface IndexBytes {
  readonly path: string;
  readonly sizeBytes: number;
  /** A view without a copy; not to be used after `close`. */
  view(offset: number, sizeBytes: number): Uint8Array;
  /** Tells the kernel that reads are scattered (or not). */
  adviseRandom(): void;
  /** Reads everything into memory, in steps; `onStep` gets the bytes done so far. */
  warm(onStep: (doneBytes: number) => void, signal?: AbortSignal): Promise<void>;
  close(): void;
}

/** The same interface over bytes in memory, for tests and fuzzers. */
export function bytesInMemory(bytes: Uint8Array, path = '<memory>'): IndexBytes {
  // Its own buffer, from offset 0: typed arrays over it need aligned offsets.
  return bytesOfBuffer(Uint8Array.from(bytes).buffer, path);
}

/** The same over a buffer that somebody else looks after. */
export function bytesOfBuffer(buffer: ArrayBuffer, path: string): IndexBytes {
  return {
    path,
    sizeBytes: buffer.byteLength,
    view: (offset, sizeBytes) => new Uint8Array(buffer, offset, sizeBytes),
    adviseRandom: () => {},
    warm: async () => {},
    close: () => {},
  };
}
