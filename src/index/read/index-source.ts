/** Where an index is read from: a file, or memory. */
import { readSync } from 'node:fs';
import { fromSystem, PagegateError } from '../../errors.ts';

/** Bytes that are read with calls: what does not come is an error, and never the end of the process. */
export interface IndexSource {
  readonly path: string;
  readonly sizeBytes: number;
  /**
   * Fills `target` with the bytes from `offset` on.
   *
   * @throws PagegateError index_changed where the file has become shorter than it was
   * @throws PagegateError index_unreadable where the system refuses
   */
  readInto(target: Uint8Array, offset: number): void;
}

/** The same, and bytes that can be looked at where they lie. */
export interface IndexBytes extends IndexSource {
  /** A view without a copy; not to be used after `close`. */
  view(offset: number, sizeBytes: number): Uint8Array;
  /** Tells the kernel that reads are scattered. */
  adviseRandom(): void;
  /** Reads everything into memory, in steps; `onStep` gets the bytes done so far. */
  warm(onStep: (doneBytes: number) => void): Promise<void>;
  /** What has happened to the bytes since they were opened; undefined where nothing has. */
  problem(): PagegateError | undefined;
  close(): void;
}

/**
 * A copy of the bytes `[offset, offset + sizeBytes)`.
 *
 * @throws as `readInto` does
 */
export function readBytes(source: IndexSource, offset: number, sizeBytes: number): Uint8Array {
  const bytes = new Uint8Array(sizeBytes);
  source.readInto(bytes, offset);
  return bytes;
}

/** Reads through a descriptor that somebody else opened, in whatever thread of this process. */
export function sourceOfDescriptor(descriptor: number, path: string, sizeBytes: number): IndexSource {
  return { path, sizeBytes, readInto: (target, offset) => readDescriptor(descriptor, path, target, offset) };
}

function readDescriptor(descriptor: number, path: string, target: Uint8Array, offset: number): void {
  let done = 0;
  while (done < target.length) {
    let got: number;
    try {
      got = readSync(descriptor, target, done, target.length - done, offset + done);
    } catch (error) {
      throw fromSystem('index_unreadable', path, error);
    }
    if (got === 0) throw indexChanged(path, `it ends at byte ${offset + done}`, 'size');
    done += got;
  }
}

/** An index_changed that says what is different. */
export function indexChanged(path: string, how: string, what: 'size' | 'times' | 'header' | 'status'): PagegateError {
  return new PagegateError('index_changed', `${path}: ${how}.`, { path, what });
}

/** An index in memory, in a buffer that somebody else looks after. */
export function bytesOfBuffer(buffer: ArrayBuffer, path: string): IndexBytes {
  return {
    path,
    sizeBytes: buffer.byteLength,
    readInto: (target, offset) => {
      if (offset + target.length > buffer.byteLength)
        throw indexChanged(path, `it ends at byte ${buffer.byteLength}`, 'size');
      target.set(new Uint8Array(buffer, offset, target.length));
    },
    view: (offset, sizeBytes) => new Uint8Array(buffer, offset, sizeBytes),
    adviseRandom: () => {},
    warm: async () => {},
    problem: () => undefined,
    close: () => {},
  };
}
