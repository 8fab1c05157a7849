/** The console's link to the primary. Answers are cached for a second: however many pages ask, the primary answers once. */
import { PagegateError } from '../../errors.ts';
import { ShortCache } from '../short-cache.ts';
import type { FromConsole, PrimaryAnswers, PrimaryQuestion } from './messages.ts';

const KEPT_MS = 1_000;
const TIMEOUT_MS = 5_000;

interface Pending {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

/** Sends questions to the primary and waits for the answers. */
export class PrimaryLink {
  readonly #send: (message: FromConsole) => void;
  readonly #pending = new Map<number, Pending>();
  readonly #kept = new ShortCache();
  #lastId = 0;

  constructor(send: (message: FromConsole) => void) {
    this.#send = send;
  }

  /** @throws PagegateError primary_hung if the primary does not answer in time; Error with the message of its failure */
  ask<Q extends PrimaryQuestion>(question: Q): Promise<PrimaryAnswers[Q]> {
    return this.#kept.get(question, KEPT_MS, () => this.#ask(question) as Promise<PrimaryAnswers[Q]>);
  }

  onAnswer(id: number, answer: unknown, failure: string | undefined): void {
    const pending = this.#take(id);
    if (failure === undefined) pending?.resolve(answer);
    else pending?.reject(new Error(failure));
  }

  async #ask(question: PrimaryQuestion): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#pending.set(id, { resolve, reject });
    const late = new PagegateError('primary_hung', `No answer for ${TIMEOUT_MS / 1_000} s.`);
    const timer = setTimeout(() => this.#take(id)?.reject(late), TIMEOUT_MS);
    try {
      this.#send({ type: 'ask', id, question });
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }
}
