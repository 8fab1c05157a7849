/**
 * The shared counters: one small file in memory that all processes of a host map. A worker charges here with one compare-and-exchange
 * per lookup, so that a limit holds over all workers without a lock.
 *
 * Each account has a slot of 64 bytes. Its word has an epoch and the number of lookups left of what the ledger writer has reserved:
 * `used = reserved − left`. Workers only lower `left`. The ledger writer writes everything else. A slot has two records; the epoch selects
 * the one in use. The ledger writer fills the other record and then moves the word to the next epoch. A worker that has read the earlier
 * record then fails its compare-and-exchange and reads again.
 */
import { cycleEnd } from '../cycle.ts';

/** Account ids are below this number. */
export const SLOT_COUNT = 65_536;

export const COUNTERS_HEADER_SIZE_BYTES = 4096;
const SLOT_SIZE_BYTES = 64;
export const COUNTERS_SIZE_BYTES: number = COUNTERS_HEADER_SIZE_BYTES + SLOT_COUNT * SLOT_SIZE_BYTES;

const MAGIC = 0x54436770;
/** Version of the file's layout and name. Processes that share counters must agree on both. */
export const COUNTERS_VERSION = 4;

/** Indexes of 32-bit fields in the header. The owner field has 48 bytes. */
const FIELD = { magic: 0, version: 1, owner: 2, revision: 16, epoch: 17, state: 18, lastSeenSeconds: 19 } as const;
const OWNER_SIZE_BYTES = 48;
/** Index of the first of four 64-bit floats in the header. */
const STATUS_AT = 16;
/** Index of the first of six 64-bit floats in the header, which describe the connection to a fleet's ledger. */
const FLEET_AT = 20;
const FLEET_SIZE = 6;
const REASON_OFFSET = 1024;
const REASON_MAX_BYTES = 1022;

const LEFT_BITS = 24;
/** The most lookups that a slot can have left. */
export const LEFT_MAX: number = 2 ** LEFT_BITS - 1;
const EPOCHS = 256;

/** Layout of a slot, as indexes of 32-bit fields: the word at 0, four 64-bit floats from 2 on, two records of three integers from 10 on. */
const SLOT = { floats: 2, records: 10 } as const;
/** Indexes of 32-bit fields in a record, and its size. */
const RECORD = { granted: 0, cycle: 1, check: 2, size: 3 } as const;

/** Whether the ledger writer has read the ledger, and can write it. */
export const WRITER_STATE = { starting: 0, ready: 1, failed: 2 } as const;
export type WriterState = (typeof WRITER_STATE)[keyof typeof WRITER_STATE];

/** The ledger writer's report about itself. */
export interface WriterStatus {
  /** Time of the latest report, in milliseconds since 1970. */
  readonly heartbeatMs: number;
  /** Number of the latest commit whose reservations were published. */
  readonly commits: number;
  /** How long it took, in milliseconds. */
  readonly commitMs: number;
  /** Size of the write-ahead log, in bytes. */
  readonly walBytes: number;
}

/** State of a node's connection to its fleet's ledger. */
export interface FleetLink {
  /** Time of the last contact, in milliseconds since 1970 on this host's clock; 0 if there was none. */
  readonly heardMs: number;
  /** What to add to this host's clock to get the database's, in milliseconds. */
  readonly clockOffsetMs: number;
  /** Milliseconds without contact after which a node stops answering lookups; 0 on a single host. */
  readonly maxStalenessMs: number;
  /** Lookups that the node may spend without asking, over all accounts. */
  readonly held: number;
  /** 1 while nothing is granted because commits were lost. */
  readonly learning: number;
  /** The session of the ledger writer that last had contact, below 2^48; 0 if there was no contact since this host was started. */
  readonly session: number;
}

/** The values on a single host. */
export const NO_FLEET: FleetLink = {
  heardMs: 0,
  clockOffsetMs: 0,
  maxStalenessMs: 0,
  held: 0,
  learning: 0,
  session: 0,
};

/** The part of an account's slot that the ledger writer publishes. */
export interface Reservation {
  readonly cycle: number;
  /** Lookups per cycle. */
  readonly limit: number;
  /** Lookups of the cycle whose reservation is durable. */
  readonly reserved: number;
}

/** A consistent reading of a slot. */
export interface SlotView extends Reservation {
  readonly left: number;
}

