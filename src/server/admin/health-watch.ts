/** Looks at the server from time to time, and logs when a warning begins and when it has ended. */
import type { Config } from '../../config/config.ts';
import type { Log } from '../log.ts';
import { type FreeBytes, readFreeBytes } from './disk-space.ts';
import type { Warning, WarningKind } from './warnings.ts';

const LOOK_MS = 10_000;

/** Warnings of these kinds have log lines of their own where they arise. */
const LOGGED_ELSEWHERE: ReadonlySet<WarningKind> = new Set(['worker', 'index', 'policy', 'decision_log']);

/** Keeps what was seen last, and tells the log of what has changed. */
export class HealthWatch {
  freeBytes: FreeBytes = {};
  readonly #config: Config;
  readonly #log: Log;
  /** By what stays the same while a warning lasts. */
  #known = new Map<string, Warning>();
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(config: Config, log: Log) {
    this.#config = config;
    this.#log = log;
  }

  /** Looks now, and then every ten seconds. `warnings` are asked for after each look. */
  async start(warnings: () => Promise<readonly Warning[]>): Promise<void> {
    await this.look(warnings);
    this.#timer = setInterval(() => void this.look(warnings), LOOK_MS);
    this.#timer.unref();
  }

  async look(warnings: () => Promise<readonly Warning[]>): Promise<void> {
    // A disk that hangs keeps one look, not a queue of them.
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      this.freeBytes = await readFreeBytes(this.#config);
      this.#tell(await warnings());
    } finally {
      this.#isLooking = false;
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tell(warnings: readonly Warning[]): void {
    const found = new Map(
      warnings.filter(({ kind }) => !LOGGED_ELSEWHERE.has(kind)).map((warning) => [keyOf(warning), warning]),
    );
    for (const [key, { kind, text }] of found) if (!this.#known.has(key)) this.#log('warning', { kind, warning: text });
    for (const [key, { kind, text }] of this.#known)
      if (!found.has(key)) this.#log('warning_ended', { kind, warning: text });
    this.#known = found;
  }
}

/** A warning is the same although its numbers change: days left, free space. */
const keyOf = ({ kind, text }: Warning): string =>
  `${kind} ${text.replaceAll(/(?<![\w-])\d+(?:\.\d+)?(?![\w-])/g, '#')}`;
