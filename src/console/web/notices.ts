/** What a page is to say once, the next time that it is looked at. */
import type { Notice } from './route.ts';

/** How long a notice waits for its page, in milliseconds. */
const NOTICE_MS = 60_000;
/** Of all who are signed in. */
const NOTICES_MAX = 1_000;

interface Waiting {
  readonly session: string;
  /** Of the page that it is for, decoded, as proxies write it each in its own way: another tab must not take it, as it may be about another account. */
  readonly path: string;
  readonly atMs: number;
  readonly notice: Notice;
}

/** Notices for the next look at a page, kept in memory only: they may hold a secret. */
export class Notices {
  #waiting: readonly Waiting[] = [];

  /** @param to of the page, as it is asked for */
  put(session: string, to: string, notice: Notice): void {
    const path = decodeURIComponent(to);
    const atMs = performance.now();
    // A form that is sent twice brings the same notice twice.
    const others = this.#young().filter((one) => one.notice !== notice);
    this.#waiting = [...others, { session, path, atMs, notice }].slice(-NOTICES_MAX);
  }

  /** @param asked the path of a page that there is */
  take(session: string, asked: string): readonly Notice[] {
    const path = decodeURIComponent(asked);
    const isMeant = (one: Waiting): boolean => one.session === session && one.path === path;
    const young = this.#young();
    this.#waiting = young.filter((one) => !isMeant(one));
    return young.filter(isMeant).map(({ notice }) => notice);
  }

  #young(): Waiting[] {
    const now = performance.now();
    return this.#waiting.filter(({ atMs }) => now - atMs <= NOTICE_MS);
  }
}
