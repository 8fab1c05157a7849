/**
 * The shared counters: one small file that all processes of a host map. Workers charge here, with one compare-and-exchange for
 * each lookup, so that a limit holds over all of them without a lock; the ledger writer carries the counters into SQLite.
 *
 * A counter is one 64-bit word, cycle · 2^40 + used, so that a greater word is always a later state and "never refund" means
 * "take the greater one". A second word counts all lookups ever, for the usage by day.
 */
import { closeSync, constants, existsSync, fstatSync, fsyncSync, openSync, readSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Mapping, mapShared } from '../platform/libc.ts';
import { writeFully } from '../platform/write-fully.ts';
import { USED_BITS, USED_MASK } from './word.ts';

export { packWord, unpackWord } from './word.ts';

/** Accounts' ids are below this number: each has one slot. */
export const SLOT_COUNT = 65_536;

const MAGIC = 0x54436770;
const FORMAT_VERSION = 1;
const HEADER_SIZE_BYTES = 4096;
const SLOT_SIZE_BYTES = 64;
const DIRTY_OFFSET = HEADER_SIZE_BYTES;
const DIRTY_SIZE_BYTES = SLOT_COUNT / 8;
/** One word for each 32 words of marks: whether any of them may be set. */
const DIRTY_GROUPS = DIRTY_SIZE_BYTES / 4 / 32;
const GROUPS_OFFSET = 2048;
const SLOTS_OFFSET = DIRTY_OFFSET + DIRTY_SIZE_BYTES;
export const COUNTERS_SIZE_BYTES = SLOTS_OFFSET + SLOT_COUNT * SLOT_SIZE_BYTES;
const REASON_OFFSET = 1024;
const REASON_MAX_BYTES = 1022;

/** Indexes of 32-bit fields in the header. */
const FIELD = { magic: 0, version: 1, ledgerId: 2, state: 8, revision: 9, epoch: 10 } as const;
/** Indexes of 64-bit fields in the header. */
const WIDE = {
  started: 16,
  done: 17,
  failed: 18,
  heartbeatMs: 19,
  lastSeenSeconds: 20,
  commits: 21,
  walBytes: 22,
  servedFile: 23,
  servedLog: 24,
} as const;

/** Whether charges are possible: not before the ledger writer has read the ledger, nor while it cannot write it. */
export const STATE = { starting: 0, ready: 1, failed: 2 } as const;
type State = (typeof STATE)[keyof typeof STATE];

/** More commits than a host can make in a thousand years; a number as a float holds it exactly. */
const COMMIT_MAX = 1n << 50n;

/** A ledger writer that has shown no life for so long is none; one that lives tells the workers of a change in less. */
const PUBLISHED_WITHIN_MS = 5_000;

/** Where the counters of a ledger file lie. */
export const countersFile = (ledgerFile: string): string => join(dirname(ledgerFile), 'counters.map');

/** Whose usage the counters hold: a ledger's id (32 hexadecimal digits), or `damaged` for a header that we never wrote. */
export type CountersOwner = string;
const OWNER_SIZE_BYTES = (FIELD.ledgerId + 4) * 4;

/** Undefined for counters that no ledger has taken yet. */
function ownerIn(header: Uint8Array): CountersOwner | undefined {
  const head = Buffer.from(header.subarray(0, OWNER_SIZE_BYTES));
  if (head.every((byte) => byte === 0)) return undefined;
  const isKnown = head.length === OWNER_SIZE_BYTES && head.readUInt32LE(FIELD.magic * 4) === MAGIC;
  return isKnown ? head.subarray(FIELD.ledgerId * 4).toString('hex') : 'damaged';
}

const slotIndex = (accountId: number): number => (SLOTS_OFFSET + accountId * SLOT_SIZE_BYTES) / 8;

