/**
 * The shared counters: one small file in memory that all processes of a host map. A worker charges here with one compare-and-exchange
 * for each lookup, so that a limit holds over all workers without a lock.
 *
 * Each account has a slot of 64 bytes. Its word holds an epoch and the units that are left of what the ledger writer has reserved:
 * `used = reserved − left`. Workers only lower `left`. Everything else is written by the ledger writer, into that one of two records
 * which the current epoch does not use, before it moves the word to the next epoch: a worker that read the earlier record then fails its
 * compare-and-exchange and reads again.
 */
import { cycleEnd } from '../cycle.ts';

/** Accounts' ids are below this number. */
export const SLOT_COUNT = 65_536;

export const COUNTERS_HEADER_SIZE_BYTES = 4096;
const SLOT_SIZE_BYTES = 64;
export const COUNTERS_SIZE_BYTES: number = COUNTERS_HEADER_SIZE_BYTES + SLOT_COUNT * SLOT_SIZE_BYTES;

const MAGIC = 0x54436770;
/** The version of the layout and of the file's name. Processes that share counters must agree on both. */
export const COUNTERS_VERSION = 4;

/** Indexes of 32-bit fields in the header. The owner has 48 bytes. */
const FIELD = { magic: 0, version: 1, owner: 2, revision: 16, epoch: 17, state: 18, lastSeenSeconds: 19 } as const;
const OWNER_SIZE_BYTES = 48;
/** Index of the first of four 64-bit floats in the header. */
const STATUS_AT = 16;
/** Index of the first of six 64-bit floats in the header, which tell of a fleet's ledger. */
const FLEET_AT = 20;
const FLEET_SIZE = 6;
const REASON_OFFSET = 1024;
const REASON_MAX_BYTES = 1022;

const LEFT_BITS = 24;
/** The most units that a slot can have left. */
export const LEFT_MAX: number = 2 ** LEFT_BITS - 1;
const EPOCHS = 256;

/** A slot, by 32-bit fields: the word, four floats from 2 on, two records of three integers from 10 on. */
const SLOT = { floats: 2, records: 10 } as const;
/** 32-bit fields of a record. */
const RECORD = { granted: 0, cycle: 1, check: 2, size: 3 } as const;

/** Whether the ledger writer has read the ledger, and can write it. */
export const WRITER_STATE = { starting: 0, ready: 1, failed: 2 } as const;
export type WriterState = (typeof WRITER_STATE)[keyof typeof WRITER_STATE];

/** What the ledger writer tells of itself. */
export interface WriterStatus {
  /** Milliseconds since 1970. */
  readonly heartbeatMs: number;
  /** Number of the latest commit whose reservations were published. */
  readonly commits: number;
  /** How long it took, in milliseconds. */
  readonly commitMs: number;
  /** Size of the write-ahead log. */
  readonly walBytes: number;
}

/** How a node follows its fleet's ledger. */
export interface FleetLink {
  /** When it was last heard, in milliseconds since 1970 on this host's clock. */
  readonly heardMs: number;
  /** What to add to this host's clock, in milliseconds. */
  readonly clockOffsetMs: number;
  /** After so many milliseconds unheard a node stops answering; 0 on a host of its own. */
  readonly maxStalenessMs: number;
  /** Lookups that the node may spend without asking, over all accounts. */
  readonly held: number;
  /** 1 while nothing is granted because commits were lost. */
  readonly learning: number;
  /** Of the ledger writer that the fleet's ledger heard last, below 2^48; 0 where it has heard none since the host was started. */
  readonly session: number;
}

/** A host of its own. */
export const NO_FLEET: FleetLink = {
  heardMs: 0,
  clockOffsetMs: 0,
  maxStalenessMs: 0,
  held: 0,
  learning: 0,
  session: 0,
};

/** What the ledger writer says of an account in its cycle. */
export interface Reservation {
  readonly cycle: number;
  /** Lookups a cycle. */
  readonly limit: number;
  /** Lookups of the cycle that are durable as reserved. */
  readonly reserved: number;
}

/** A slot, read in one piece. */
export interface SlotView extends Reservation {
  readonly left: number;
}

/** Outcomes of a charge that did not happen. From 0 on, an outcome is what is left of the limit. */
export const CHARGE_REFUSED = {
  /** The limit is reached. */
  exhausted: -1,
  /** All that is reserved is used. */
  empty: -2,
  cycleOver: -3,
  /** The slot holds nothing that the ledger writer wrote. */
  damaged: -4,
} as const;

/** Whose counters these are. */
export interface CountersOwner {
  /** 32 hexadecimal digits. */
  readonly ledgerId: string;
  /** The kernel's boot id, 32 hexadecimal digits. */
  readonly bootId: string;
  /** Of the counters file itself: a copy has others. */
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
/** Where the record of an epoch lies: 32-bit index of its integers, and of its two floats. */
const recordOf = (slot: number, epoch: number): number => slot + SLOT.records + (epoch & 1) * RECORD.size;
const floatsOf = (slot: number, epoch: number): number => slot + SLOT.floats + (epoch & 1) * 4;

/** The counters in a mapped file, or in a copy of one. */
export class Counters {
  /** After a charge: whether no more than half of the block is left, so that it is time to ask for the next. */
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

