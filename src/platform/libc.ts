/**
 * Functions of the C library that Node lacks: memory mapping, advice about it, advisory file locks, rights to folders, and files in memory.
 * Only this file imports koffi; sockets.ts has the functions for sockets.
 * A mapping becomes an ArrayBuffer without a copy. The buffer is detached before the range is unmapped, so that a view that is used
 * afterwards is empty and does not crash the process.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { getSystemErrorName } from 'node:util';
import koffi, { type LibraryHandle } from 'koffi';
import { PagegateError } from '../errors.ts';

const PROT_READ = 1;
const PROT_WRITE = 2;
const MAP_SHARED = 1;
const MAP_FAILED = 0xffff_ffff_ffff_ffffn;
const LOCK_EXCLUSIVE = 2;
const LOCK_NON_BLOCKING = 4;
export const PAGE_SIZE_BYTES = 4096;

/** Advice to the kernel about how a mapping will be read. */
export const ADVICE = {
  random: 1,
  willNeed: 3,
  hugePage: 14,
  noHugePage: 15,
  populateRead: 22,
} as const;

type Advice = (typeof ADVICE)[keyof typeof ADVICE];

/** The C library, for other files of this module. */
export const library: LibraryHandle = koffi.load(null);
/** The error number of the last failed call. */
export const errno = (): number => koffi.errno();
/** The address of a buffer's bytes in this process, for a structure that points to them. */
export const memoryAddress = (bytes: Uint8Array): bigint => koffi.address(bytes);

const mmap = library.func(
  'void *mmap(void *address, size_t length, int protection, int flags, int fd, int64_t offset)',
);
const munmap = library.func('int munmap(void *address, size_t length)');
const madvise = library.func('int madvise(void *address, size_t length, int advice)');
const posixFadvise = library.func('int posix_fadvise(int fd, int64_t offset, int64_t length, int advice)');
const flock = library.func('int flock(int fd, int operation)');
const eaccess = library.func('int eaccess(const char *path, int mode)');
const memfdCreate = library.func('int memfd_create(const char *name, unsigned int flags)');

const FADVISE_DONT_NEED = 4;
const MFD_CLOEXEC = 1;
/** A hardened kernel (vm.memfd_noexec=2) requires this flag; kernels before 6.3 do not know it. */
const MFD_NOEXEC_SEAL = 8;

/** Maps the first `sizeBytes` bytes of an open file, shared with all processes that map it. @throws PagegateError mapping_failed */
export function mapFile(fd: number, sizeBytes: number, mode: 'read' | 'write' = 'read'): MemoryMapping {
  const protection = mode === 'write' ? PROT_READ | PROT_WRITE : PROT_READ;
  const address = mmap(null, sizeBytes, protection, MAP_SHARED, fd, 0) as bigint;
  if (address === MAP_FAILED) throw systemFailure('mmap', `cannot map ${sizeBytes} bytes`);
  return new MemoryMapping(address, sizeBytes);
}

/** Maps a file for reading and writing, shared between processes. Creates it (mode 0600) and extends it to the size if necessary. */
export function mapShared(path: string, sizeBytes: number): MemoryMapping {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  try {
    const status = fstatSync(fd);
    if (!status.isFile()) throw new PagegateError('mapping_failed', `${path} is not a regular file.`, { path });
    if (status.size < sizeBytes) ftruncateSync(fd, sizeBytes);
    return mapFile(fd, sizeBytes, 'write');
  } finally {
    closeSync(fd);
  }
}

/** Asks the kernel to drop a range of an open file from its cache. Pages that are dirty, or mapped and in use, stay. */
export function dropCached(fd: number, offset: number, sizeBytes: number): void {
  posixFadvise(fd, offset, sizeBytes, FADVISE_DONT_NEED);
}

/** Takes an exclusive advisory lock on an open file until it is closed. Returns false at once if another open file description holds it. */
export function lockFile(fd: number): boolean {
  return flock(fd, LOCK_EXCLUSIVE | LOCK_NON_BLOCKING) === 0;
}

