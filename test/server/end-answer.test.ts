import { describe, expect, it } from 'vitest';
import { endAnswer } from '../../src/server/request/end-answer.ts';
import type { HttpResponse } from '../../src/server/uws.ts';

/** A response whose connection accepts a limited number of bytes, and more after each `read`. */
class SlowResponse {
  readonly taken: number[] = [];
  closes: boolean | undefined;
  /** Whether a handler was set for a connection that ends before the response. */
  isWatched = false;
  #space: number;
  #writable: ((offset: number) => boolean) | undefined;

  constructor(space: number) {
    this.#space = space;
  }

  tryEnd(body: Uint8Array, total: number): [boolean, boolean] {
    const size = Math.min(body.length, this.#space);
    this.taken.push(...body.subarray(0, size));
    this.#space -= size;
    return [size === body.length, this.taken.length === total];
  }

  end(body: Uint8Array, closes: boolean): void {
    this.taken.push(...body);
    this.closes = closes;
  }

  onAborted(): this {
    this.isWatched = true;
    return this;
  }

  getWriteOffset(): number {
    return this.taken.length;
  }

  onWritable(handler: (offset: number) => boolean): void {
    this.#writable = handler;
  }

  /** Simulates a client that reads this many bytes. Returns whether the response is complete. */
  read(size: number): boolean {
    this.#space += size;
    return this.#writable!(this.taken.length);
  }

  get waits(): boolean {
    return this.#writable !== undefined;
  }
}

const BODY = Uint8Array.from({ length: 100 }, (_, i) => i);
const end = (res: SlowResponse, body: Uint8Array, isLast: boolean): void =>
  endAnswer(res as unknown as HttpResponse, body, isLast);

describe('a response', () => {
  it('is sent at once if the connection accepts all of it', () => {
    const res = new SlowResponse(100);
    end(res, BODY, false);
    expect(res.taken).toEqual([...BODY]);
    expect(res).toMatchObject({ waits: false, isWatched: false });
  });

  it('closes the connection if it is the last one', () => {
    const res = new SlowResponse(0);
    end(res, BODY, true);
    expect(res).toMatchObject({ closes: true, isWatched: true, taken: [...BODY] });
  });

  it.each([
    ['none of it', 0],
    ['a part of it', 37],
  ])('waits until the client reads if the connection accepts %s', (_name, space) => {
    const res = new SlowResponse(space);
    const body = Uint8Array.from(BODY);
    end(res, body, false);
    expect(res.isWatched).toBe(true);
    // The buffer of a response is reused for the next one.
    body.fill(0);
    expect(res.read(20)).toBe(false);
    expect(res.read(0)).toBe(false);
    expect(res.read(100)).toBe(true);
    expect(res.taken).toEqual([...BODY]);
    expect(res.closes).toBeUndefined();
  });
});
