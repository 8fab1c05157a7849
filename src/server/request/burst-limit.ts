/**
 * The burst limit: at most `limit` requests of one client in any 60 seconds, exact over all workers, in a fixed amount of memory.
 *
 * The table is shared by all workers, as 32-bit words. A keyed hash assigns each client to a set of eight records. A record is a ring
 * buffer with the times of the client's last `limit` admitted requests, so the entry that the next request would overwrite decides whether it
 * may pass. A refused request is not recorded: a client that keeps asking is served again as soon as its oldest request is 60 seconds old. If
 * all eight records of a set are in use, further clients share a ninth.
 *
 * Each set has its own lock. A worker that dies or is stopped while it holds the lock must not block the others, so they take the lock over
 * after a short time. At worst, one request is counted wrongly.
 */
import { randomBytes } from 'node:crypto';
import { LIMITS } from '../../limits.ts';
import type { Address } from '../../network/address.ts';
import { isIpv4Address } from '../../network/address.ts';

/** Times are stored in ticks. 32 bits of them last for two years of uptime. */
const TICK_MS = 16;
const WINDOW_TICKS = (LIMITS.burstWindowSeconds.value * 1_000) / TICK_MS;

const WAYS = 8;
const HEADER_WORDS = 8;
const SET_HEADER_WORDS = 4;
/** Words of a record before its ring buffer: kind (0: unused), two words of address, position in the ring, time of the last use. */
const RECORD_HEADER_WORDS = 5;
/** A lock that is held longer than this was left behind by a worker that died or is stopped; holding it takes a microsecond. */
const LOCK_TAKEOVER_MS = 100;
/** At most this much time counts between two checks of a lock: a longer pause of this worker most likely paused the holder, too. */
const LOCK_LOOK_MS = 1;
/** Workers read the same clock, but not at the same moment: a time that is ahead by at most this much counts as now. */
const AHEAD_MAX_TICKS = 1_000;

/** First word of a table. During a restart, two versions of the server share a table, so another layout needs another word. */
const MAGIC = 0x42555253;

export interface BurstLimits {
  readonly limit: number;
  readonly max_clients: number;
}

/** Size of a table with these limits, in bytes. */
export function burstTableSizeBytes(limits: BurstLimits): number {
  return (HEADER_WORDS + setCount(limits) * setWords(limits)) * 4;
}

const recordWords = ({ limit }: BurstLimits): number => RECORD_HEADER_WORDS + limit;
const setWords = (limits: BurstLimits): number => SET_HEADER_WORDS + (WAYS + 1) * recordWords(limits);

function setCount(limits: BurstLimits): number {
  const wanted = Math.ceil(limits.max_clients / WAYS);
  const most = Math.max(1, Math.floor(LIMITS.burstTableBytes.value / (setWords(limits) * 4)));
  return 2 ** Math.floor(Math.log2(Math.min(2 ** Math.ceil(Math.log2(wanted)), most)));
}

/** Writes the header of a table into zeroed memory: the secret that assigns clients to sets. */
export function initializeBurstTable(memory: ArrayBufferLike): void {
  const words = new Uint32Array(memory, 0, HEADER_WORDS);
  const secret = randomBytes(8);
  words[1] = secret.readUInt32LE(0);
  words[2] = secret.readUInt32LE(4);
  words[0] = MAGIC;
}

/** Whether the memory contains a table of this layout. */
export const isBurstTable = (memory: ArrayBufferLike): boolean => new Uint32Array(memory, 0, 1)[0] === MAGIC;

/** One worker's view of the shared table. */
export class BurstLimiter {
  readonly #words: Uint32Array;
  readonly #locks: Int32Array;
  readonly #limit: number;
  readonly #setMask: number;
  readonly #setWords: number;
  readonly #recordWords: number;
  readonly #clockMs: () => number;
  readonly #seeds: readonly [number, number];
  readonly #pid = process.pid;