  /** Whether they were written for this ledger, since this boot and in this very file. Nothing else is believed. */
  isFor(owner: CountersOwner): boolean {
    if (this.#ints[FIELD.magic] !== MAGIC || this.#ints[FIELD.version] !== COUNTERS_VERSION) return false;
    return ownerBytes(owner).equals(this.#header.subarray(FIELD.owner * 4, FIELD.owner * 4 + OWNER_SIZE_BYTES));
  }

  /** Takes empty counters for a ledger. */
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

  /** The ledger's revision that the ledger writer has published; workers drop what they remember when it moves. */
  get revision(): number {
    return Atomics.load(this.#ints, FIELD.revision);
  }

  set revision(revision: number) {
    Atomics.store(this.#ints, FIELD.revision, revision | 0);
  }

  /** Grows when the ledger writer opens the ledger file again; workers then do the same. */
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

  /** What the ledger writer tells of itself. */
  get status(): WriterStatus {
    const [heartbeatMs = 0, commits = 0, commitMs = 0, walBytes = 0] = this.#floats.subarray(STATUS_AT, STATUS_AT + 4);
    return { heartbeatMs, commits, commitMs, walBytes };
  }

  set status({ heartbeatMs, commits, commitMs, walBytes }) {
    this.#floats.set([heartbeatMs, commits, commitMs, walBytes], STATUS_AT);
  }

  /** How the fleet's ledger is followed. */
  get fleet(): FleetLink {
    const [heardMs = 0, clockOffsetMs = 0, maxStalenessMs = 0, held = 0, learning = 0, session = 0] =
      this.#floats.subarray(FLEET_AT, FLEET_AT + FLEET_SIZE);
    return { heardMs, clockOffsetMs, maxStalenessMs, held, learning, session };
  }

  set fleet({ heardMs, clockOffsetMs, maxStalenessMs, held, learning, session }) {
    this.#floats.set([heardMs, clockOffsetMs, maxStalenessMs, held, learning, session], FLEET_AT);
  }

  /** Whether a node has heard its fleet's ledger lately; always true on a host of its own. Cheap. */
  isHeard(nowMs: number, withinMs = this.#floats[FLEET_AT + 2]!): boolean {
    return this.#floats[FLEET_AT + 2] === 0 || nowMs - this.#floats[FLEET_AT]! <= withinMs;
  }

  /** Whether this is a host of its own, not a node of a fleet. */
  get isAlone(): boolean {
    return this.#floats[FLEET_AT + 2] === 0;
  }

  /** What to add to this host's clock, in milliseconds. */
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
   * @returns what is left of the limit afterwards, or one of {@link CHARGE_REFUSED}.
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

  /** What a slot holds; undefined where that is nothing that the ledger writer wrote. */
  view(accountId: number): SlotView | undefined {
    const slot = slotIndex(accountId);
    for (;;) {
      const word = Atomics.load(this.#ints, slot);
      const view = this.#isValid(accountId, slot, word) ? this.#read(slot, word) : undefined;
      if (epochOf(Atomics.load(this.#ints, slot)) === epochOf(word)) return view;
    }
  }

  /**
   * Publishes a reservation that is durable: what it has beyond the last one is added to what is left. For the ledger writer alone.
   *
   * @param added of a new cycle, all of it.
   * @returns false where the slot is damaged; it stays as it is.
   */
  publish(accountId: number, reservation: Reservation, added: number): boolean {
    return this.#move(accountId, (slot) => ({ ...reservation, left: slot.left + added })) !== undefined;
  }

  /**
   * Takes what is left out of a slot, so that nobody charges until the next reservation. For the ledger writer alone.
   *
   * @returns the slot afterwards, whose `reserved` is exactly what was used; undefined where the slot is damaged.
   */
  withdraw(accountId: number): SlotView | undefined {
    return this.#move(accountId, (slot) => ({ ...slot, reserved: slot.reserved - slot.left, left: 0 }));
  }

  /** The same for all slots: what was used is then exact, and nobody charges. */
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

  /** Overwrites a slot, whatever it holds. For the ledger writer alone. */
  reset(accountId: number, view: SlotView): void {
    const slot = slotIndex(accountId);
    const epoch = (epochOf(Atomics.load(this.#ints, slot)) + 1) % EPOCHS;
    this.#writeRecord(accountId, slot, epoch, view);
    Atomics.store(this.#ints, slot, wordOf(epoch, view.left));
  }

  /** Leaves nothing in a slot that can be believed: the ledger alone says what was used. It must be withdrawn. For the ledger writer alone. */
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

  /** A check over what belongs to an epoch. Each step can be undone, so that a change of one field never goes unseen. */
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