/** Writes a text to a file that exists only in memory. This process can open it under `path` until it is closed. */
export function createMemoryFile(text: string): { readonly path: string; close(): void } {
  let fd = memfdCreate('pagegate', MFD_CLOEXEC | MFD_NOEXEC_SEAL) as number;
  if (fd < 0) fd = memfdCreate('pagegate', MFD_CLOEXEC) as number;
  if (fd < 0) throw systemFailure('memfd_create', 'cannot make a file in memory');
  try {
    writeFileSync(fd, text, 'latin1');
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return { path: `/proc/self/fd/${fd}`, close: () => closeSync(fd) };
}

/**
 * The system's error code (`EACCES`, `EROFS`) if this process may not read, change and enter a folder; undefined if it may. `access` of
 * Node.js checks the real user, which is root even if root has taken the rights of another user.
 */
export function folderAccessError(folder: string): string | undefined {
  if (eaccess(folder, constants.R_OK | constants.W_OK | constants.X_OK) === 0) return undefined;
  return getSystemErrorName(-errno());
}

/** A mapped range of a file. */
export class MemoryMapping {
  readonly #address: bigint;
  readonly #sizeBytes: number;
  #buffer: ArrayBuffer | undefined;

  /** @param address the range's. {@link unmap} unmaps the range. */
  constructor(address: bigint, sizeBytes: number) {
    this.#address = address;
    this.#sizeBytes = sizeBytes;
    this.#buffer = koffi.view(address, sizeBytes) as ArrayBuffer;
  }

  /** The mapped bytes. The buffer is detached (length 0) by {@link unmap}. */
  get buffer(): ArrayBuffer {
    if (this.#buffer === undefined) throw new PagegateError('mapping_failed', 'The mapping is closed.');
    return this.#buffer;
  }

  /** Advises the kernel about a range (in bytes, extended to whole pages). Returns false if the kernel does not support the advice. */
  advise(advice: Advice, offset = 0, sizeBytes = this.#sizeBytes - offset): boolean {
    if (this.#buffer === undefined || sizeBytes <= 0) return false;
    const start = Math.floor(offset / PAGE_SIZE_BYTES) * PAGE_SIZE_BYTES;
    const end = Math.min(offset + sizeBytes, this.#sizeBytes);
    return end > start && madvise(this.#address + BigInt(start), end - start, advice) === 0;
  }

  /** How much of the mapping uses huge pages now, in bytes; also 0 if the kernel does not report it. */
  hugePagesBytes(): number {
    if (this.#buffer === undefined) return 0;
    const start = this.#address;
    const end = start + BigInt(this.#sizeBytes);
    return mappedRanges()
      .filter((range) => range.start >= start && range.start < end)
      .reduce((sum, range) => sum + range.hugeBytes, 0);
  }

  /** Ends the mapping. Can be called twice. */
  unmap(): void {
    if (this.#buffer === undefined) return;
    this.#buffer.transfer();
    this.#buffer = undefined;
    munmap(this.#address, this.#sizeBytes);
  }
}

/** The mapped ranges of this process, and how much of each uses huge pages. */
function mappedRanges(): { readonly start: bigint; readonly hugeBytes: number }[] {
  const ranges: { start: bigint; hugeBytes: number }[] = [];
  let text: string;
  try {
    text = readFileSync('/proc/self/smaps', 'latin1');
  } catch {
    return [];
  }
  for (const line of text.split('\n')) {
    const [, start] = /^([0-9a-f]+)-[0-9a-f]+ /.exec(line) ?? [];
    if (start !== undefined) ranges.push({ start: BigInt(`0x${start}`), hugeBytes: 0 });
    const [, kilobytes] = /^FilePmdMapped: +([0-9]+) kB/.exec(line) ?? [];
    if (kilobytes !== undefined && ranges.length > 0) ranges.at(-1)!.hugeBytes = Number(kilobytes) * 1024;
  }
  return ranges;
}

function systemFailure(call: string, what: string): PagegateError {
  const number = errno();
  return new PagegateError('mapping_failed', `${call}: ${what} (errno ${number}).`, { call, errno: number });
}