  /** `clockMs` is monotonic and the same in all workers; in milliseconds. */
  constructor(memory: ArrayBufferLike, limits: BurstLimits, clockMs: () => number = monotonicMs) {
    const size = burstTableSizeBytes(limits);
    this.#words = new Uint32Array(memory, 0, size / 4);
    this.#locks = new Int32Array(memory, 0, size / 4);
    if (this.#words[0] !== MAGIC) throw new RangeError('The burst table is not initialized.');
    this.#limit = limits.limit;
    this.#setMask = setCount(limits) - 1;
    this.#setWords = setWords(limits);
    this.#recordWords = recordWords(limits);
    this.#clockMs = clockMs;
    this.#seeds = [this.#words[1]!, this.#words[2]!];
  }

  /** Counts a request. Returns 0 when it may pass, otherwise how many seconds the client must wait (at least 1). */
  admit(client: Address): number {
    const isV4 = isIpv4Address(client);
    const kind = isV4 ? 1 : 2;
    const high = wordAt(client, isV4 ? 12 : 0);
    const low = isV4 ? 0 : wordAt(client, 4);
    const set = HEADER_WORDS + (this.#hash(kind, high, low) & this.#setMask) * this.#setWords;
    const now = Math.floor(this.#clockMs() / TICK_MS) >>> 0;
    this.#lock(set);
    try {
      return this.#count(this.#record(set, kind, high, low, now), now);
    } finally {
      // Unless another worker has taken the lock over.
      Atomics.compareExchange(this.#locks, set, this.#pid, 0);
    }
  }

  #count(record: number, now: number): number {
    const words = this.#words;
    const position = words[record + 3]!;
    const slot = record + RECORD_HEADER_WORDS + position;
    const oldest = words[slot]!;
    // Zero means "never", so a time is stored plus one.
    const age = ticksSince(oldest, now + 1);
    // Both times are rounded down, so one tick more than the window is needed to be sure of the whole window.
    if (oldest !== 0 && age <= WINDOW_TICKS)
      return Math.max(1, Math.ceil(((WINDOW_TICKS + 1 - age) * TICK_MS) / 1_000));
    words[slot] = now + 1;
    words[record + 3] = position + 1 === this.#limit ? 0 : position + 1;
    words[record + 4] = now + 1;
    return 0;
  }

  /** Returns the client's own record; otherwise an unused one, the least recently used expired one, or the shared one. */
  #record(set: number, kind: number, high: number, low: number, now: number): number {
    const words = this.#words;
    let free = -1;
    let freeAge = WINDOW_TICKS;
    let record = set + SET_HEADER_WORDS;
    for (let way = 0; way < WAYS; way++, record += this.#recordWords) {
      if (words[record] === kind && words[record + 1] === high && words[record + 2] === low) return record;
      const age = words[record] === 0 ? 0xffffffff : ticksSince(words[record + 4]!, now + 1);
      if (age > freeAge) {
        free = record;
        freeAge = age;
      }
    }
    if (free === -1) return record;
    words.fill(0, free, free + this.#recordWords);
    words[free] = kind;
    words[free + 1] = high;
    words[free + 2] = low;
    return free;
  }

  #lock(set: number): void {
    const locks = this.#locks;
    if (Atomics.compareExchange(locks, set, 0, this.#pid) === 0) return;
    let waitedMs = 0;
    let lookedMs = performance.now();
    for (;;) {
      const holder = Atomics.load(locks, set);
      if (holder === 0) {
        if (Atomics.compareExchange(locks, set, 0, this.#pid) === 0) return;
      } else if (waitedMs > LOCK_TAKEOVER_MS) {
        if (Atomics.compareExchange(locks, set, holder, this.#pid) === holder) return;
      }
      const nowMs = performance.now();
      waitedMs += Math.min(nowMs - lookedMs, LOCK_LOOK_MS);
      lookedMs = nowMs;
    }
  }

  /** Two keyed rounds of a 32-bit finalizer, so that clients cannot choose addresses that fall into one set. */
  #hash(kind: number, high: number, low: number): number {
    let h = mix(high ^ this.#seeds[0]);
    h = mix(h ^ low ^ this.#seeds[1]);
    return mix(h ^ kind);
  }
}

/** Ticks between two times, across the 32-bit overflow. A time that is slightly ahead counts as now. */
function ticksSince(then: number, now: number): number {
  const ticks = (now - then) >>> 0;
  return ticks > 0xffffffff - AHEAD_MAX_TICKS ? 0 : ticks;
}

const wordAt = (bytes: Uint8Array, at: number): number =>
  ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;

function mix(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

const offsetMs = measureOffset();

/** Offset between `performance.now()` and the host's clock, from the tightest of several readings. */
function measureOffset(): number {
  let best = Number.POSITIVE_INFINITY;
  let offset = 0;
  for (let i = 0; i < 16; i++) {
    const before = performance.now();
    const host = Number(process.hrtime.bigint() / 1_000n) / 1_000;
    const after = performance.now();
    if (after - before >= best) continue;
    best = after - before;
    offset = host - (before + after) / 2;
  }
  return offset;
}

/** The host's monotonic clock in milliseconds, the same in all processes. */
export function monotonicMs(): number {
  return performance.now() + offsetMs;
}