/** Results of a charge that did not happen. A result of 0 or more is the number of lookups left of the limit. */
export const CHARGE_REFUSED = {
  /** The limit is reached. */
  exhausted: -1,
  /** All that is reserved is used. */
  empty: -2,
  cycleOver: -3,
  /** The slot's content was not written by the ledger writer. */
  damaged: -4,
} as const;

/** Identifies what counters belong to. */
export interface CountersOwner {
  /** 32 hexadecimal digits. */
  readonly ledgerId: string;
  /** The kernel's boot id, 32 hexadecimal digits. */
  readonly bootId: string;
  /** Device and inode of the counters file itself, which differ in a copy. */
  readonly device: bigint;
  readonly inode: bigint;
}

function ownerBytes({ ledgerId, bootId, device, inode }: CountersOwner): Buffer {
  const bytes = Buffer.alloc(OWNER_SIZE_BYTES);
  bytes.write(ledgerId, 0, 16, 'hex');
  bytes.write(bootId, 16, 16, 'hex');
  bytes.writeBigUInt64LE(BigInt.asUintN(64, device), 32);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, inode), 40);
  return bytes;
}

const slotIndex = (accountId: number): number => (COUNTERS_HEADER_SIZE_BYTES + accountId * SLOT_SIZE_BYTES) / 4;
const epochOf = (word: number): number => word >>> LEFT_BITS;
const wordOf = (epoch: number, left: number): number => (epoch << LEFT_BITS) | left;
/** The position of an epoch's record, as indexes of 32-bit fields: {@link recordOf} for its integers, {@link floatsOf} for its two floats. */
const recordOf = (slot: number, epoch: number): number => slot + SLOT.records + (epoch & 1) * RECORD.size;
const floatsOf = (slot: number, epoch: number): number => slot + SLOT.floats + (epoch & 1) * 4;

/** The counters in a mapped file, or in a copy of one. */
export class Counters {
  /** Set by each successful {@link charge}: at most half of the block is left, so the caller should request the next one. */
  isLow = false;
  readonly #header: Uint8Array;
  readonly #ints: Int32Array;
  readonly #floats: Float64Array;

  /** @param buffer at least {@link COUNTERS_SIZE_BYTES} long. */
  constructor(buffer: ArrayBufferLike) {
    this.#header = new Uint8Array(buffer, 0, COUNTERS_HEADER_SIZE_BYTES);
    this.#ints = new Int32Array(buffer, 0, COUNTERS_SIZE_BYTES / 4);
    this.#floats = new Float64Array(buffer, 0, COUNTERS_SIZE_BYTES / 8);
  }

