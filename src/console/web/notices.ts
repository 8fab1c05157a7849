/** Notices that a page shows once, when it is next viewed. */
import type { Notice } from './route.ts';

/** How long a notice is kept for its page, in milliseconds. */
const NOTICE_MS = 60_000;
/** Maximum number of notices of all sessions. */
const NOTICES_MAX = 1_000;

interface Waiting {
  readonly session: string;
  /**
   * The path of the page that shows it: a page in another tab must not, as it may be about another account. Decoded, because proxies
   * encode paths in different ways.
   */
  readonly path: string;
  readonly atMs: number;
  readonly notice: Notice;
}

/** Stores notices until their page is viewed. In memory only: they may hold a secret. */
export class Notices {
  #waiting: readonly Waiting[] = [];

  /** @param to path of the page, percent-encoded */
  put(session: string, to: string, notice: Notice): void {
    const path = decodeURIComponent(to);
    const atMs = performance.now();
    // A form that is sent twice has the same notice twice.
    const others = this.#young().filter((one) => one.notice !== notice);
    this.#waiting = [...others, { session, path, atMs, notice }].slice(-NOTICES_MAX);
  }

  /** Returns the notices for a page and removes them. @param encodedPath path of an existing page */
  take(session: string, encodedPath: string): readonly Notice[] {
    const path = decodeURIComponent(encodedPath);
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
