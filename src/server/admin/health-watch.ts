/** Checks the server's health periodically. Logs when a warning begins and when it has ended. */
import type { Config } from '../../config/config.ts';
import type { Log } from '../log.ts';
import { type FreeBytes, readFreeBytes } from './disk-space.ts';
import type { Warning, WarningKind } from './warnings.ts';

const LOOK_MS = 10_000;

/** Warnings of these kinds have their own log lines, written where they arise. */
const LOGGED_ELSEWHERE: ReadonlySet<WarningKind> = new Set(['worker', 'index', 'policy', 'decision_log']);

/** Keeps the latest free space and warnings, and logs changes of the warnings. */
export class HealthWatch {
  freeBytes: FreeBytes = {};
  readonly #config: Config;
  readonly #log: Log;
  /** The current warnings, by {@link keyOf}. */
  #known = new Map<string, Warning>();
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(config: Config, log: Log) {
    this.#config = config;
    this.#log = log;
  }

  /** Checks now, and then every ten seconds. Calls `warnings` each time, after it has read the free space. */
  async start(warnings: () => Promise<readonly Warning[]>): Promise<void> {
    await this.look(warnings);
    this.#timer = setInterval(() => void this.look(warnings), LOOK_MS);
    this.#timer.unref();
  }

  async look(warnings: () => Promise<readonly Warning[]>): Promise<void> {
    // If a disk hangs, one check waits for it, not a queue of them.
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      this.freeBytes = await readFreeBytes(this.#config);
      this.#logChanges(await warnings());
    } finally {
      this.#isLooking = false;
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #logChanges(warnings: readonly Warning[]): void {
    const found = new Map(
      warnings.filter(({ kind }) => !LOGGED_ELSEWHERE.has(kind)).map((warning) => [keyOf(warning), warning]),
    );
    for (const [key, { kind, text }] of found) if (!this.#known.has(key)) this.#log('warning', { kind, warning: text });
    for (const [key, { kind, text }] of this.#known)
      if (!found.has(key)) this.#log('warning_ended', { kind, warning: text });
    this.#known = found;
  }
}

/** Returns the identity of a warning: its text without the numbers, which may change while it lasts (days left, free space). */
const keyOf = ({ kind, text }: Warning): string =>
  `${kind} ${text.replaceAll(/(?<![\w-])\d+(?:\.\d+)?(?![\w-])/g, '#')}`;