  /** Whether they were written for this ledger, since this boot and in this very file. Other counters must not be used. */
  isFor(owner: CountersOwner): boolean {
    if (this.#ints[FIELD.magic] !== MAGIC || this.#ints[FIELD.version] !== COUNTERS_VERSION) return false;
    return ownerBytes(owner).equals(this.#header.subarray(FIELD.owner * 4, FIELD.owner * 4 + OWNER_SIZE_BYTES));
  }

  /** Writes the owner into empty counters. */
  claim(owner: CountersOwner): void {
    this.#header.set(ownerBytes(owner), FIELD.owner * 4);
    this.#ints[FIELD.version] = COUNTERS_VERSION;
    this.#ints[FIELD.magic] = MAGIC;
  }

  get state(): WriterState {
    return Atomics.load(this.#ints, FIELD.state) as WriterState;
  }

  set state(state: WriterState) {
    Atomics.store(this.#ints, FIELD.state, state);
  }

  /** The ledger's revision that the ledger writer has published. Workers drop what they have cached when it changes. */
  get revision(): number {
    return Atomics.load(this.#ints, FIELD.revision);
  }

  set revision(revision: number) {
    Atomics.store(this.#ints, FIELD.revision, revision | 0);
  }

  /** Incremented when the ledger writer opens the ledger file again. Workers then do the same. */
  get epoch(): number {
    return Atomics.load(this.#ints, FIELD.epoch);
  }

  nextEpoch(): void {
    Atomics.add(this.#ints, FIELD.epoch, 1);
  }

  /** The latest second that the ledger writer has seen and trusts. */
  get lastSeenSeconds(): number {
    return Atomics.load(this.#ints, FIELD.lastSeenSeconds) >>> 0;
  }

  set lastSeenSeconds(seconds: number) {
    Atomics.store(this.#ints, FIELD.lastSeenSeconds, seconds | 0);
  }

  /** The ledger writer's report about itself. */
  get status(): WriterStatus {
    const [heartbeatMs = 0, commits = 0, commitMs = 0, walBytes = 0] = this.#floats.subarray(STATUS_AT, STATUS_AT + 4);
    return { heartbeatMs, commits, commitMs, walBytes };
  }

  set status({ heartbeatMs, commits, commitMs, walBytes }) {
    this.#floats.set([heartbeatMs, commits, commitMs, walBytes], STATUS_AT);
  }

  /** State of the connection to the fleet's ledger. */
  get fleet(): FleetLink {
    const [heardMs = 0, clockOffsetMs = 0, maxStalenessMs = 0, held = 0, learning = 0, session = 0] =
      this.#floats.subarray(FLEET_AT, FLEET_AT + FLEET_SIZE);
    return { heardMs, clockOffsetMs, maxStalenessMs, held, learning, session };
  }

  set fleet({ heardMs, clockOffsetMs, maxStalenessMs, held, learning, session }) {
    this.#floats.set([heardMs, clockOffsetMs, maxStalenessMs, held, learning, session], FLEET_AT);
  }

  /** Whether a node had contact with its fleet's ledger lately; always true on a single host. Cheap. */
  isHeard(nowMs: number, withinMs = this.#floats[FLEET_AT + 2]!): boolean {
    return this.#floats[FLEET_AT + 2] === 0 || nowMs - this.#floats[FLEET_AT]! <= withinMs;
  }

  /** Whether this is a single host, not a node of a fleet. */
  get isAlone(): boolean {
    return this.#floats[FLEET_AT + 2] === 0;
  }

  /** What to add to this host's clock to get the ledger's, in milliseconds. */
  get clockOffsetMs(): number {
    return this.#floats[FLEET_AT + 1]!;
  }

  /** Why the state is `failed`, in words. */
  get reason(): string {
    const end = this.#header.indexOf(0, REASON_OFFSET);
    return Buffer.from(this.#header.subarray(REASON_OFFSET, end)).toString('utf8');
  }

  set reason(text: string) {
    const encoded = Buffer.from(text, 'utf8').subarray(0, REASON_MAX_BYTES);
    this.#header.set(encoded, REASON_OFFSET);
    this.#header.fill(0, REASON_OFFSET + encoded.length, REASON_OFFSET + REASON_MAX_BYTES + 1);
  }

  /**
   * Charges one lookup.
   *
   * @param anchorSeconds when the account's cycle 0 began.
   * @returns the lookups left of the limit afterwards, or one of {@link CHARGE_REFUSED}.
   */
  charge(accountId: number, anchorSeconds: number, nowSeconds: number): number {
    const slot = slotIndex(accountId);
    let word = Atomics.load(this.#ints, slot);
    for (;;) {
      const epoch = epochOf(word);
      const left = word & LEFT_MAX;
      const record = recordOf(slot, epoch);
      const floats = floatsOf(slot, epoch) / 2;
      const reserved = this.#floats[floats]!;
      const limit = this.#floats[floats + 1]!;
      const isValid = this.#isValid(accountId, slot, word);
      const isOver = isValid && nowSeconds >= cycleEnd(anchorSeconds, this.#ints[record + RECORD.cycle]!);
      if (isValid && !isOver && left > 0) {
        const found = Atomics.compareExchange(this.#ints, slot, word, word - 1);
        if (found === word) {
          this.isLow = 2 * (left - 1) <= this.#ints[record + RECORD.granted]! && reserved < limit;
          return Math.max(0, limit - reserved + left - 1);
        }
        word = found;
        continue;
      }
      const found = Atomics.load(this.#ints, slot);
      if (found === word) {
        if (!isValid) return CHARGE_REFUSED.damaged;
        if (isOver) return CHARGE_REFUSED.cycleOver;
        return reserved < limit ? CHARGE_REFUSED.empty : CHARGE_REFUSED.exhausted;
      }
      word = found;
    }
  }

  /** Reads a slot; undefined if its content was not written by the ledger writer. */
  view(accountId: number): SlotView | undefined {
    const slot = slotIndex(accountId);
    for (;;) {
      const word = Atomics.load(this.#ints, slot);
      const view = this.#isValid(accountId, slot, word) ? this.#read(slot, word) : undefined;
      if (epochOf(Atomics.load(this.#ints, slot)) === epochOf(word)) return view;
    }
  }

  /**
   * Publishes a durable reservation. Only the ledger writer may call this.
   *
   * @param added the lookups by which it exceeds the previous reservation, which are added to what is left; for a new cycle, all of it.
   * @returns false if the slot is damaged; it stays unchanged then.
   */
  publish(accountId: number, reservation: Reservation, added: number): boolean {
    return this.#move(accountId, (slot) => ({ ...reservation, left: slot.left + added })) !== undefined;
  }

  /**
   * Removes what is left from a slot, so that no worker can charge until the next reservation. Only the ledger writer may call this.
   *
   * @returns the slot afterwards, whose `reserved` is exactly what was used; undefined if the slot is damaged.
   */
  withdraw(accountId: number): SlotView | undefined {
    return this.#move(accountId, (slot) => ({ ...slot, reserved: slot.reserved - slot.left, left: 0 }));
  }

  /** Does the same for all slots: afterwards the usage is exact, and no worker can charge. */
  withdrawAll(): void {
    for (let id = 1; id < SLOT_COUNT; id += 1) this.withdraw(id);
  }

  /** Moves a slot to its next epoch. */
  #move(accountId: number, next: (slot: SlotView) => SlotView): SlotView | undefined {
    const slot = slotIndex(accountId);
    for (;;) {
      const word = Atomics.load(this.#ints, slot);
      if (!this.#isValid(accountId, slot, word)) return undefined;
      const after = next(this.#read(slot, word));
      const epoch = (epochOf(word) + 1) % EPOCHS;
      this.#writeRecord(accountId, slot, epoch, after);
      if (Atomics.compareExchange(this.#ints, slot, word, wordOf(epoch, after.left)) === word) return after;
    }
  }

  /** Overwrites a slot, whatever it holds. Only the ledger writer may call this. */
  reset(accountId: number, view: SlotView): void {
    const slot = slotIndex(accountId);
    const epoch = (epochOf(Atomics.load(this.#ints, slot)) + 1) % EPOCHS;
    this.#writeRecord(accountId, slot, epoch, view);
    Atomics.store(this.#ints, slot, wordOf(epoch, view.left));
  }

  /** Invalidates a slot, so that only the ledger has the usage. The slot must be withdrawn before. Only the ledger writer may call this. */
  forget(accountId: number): void {
    const slot = slotIndex(accountId);
    const epoch = epochOf(Atomics.load(this.#ints, slot));
    this.#ints[recordOf(slot, epoch) + RECORD.check] = ~this.#checkOf(accountId, slot, epoch);
  }

  #read(slot: number, word: number): SlotView {
    const floats = floatsOf(slot, epochOf(word)) / 2;
    return {
      cycle: this.#ints[recordOf(slot, epochOf(word)) + RECORD.cycle]!,
      limit: this.#floats[floats + 1]!,
      reserved: this.#floats[floats]!,
      left: word & LEFT_MAX,
    };
  }

  #writeRecord(accountId: number, slot: number, epoch: number, { cycle, limit, reserved, left }: SlotView): void {
    const record = recordOf(slot, epoch);
    const floats = floatsOf(slot, epoch) / 2;
    this.#floats[floats] = reserved;
    this.#floats[floats + 1] = limit;
    this.#ints[record + RECORD.granted] = left;
    this.#ints[record + RECORD.cycle] = cycle;
    this.#ints[record + RECORD.check] = this.#checkOf(accountId, slot, epoch);
  }

  #isValid(accountId: number, slot: number, word: number): boolean {
    const epoch = epochOf(word);
    const record = recordOf(slot, epoch);
    if ((word & LEFT_MAX) > this.#ints[record + RECORD.granted]!) return false;
    return this.#ints[record + RECORD.check] === this.#checkOf(accountId, slot, epoch);
  }

  /** A checksum over the fields of an epoch. Each mixing step is invertible, so that a change of a single field is always detected. */
  #checkOf(accountId: number, slot: number, epoch: number): number {
    const ints = this.#ints;
    const record = recordOf(slot, epoch);
    const floats = floatsOf(slot, epoch);
    let check = mix(MAGIC ^ accountId, epoch);
    check = mix(check, ints[record + RECORD.granted]!);
    check = mix(check, ints[record + RECORD.cycle]!);
    for (let at = floats; at < floats + 4; at += 1) check = mix(check, ints[at]!);
    return check;
  }
}

function mix(check: number, value: number): number {
  const mixed = Math.imul(check ^ value, 0x85ebca6b);
  return mixed ^ (mixed >>> 15);
}
