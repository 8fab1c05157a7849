/**
 * Generates host names. Name number `i` of `n` decodes the fraction `i / n` as an arithmetic code: kind of host, public suffix, then piece after
 * piece. Each choice narrows the interval to its share. Two numbers get different names once the interval is narrower than 1/n, so names are
 * unique without a list of earlier ones. Short names that would repeat are extended with random pieces.
 */
import { domainToASCII } from 'node:url';
import { model, namesOf, unpackFollow, wheelOf } from './model.ts';
import { mix, Stream } from './random.ts';
import { makeWheel, Pool, type Wheel } from './weighted-choice.ts';

const LABEL_MAX = 40;
const DOT = 0x2e;
const HYPHEN = 0x2d;
const LETTER = 0x61;
const SUFFIX_SLOTS = 8192;
const SCRIPTS = [
  'абвгдежзиклмнопрстуфхцчшщыэюя',
  '的一是在不了有和人这中大为上个国我以要他',
  'aäbcdeéfghiíklmnoöpqrsßtuüvwz',
];

const follow = unpackFollow();
const pieces = new Pool(model.names.pieces);
const plain = model.names.pieces.filter((piece) => /^[a-z]{2,}$/.test(piece));
const plainPieces = new Pool(plain);
const plainPieceCount = plain.length;
const START = follow.symbols - 1;
// Symbol k stands for k + 1 pieces.
const lengthWheel = makeWheel(model.names.lengths, 1024);
const suffixNames = namesOf(model.names.suffixes);
const suffixWheel = wheelOf(model.names.suffixes, SUFFIX_SLOTS);
const sublabels = new Pool(namesOf(model.names.sublabels));
const sublabelWheel = wheelOf(model.names.sublabels, 1024);
const kindWheel = makeWheel(model.names.kinds, 4096);
const familyWheel = makeWheel(model.names.families, SUFFIX_SLOTS);
const [INTERNATIONAL, INTERNATIONAL_OF] = model.names.international;
const KIND = { apex: 0, below: 1, family: 2 } as const;
/** Share of the hosts under a small domain that have a common first label. */
const COMMON_SUBLABEL = 0.5;

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** Returns a stride that visits every number below `records` once, in scattered order. Products stay below 2^53 up to 800 million records. */
function strideOf(records: number): number {
  let stride = 10_368_889 % records || 1;
  while (gcd(stride, records) !== 1) stride += 1;
  return stride;
}

export class NameSource {
  /** About the last name written: offset of its registrable domain, number of its public suffix, and whether it belongs to a family. */
  registrableAt = 0;
  suffix = 0;
  isFamily = false;

  readonly #records: number;
  readonly #stride: number;
  readonly #offset: number;
  readonly #shift: number;
  readonly #stream = new Stream();
  readonly #suffixes = new Pool(suffixNames);
  readonly #families: Pool;
  /** The remaining code, the width of its interval, and the width below which the code is used up. */
  #code = 0;
  #width = 1;
  #floor = 0;
  /** Whether the code was used up and random bits continue it. Before that, the width shows how many numbers share the name so far. */
  #fresh = false;
  readonly #seed: number;

  constructor(records: number, seed: number) {
    this.#records = records;
    this.#seed = seed;
    this.#stride = strideOf(records);
    this.#offset = (mix(seed ^ 0x7f4a7c15) >>> 0) % records;
    this.#shift = 0.1 + 0.8 * ((mix(seed ^ 0x1b873593) >>> 0) / 0x1_0000_0000);
    this.#families = new Pool(this.#makeFamilies());
  }

  /** Writes name number `i`, which is less than the number of records. Returns the offset after it. */
  write(i: number, out: Uint8Array, at: number): number {
    const number = (i * this.#stride + this.#offset) % this.#records;
    this.#stream.restart(this.#seed, i);
    this.#code = (number + this.#shift) / this.#records;
    this.#width = 1;
    this.#floor = 1 / (4 * this.#records);
    this.#fresh = false;
    const kind = this.#choose(kindWheel);
    this.isFamily = kind === KIND.family;
    if (kind === KIND.family) return this.#writeFamilyMember(out, at);
    let to = at;
    if (kind === KIND.below) to = this.#writeSublabel(out, to);
    this.registrableAt = to;
    this.suffix = this.#choose(suffixWheel);
    const isInternational = kind === KIND.apex && this.#stream.below(INTERNATIONAL_OF) < INTERNATIONAL;
    to = isInternational ? this.#writeInternational(out, to) : this.#writeLabel(out, to);
    out[to++] = DOT;
    return this.#suffixes.copy(this.suffix, out, to);
  }

  #choose(wheel: Wheel): number {
    if (this.#width < this.#floor) this.#refresh();
    const place = this.#code * wheel.size;
    const symbol = wheel.table[Math.floor(place)]!;
    const width = wheel.width[symbol]!;
    this.#code = (place - wheel.base[symbol]!) / width;
    this.#width *= width / wheel.size;
    return symbol;
  }

  #refresh(): void {
    this.#code = this.#stream.fraction();
    this.#width = 1;
    this.#floor = 2 ** -14;
    this.#fresh = true;
  }

