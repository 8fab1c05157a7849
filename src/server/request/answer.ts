/**
 * The bytes of an answer. What does not depend on the charge is written first, into one buffer that every request uses anew; the
 * quota goes into a gap of known size once the charge is known, so that the order of the fields is that of the specification.
 */
import type { Index } from '../../index/read.ts';
import type { Verdict } from '../../policy/types.ts';

const QUOTA_NAME = Buffer.from(',"quota_remaining":', 'latin1');
/** A quota is a safe integer: at most 16 digits. */
const QUOTA_MAX_DIGITS = 16;
const GAP_MAX_BYTES = QUOTA_NAME.length + QUOTA_MAX_DIGITS;
const NOT_FOUND_TAIL = Buffer.from(',"found":false,"page_types":{}', 'latin1');

/** An answer whose quota is still open: what stands before the gap, and behind it from `tailStart` up to `end`. */
export interface Draft {
  readonly bytes: Buffer;
  readonly headSize: number;
  readonly tailStart: number;
  readonly end: number;
}

/** Writes answers one after the other into its buffer. The verdicts of a policy are few and always the same objects, so their bytes are kept. */
export class AnswerWriter {
  #scratch = Buffer.allocUnsafeSlow(64 * 1024);
  #headSize = 0;
  /** As long as the quota that was written last: the next one hardly ever has more or fewer digits. */
  #gapSize = GAP_MAX_BYTES;
  readonly #verdicts = new WeakMap<Verdict, Buffer>();

  /** Begins an answer for a record (`handle` in `index`) or, with a negative handle, for the unknown domain `key`. */
  begin(index: Index, handle: number, key: string): void {
    const most = index.info.maxAnswerSizeBytes + 1_024;
    if (most > this.#scratch.length) this.#scratch = Buffer.allocUnsafeSlow(most);
    this.#headSize = handle < 0 ? writeUnknown(this.#scratch, key) : index.writeHead(handle, this.#scratch, 0);
  }

  /** What is written of the answer that was begun last: the record's head, up to its last page. */
  get head(): string {
    return this.#scratch.toString('latin1', 0, this.#headSize);
  }

  /** Goes on with the answer that was begun, with the same index and record. */
  draft(index: Index, handle: number, verdict: Verdict): Draft {
    const verdictBytes = this.#verdictBytes(verdict);
    const headSize = this.#headSize;
    const most = index.info.maxAnswerSizeBytes + verdictBytes.length + GAP_MAX_BYTES + 1_024;
    if (most > this.#scratch.length) {
      const larger = Buffer.allocUnsafeSlow(most);
      this.#scratch.copy(larger, 0, 0, headSize);
      this.#scratch = larger;
    }
    const out = this.#scratch;
    const tailStart = headSize + this.#gapSize;
    let end = tailStart + verdictBytes.copy(out, tailStart);
    if (handle < 0) out[end++] = 0x7d;
    else end = index.writeTail(handle, out, end);
    return { bytes: out, headSize, tailStart, end };
  }

  /** Puts the quota into the gap and returns the finished bytes; they lie in the draft's own buffer. */
  finish({ bytes, headSize, tailStart, end }: Draft, quotaRemaining: number): Uint8Array {
    QUOTA_NAME.copy(bytes, headSize);
    const at = headSize + QUOTA_NAME.length;
    const gapEnd = at + decimalSize(quotaRemaining);
    if (gapEnd !== tailStart) bytes.copyWithin(gapEnd, tailStart, end);
    this.#gapSize = gapEnd - headSize;
    writeDecimal(bytes, at, gapEnd, quotaRemaining);
    return new Uint8Array(bytes.buffer, bytes.byteOffset, gapEnd + end - tailStart);
  }

  #verdictBytes(of: Verdict): Buffer {
    let bytes = this.#verdicts.get(of);
    if (bytes === undefined) {
      const { verdict, layer, id, note } = of;
      bytes = Buffer.from(`,"verdict":"${verdict}","matched":${JSON.stringify({ layer, id, note })}`);
      this.#verdicts.set(of, bytes);
    }
    return bytes;
  }
}

function writeUnknown(out: Buffer, key: string): number {
  // A key, and a canonical host, holds nothing that JSON would escape; quoting costs little and trusts nobody.
  const at = out.write(`{"domain":${JSON.stringify(key)}`, 0, 'latin1');
  return at + NOT_FOUND_TAIL.copy(out, at);
}

/** How many decimal digits a non-negative integer has. */
function decimalSize(value: number): number {
  let digits = 1;
  for (let bound = 10; value >= bound; bound *= 10) digits += 1;
  return digits;
}

/** A non-negative integer in the digits from `start` up to `end`. */
function writeDecimal(out: Buffer, start: number, end: number, value: number): void {
  let rest = value;
  for (let at = end - 1; at >= start; at--) {
    out[at] = 0x30 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
}