/** Creates the file with every block allocated: a hole would end a process that touches it while the disk is full. */
function allocate(path: string): void {
  const fd = openSync(path, existsSync(path) ? 'r+' : 'wx+', 0o600);
  try {
    const zeros = new Uint8Array(64 * 1024);
    for (let at = fstatSync(fd).size; at < COUNTERS_SIZE_BYTES; at += zeros.length) {
      writeFully(fd, zeros, 0, Math.min(zeros.length, COUNTERS_SIZE_BYTES - at), at);
    }
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

export class Counters {
  readonly #mapping: Mapping;
  readonly #bytes: Uint8Array;
  readonly #narrow: Int32Array;
  readonly #dirty: Int32Array;
  readonly #groups: Int32Array;
  readonly #wide: BigInt64Array;

  constructor(mapping: Mapping) {
    const { buffer } = mapping;
    this.#mapping = mapping;
    this.#bytes = new Uint8Array(buffer, 0, HEADER_SIZE_BYTES);
    this.#narrow = new Int32Array(buffer, 0, HEADER_SIZE_BYTES / 4);
    this.#dirty = new Int32Array(buffer, DIRTY_OFFSET, DIRTY_SIZE_BYTES / 4);
    this.#groups = new Int32Array(buffer, GROUPS_OFFSET, DIRTY_GROUPS);
    this.#wide = new BigInt64Array(buffer, 0, COUNTERS_SIZE_BYTES / 8);
  }

  close(): void {
    this.#mapping.unmap();
  }

  /** Whether the content belongs to this ledger and has a layout that we know. */
  isFor(ledgerId: string): boolean {
    const { magic, version } = FIELD;
    return this.#narrow[magic] === MAGIC && this.#narrow[version] === FORMAT_VERSION && this.owner === ledgerId;
  }

  /** Whose usage this is; undefined before a ledger has taken the counters. */
  get owner(): CountersOwner | undefined {
    return ownerIn(this.#bytes);
  }

  /** Empties the counters for a ledger. The caller fills the slots before it reports `ready`. */
  reset(ledgerId: string): void {
    this.state = STATE.starting;
    this.#dirty.fill(0);
    this.#groups.fill(0);
    // Workers may be waiting for a commit of the numbers as they stand; only what no counting can have reached begins anew.
    const numbers = [WIDE.started, WIDE.done, WIDE.failed, WIDE.commits];
    if (numbers.some((at) => this.#wide[at]! < 0n || this.#wide[at]! > COMMIT_MAX))
      for (const at of numbers) this.#wide[at] = 0n;
    this.#wide.fill(0n, SLOTS_OFFSET / 8);
    this.#bytes.set(Buffer.from(ledgerId, 'hex'), FIELD.ledgerId * 4);
    this.#narrow[FIELD.version] = FORMAT_VERSION;
    this.#narrow[FIELD.magic] = MAGIC;
  }

  get state(): State {
    return Atomics.load(this.#narrow, FIELD.state) as State;
  }

  set state(state: State) {
    Atomics.store(this.#narrow, FIELD.state, state);
  }

  /** The ledger's revision that the ledger writer has seen; workers drop what they remember when it moves. */
  get revision(): number {
    return Atomics.load(this.#narrow, FIELD.revision);
  }

  set revision(revision: number) {
    Atomics.store(this.#narrow, FIELD.revision, revision | 0);
  }

  /** Grows when the ledger writer opens the ledger file anew; workers then do the same. */
  get epoch(): number {
    return Atomics.load(this.#narrow, FIELD.epoch);
  }

  nextEpoch(): void {
    Atomics.add(this.#narrow, FIELD.epoch, 1);
  }

  /** Number of the commit whose reading of the counters has begun. A charge is in the commit after the one it sees here. */
  get started(): number {
    return Number(Atomics.load(this.#wide, WIDE.started));
  }

  /** Begins a commit and returns its number. */
  start(): number {
    return Number(Atomics.add(this.#wide, WIDE.started, 1n)) + 1;
  }

  /** The latest commit that is durable. */
  get done(): number {
    return Number(Atomics.load(this.#wide, WIDE.done));
  }

  set done(commit: number) {
    Atomics.store(this.#wide, WIDE.done, BigInt(commit));
    Atomics.add(this.#wide, WIDE.commits, 1n);
  }

  /** The latest commit that failed. */
  get failed(): number {
    return Number(Atomics.load(this.#wide, WIDE.failed));
  }

  set failed(commit: number) {
    Atomics.store(this.#wide, WIDE.failed, BigInt(commit));
  }

  get commits(): number {
    return Number(Atomics.load(this.#wide, WIDE.commits));
  }

  get heartbeatMs(): number {
    return Number(Atomics.load(this.#wide, WIDE.heartbeatMs));
  }

  set heartbeatMs(now: number) {
    Atomics.store(this.#wide, WIDE.heartbeatMs, BigInt(Math.floor(now)));
  }

  /** The latest second that the ledger writer has seen and trusts. */
  get lastSeenSeconds(): number {
    return Number(Atomics.load(this.#wide, WIDE.lastSeenSeconds));
  }

  set lastSeenSeconds(seconds: number) {
    Atomics.store(this.#wide, WIDE.lastSeenSeconds, BigInt(seconds));
  }

  get walBytes(): number {
    return Number(Atomics.load(this.#wide, WIDE.walBytes));
  }

  set walBytes(size: number) {
    Atomics.store(this.#wide, WIDE.walBytes, BigInt(size));
  }

  /** Inodes of the ledger file and its write-ahead log as last in use together; 0 where not known. */
  get served(): { readonly file: bigint; readonly log: bigint } {
    return { file: Atomics.load(this.#wide, WIDE.servedFile), log: Atomics.load(this.#wide, WIDE.servedLog) };
  }

  set served({ file, log }) {
    Atomics.store(this.#wide, WIDE.servedFile, file);
    Atomics.store(this.#wide, WIDE.servedLog, log);
  }

  /** Why the state is `failed`, in words. */
  get reason(): string {
    const end = this.#bytes.indexOf(0, REASON_OFFSET);
    return Buffer.from(this.#bytes.subarray(REASON_OFFSET, end)).toString('utf8');
  }

  set reason(text: string) {
    const encoded = Buffer.from(text, 'utf8').subarray(0, REASON_MAX_BYTES);
    this.#bytes.set(encoded, REASON_OFFSET);
    this.#bytes.fill(0, REASON_OFFSET + encoded.length, REASON_OFFSET + REASON_MAX_BYTES + 1);
  }

  word(accountId: number): bigint {
    return Atomics.load(this.#wide, slotIndex(accountId));
  }

  total(accountId: number): number {
    return Number(Atomics.load(this.#wide, slotIndex(accountId) + 1));
  }

  /**
   * Charges one lookup: returns the new word, or -1n when the limit of the cycle is reached.
   *
   * @param first the word of the cycle with nothing used; `last` with everything used.
   */
  charge(accountId: number, first: bigint, last: bigint): bigint {
    const slot = slotIndex(accountId);
    let seen = Atomics.load(this.#wide, slot);
    for (;;) {
      const base = seen < first ? first : seen;
      if (base >= last) return -1n;
      const found = Atomics.compareExchange(this.#wide, slot, seen, base + 1n);
      if (found === seen) {
        // Counted after the charge and before the answer: the total is never below what was served.
        Atomics.add(this.#wide, slot + 1, 1n);
        this.markDirty(accountId);
        return base + 1n;
      }
      seen = found;
    }
  }

  /** Takes back a charge that certainly was not served, unless its cycle is over. */
  uncharge(accountId: number, charged: bigint): void {
    const slot = slotIndex(accountId);
    Atomics.sub(this.#wide, slot + 1, 1n);
    let seen = Atomics.load(this.#wide, slot);
    while (seen >> USED_BITS === charged >> USED_BITS && (seen & USED_MASK) > 0n) {
      const found = Atomics.compareExchange(this.#wide, slot, seen, seen - 1n);
      if (found === seen) return;
      seen = found;
    }
  }

  /** Raises a slot to what SQLite has; never lowers it. */
  raise(accountId: number, word: bigint, total: number): void {
    const slot = slotIndex(accountId);
    for (const [at, value] of [
      [slot, word],
      [slot + 1, BigInt(total)],
    ] as const) {
      let seen = Atomics.load(this.#wide, at);
      while (seen < value) {
        const found = Atomics.compareExchange(this.#wide, at, seen, value);
        if (found === seen) break;
        seen = found;
      }
    }
  }

  /** Sets a slot aside whose content cannot be true. */
  replace(accountId: number, word: bigint, total: number): void {
    Atomics.store(this.#wide, slotIndex(accountId), word);
    Atomics.store(this.#wide, slotIndex(accountId) + 1, BigInt(total));
  }

  markDirty(accountId: number): void {
    const bit = 1 << (accountId & 31);
    const at = accountId >> 5;
    if ((Atomics.load(this.#dirty, at) & bit) === 0) Atomics.or(this.#dirty, at, bit);
    // After the mark, and even where the mark was there: whoever set it may have been killed in between.
    if (Atomics.load(this.#groups, at >> 5) === 0) Atomics.store(this.#groups, at >> 5, 1);
  }

  /** Takes the list of accounts that were charged since it was last taken. */
  takeDirty(): number[] {
    const accounts: number[] = [];
    for (let group = 0; group < DIRTY_GROUPS; group += 1) {
      if (Atomics.load(this.#groups, group) === 0) continue;
      Atomics.store(this.#groups, group, 0);
      for (let at = group * 32; at < group * 32 + 32; at += 1) {
        if (Atomics.load(this.#dirty, at) === 0) continue;
        const bits = Atomics.exchange(this.#dirty, at, 0);
        for (let bit = 0; bit < 32; bit += 1) if ((bits & (1 << bit)) !== 0) accounts.push(at * 32 + bit);
      }
    }
    return accounts;
  }
}

/** Maps the counters of a ledger; `create` makes the file where it is missing or short. */
export function openCounters(ledgerFile: string, options: { readonly create: boolean }): Counters {
  const path = countersFile(ledgerFile);
  if (options.create) allocate(path);
  return new Counters(mapShared(path, COUNTERS_SIZE_BYTES));
}

/** Runs a task with the counters file open for reading; where it cannot be opened, or is something else, what `onMissing` says. */
function withCountersFile<T>(
  ledgerFile: string,
  task: (fd: number) => T,
  onMissing?: (code: unknown) => T,
): T | undefined {
  let fd: number;
  try {
    fd = openSync(countersFile(ledgerFile), constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return onMissing?.((error as NodeJS.ErrnoException).code);
  }
  try {
    return fstatSync(fd).isFile() ? task(fd) : onMissing?.(undefined);
  } finally {
    closeSync(fd);
  }
}

/** Whose usage the counters file holds; undefined where there is no file or no ledger has taken it. */
export function readCountersOwner(ledgerFile: string): CountersOwner | undefined {
  const read = (fd: number): CountersOwner | undefined => {
    const head = Buffer.alloc(OWNER_SIZE_BYTES);
    return ownerIn(head.subarray(0, readSync(fd, head, 0, head.length, 0)));
  };
  // What we may not read may well be somebody's usage.
  return withCountersFile(ledgerFile, read, (code) => (code === 'ENOENT' ? undefined : 'damaged'));
}

/** Reads one account's counter from the file without mapping it; undefined where there is none for this ledger. */
export function peekCounter(
  ledgerFile: string,
  ledgerId: string,
  accountId: number,
): { word: bigint; total: number } | undefined {
  return withCountersFile(ledgerFile, (fd) => {
    const head = Buffer.alloc(OWNER_SIZE_BYTES);
    const slot = Buffer.alloc(16);
    readSync(fd, head, 0, head.length, 0);
    if (ownerIn(head) !== ledgerId || head.readUInt32LE(FIELD.version * 4) !== FORMAT_VERSION) return undefined;
    if (readSync(fd, slot, 0, 16, slotIndex(accountId) * 8) < 16) return undefined;
    return { word: slot.readBigInt64LE(0), total: Number(slot.readBigInt64LE(8)) };
  });
}

/**
 * Waits, for some seconds at most, until a running ledger writer has told the workers of this revision (and, with `andCharges`, lets them
 * charge); returns at once when there is none. It blocks: for administration only.
 */
export function awaitPublished(ledgerFile: string, revision: number, andCharges = false): void {
  withCountersFile(ledgerFile, (fd) => {
    const head = Buffer.alloc(WIDE.heartbeatMs * 8 + 8);
    const pause = new Int32Array(new SharedArrayBuffer(4));
    const untilMs = performance.now() + PUBLISHED_WITHIN_MS;
    while (performance.now() < untilMs) {
      if (readSync(fd, head, 0, head.length, 0) < head.length) return;
      const isRunning = Math.abs(Date.now() - Number(head.readBigInt64LE(WIDE.heartbeatMs * 8))) < PUBLISHED_WITHIN_MS;
      const isReady = !andCharges || head.readInt32LE(FIELD.state * 4) === STATE.ready;
      if (!isRunning || (isReady && head.readInt32LE(FIELD.revision * 4) >= revision)) return;
      Atomics.wait(pause, 0, 0, 5);
    }
  });
}