  /** Writes a label. Chooses its number of pieces first. */
  #writeLabel(out: Uint8Array, at: number): number {
    const { scale, table, base, width: widths, symbols } = follow;
    let left = this.#choose(lengthWheel);
    let to = at;
    let context = START;
    do {
      if (this.#width < this.#floor) this.#refresh();
      const place = this.#code * scale;
      const piece = table[context * scale + Math.floor(place)]!;
      const cell = context * symbols + piece;
      this.#code = (place - base[cell]!) / widths[cell]!;
      this.#width *= widths[cell]! / scale;
      to = pieces.copy(piece, out, to);
      context = piece;
      left -= 1;
    } while (left >= 0 && to - at < LABEL_MAX);
    if (to - at >= 4 && out[at + 2] === HYPHEN && out[at + 3] === HYPHEN) out[at + 3] = LETTER;
    if (out[to - 1] === HYPHEN) out[to - 1] = LETTER;
    // Several numbers share this name: all except the first continue with further pieces.
    if (!this.#fresh && this.#width >= this.#floor) {
      const twin = Math.floor(this.#code * this.#width * this.#records);
      for (let more = twin === 0 ? 0 : twin < 64 ? 2 : 3; more > 0; more -= 1) {
        to = plainPieces.copy(this.#stream.below(plainPieceCount), out, to);
      }
    }
    return to;
  }

  #writeSublabel(out: Uint8Array, at: number): number {
    let to = at;
    if (this.#stream.fraction() < COMMON_SUBLABEL) {
      to = sublabels.copy(this.#choose(sublabelWheel), out, to);
    } else {
      to = plainPieces.copy(this.#stream.below(plainPieceCount), out, to);
    }
    out[to++] = DOT;
    return to;
  }

  #writeFamilyMember(out: Uint8Array, at: number): number {
    const family = this.#choose(familyWheel);
    let to = this.#writeLabel(out, at);
    out[to++] = DOT;
    this.registrableAt = to;
    to = this.#families.copy(family, out, to);
    return to;
  }

  /** Writes an international label in its ASCII form, made of random letters of one script. */
  #writeInternational(out: Uint8Array, at: number): number {
    const script = SCRIPTS[this.#stream.below(SCRIPTS.length)]!;
    const length = script.startsWith('的') ? 3 + this.#stream.below(4) : 6 + this.#stream.below(7);
    let label = '';
    for (let k = 0; k < length; k += 1) label += script[this.#stream.below(script.length)];
    const ascii = domainToASCII(label);
    for (let k = 0; k < ascii.length; k += 1) out[at + k] = ascii.charCodeAt(k);
    return at + ascii.length;
  }

  /** Creates the registrable domains of the families. The largest family is among the first. */
  #makeFamilies(): string[] {
    const bytes = new Uint8Array(256);
    const made = new Set<string>();
    for (let i = 0; made.size < model.names.families.length; i += 1) {
      this.#stream.restart(this.#seed ^ 0x51ed270b, i);
      this.#refresh();
      let to = this.#writeLabel(bytes, 0);
      bytes[to++] = DOT;
      to = this.#suffixes.copy(this.#choose(suffixWheel), bytes, to);
      made.add(Buffer.from(bytes.subarray(0, to)).toString('latin1'));
    }
    return [...made];
  }
}

/** Writes a whole number in decimal. */
export function writeNumber(value: number, out: Uint8Array, at: number): number {
  let digits = 1;
  for (let rest = Math.floor(value / 10); rest > 0; rest = Math.floor(rest / 10)) digits += 1;
  let rest = value;
  for (let to = at + digits - 1; to >= at; to -= 1) {
    const next = Math.floor(rest / 10);
    out[to] = 0x30 + (rest - next * 10);
    rest = next;
  }
  return at + digits;
}
