/**
 * Writes the bytes of an answer into one buffer that all requests reuse. Everything that does not depend on the charge is written first. The
 * quota is inserted into a gap of known size once the charge is known, so the fields keep the order of the specification.
 */
import { BACKSLASH, QUOTE } from '../../bytes/ascii.ts';
import { decimalSize, writeDecimal } from '../../bytes/decimal.ts';
import { copyPiece, type Piece, pieceOf } from '../../bytes/json-pieces.ts';
import { type Index, NO_RECORD } from '../../index/read.ts';
import type { Verdict } from '../../policy/types.ts';
import type { PageFilter, PageUrl } from '../../record/types.ts';
import type { JudgedUrl, KeptAnswer, KeptAnswers } from '../swap/kept-answers.ts';

const QUOTA_NAME = pieceOf(',"quota_remaining":');
/** A quota is a safe integer: at most 16 digits. */
const QUOTA_MAX_DIGITS = 16;
const GAP_MAX_BYTES = QUOTA_NAME.size + QUOTA_MAX_DIGITS;
const UNKNOWN_HEAD = pieceOf('{"domain":"');
const UNKNOWN_TAIL = pieceOf('","found":false,"page_types":{}');

/** Writes answers one after the other into its buffer. A policy has few verdicts, always the same objects, so their bytes are cached. */
export class AnswerWriter {
  #scratch = Buffer.allocUnsafeSlow(64 * 1024);
  #view = new DataView(this.#scratch.buffer);
  /** Offset of the end of the head, where the gap begins; start and end of the tail, which follows the gap. */
  #headSize = 0;
  #tailStart = 0;
  #end = 0;
  #index: Index | undefined;
  #handle = NO_RECORD;
  /** Where the digits of the quota go. Their number is taken from the previous quota, because it rarely changes. */
  #quotaAt = 0;
  #digits = QUOTA_MAX_DIGITS;
  readonly #verdicts = new WeakMap<Verdict, Piece>();

  /** Begins an answer for a record (`handle` in `index`) or, with a negative handle, for the unknown domain `key`. */
  begin(index: Index, handle: number, key: string): void {
    this.#index = index;
    this.#handle = handle;
    const most = index.info.maxAnswerSizeBytes + 1_024;
    if (most > this.#scratch.length) this.#use(Buffer.allocUnsafeSlow(most));
    this.#headSize = handle < 0 ? writeUnknown(this.#view, key) : index.writeHead(handle, this.#scratch, 0);
  }

  /** Returns those pages of the answer's record that may matter. */
  pages(mayMatter: PageFilter): readonly PageUrl[] {
    return this.#index!.pageUrlsInHead(this.#handle, this.#scratch, mayMatter);
  }

  /** Writes the verdict and the rest, after a gap that {@link finish} fills with the quota. */
  writeVerdict(verdict: Verdict): void {
    const index = this.#index!;
    const verdictBytes = this.#verdictBytes(verdict);
    const headSize = this.#headSize;
    const most = index.info.maxAnswerSizeBytes + verdictBytes.size + GAP_MAX_BYTES + 1_024;
    if (most > this.#scratch.length) {
      const larger = Buffer.allocUnsafeSlow(most);
      this.#scratch.copy(larger, 0, 0, headSize);
      this.#use(larger);
    }
    const out = this.#scratch;
    this.#openGap();
    const end = copyPiece(verdictBytes, this.#view, this.#tailStart);
    if (this.#handle < 0) out[end] = 0x7d;
    this.#end = this.#handle < 0 ? end + 1 : index.writeTail(this.#handle, out, end);
  }

  /** Stores the answer without its quota. */
  keepIn(answers: KeptAnswers, query: string, judged: JudgedUrl): void {
    const out = this.#scratch;
    answers.keep(query, judged, out.subarray(0, this.#headSize), out.subarray(this.#tailStart, this.#end));
  }

  /** Writes a cached answer; replaces {@link begin} and {@link writeVerdict}. */
  writeKept({ pool }: KeptAnswers, { start, gap, end }: KeptAnswer): void {
    this.#headSize = gap - start;
    this.#openGap();
    this.#end = this.#tailStart + end - gap;
    pool.copy(this.#scratch, 0, start, gap);
    pool.copy(this.#scratch, this.#tailStart, gap, end);
  }

  /** Writes the quota into the gap. Returns the finished bytes, a view of the writer's own buffer. */
  finish(quotaRemaining: number): Uint8Array {
    const out = this.#scratch;
    const gapEnd = this.#quotaAt + decimalSize(quotaRemaining);
    if (gapEnd !== this.#tailStart) out.copyWithin(gapEnd, this.#tailStart, this.#end);
    this.#digits = gapEnd - this.#quotaAt;
    writeDecimal(quotaRemaining, this.#view, this.#quotaAt);
    return new Uint8Array(out.buffer, out.byteOffset, gapEnd + this.#end - this.#tailStart);
  }

  /** After the head. The tail is written afterwards: copying may write past the end of the name. */
  #openGap(): void {
    this.#quotaAt = copyPiece(QUOTA_NAME, this.#view, this.#headSize);
    this.#tailStart = this.#quotaAt + this.#digits;
  }

  #use(buffer: Buffer<ArrayBuffer>): void {
    this.#scratch = buffer;
    this.#view = new DataView(buffer.buffer);
  }

  #verdictBytes(of: Verdict): Piece {
    let bytes = this.#verdicts.get(of);
    if (bytes === undefined) {
      const { verdict, layer, id, note } = of;
      bytes = pieceOf(`,"verdict":"${verdict}","matched":${JSON.stringify({ layer, id, note })}`);
      this.#verdicts.set(of, bytes);
    }
    return bytes;
  }
}

function writeUnknown(out: DataView, key: string): number {
  let at = copyPiece(UNKNOWN_HEAD, out, 0);
  // Canonical hosts are printable ASCII.
  for (let i = 0; i < key.length; i++) {
    const code = key.charCodeAt(i);
    if (code === QUOTE || code === BACKSLASH) out.setUint8(at++, BACKSLASH);
    out.setUint8(at++, code);
  }
  return copyPiece(UNKNOWN_TAIL, out, at);
}
