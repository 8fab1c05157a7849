/** The sources that an index can be read from: a file, or memory. */
import { readSync } from 'node:fs';
import { fromSystem, PagegateError } from '../../errors.ts';

/** Bytes that are read with system calls. A failure is an error and never ends the process. */
export interface IndexSource {
  readonly path: string;
  readonly sizeBytes: number;
  /**
   * Fills `target` with the bytes from `offset` on.
   *
   * @throws PagegateError index_changed if the file has been truncated
   * @throws PagegateError index_unreadable if the system call fails
   */
  readInto(target: Uint8Array, offset: number): void;
}

/** A source whose bytes can also be accessed in place. */
export interface IndexBytes extends IndexSource {
  /** Returns a view without copying. Do not use it after `close`. */
  view(offset: number, sizeBytes: number): Uint8Array;
  /** Tells the kernel that reads are scattered. */
  adviseRandom(): void;
  /** Reads everything into memory in steps. `onStep` gets the number of bytes done so far. */
  warm(onStep: (doneBytes: number) => void): Promise<void>;
  /** Returns an error if the bytes have changed since they were opened, otherwise undefined. */
  problem(): PagegateError | undefined;
  close(): void;
}

/**
 * Returns a copy of the bytes `[offset, offset + sizeBytes)`.
 *
 * @throws whatever `readInto` throws
 */
export function readBytes(source: IndexSource, offset: number, sizeBytes: number): Uint8Array {
  const bytes = new Uint8Array(sizeBytes);
  source.readInto(bytes, offset);
  return bytes;
}

/** Returns a source for a descriptor that the caller has opened. Any thread of this process may use it. */
export function sourceOfDescriptor(descriptor: number, path: string, sizeBytes: number): IndexSource {
  return { path, sizeBytes, readInto: (target, offset) => readDescriptor(descriptor, path, target, offset) };
}

function readDescriptor(descriptor: number, path: string, target: Uint8Array, offset: number): void {
  let done = 0;
  while (done < target.length) {
    let bytesRead: number;
    try {
      bytesRead = readSync(descriptor, target, done, target.length - done, offset + done);
    } catch (error) {
      throw fromSystem('index_unreadable', path, error);
    }
    if (bytesRead === 0) throw indexChanged(path, `it ends at byte ${offset + done}`, 'size');
    done += bytesRead;
  }
}

/** Returns an index_changed error. `how` describes the change, `what` is its kind. */
export function indexChanged(path: string, how: string, what: 'size' | 'times' | 'header' | 'status'): PagegateError {
  return new PagegateError('index_changed', `${path}: ${how}.`, { path, what });
}

/** Returns a source for an index in memory. The buffer belongs to the caller. */
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
