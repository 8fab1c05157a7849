/** Notices when another process has sent no heartbeat for too long. */
import { LIMITS } from '../limits.ts';

/** How often a watched process sends a heartbeat, or is asked for one, in milliseconds. */
export const HEARTBEAT_MS = LIMITS.heartbeatMs.value;

/** A process that ran for this long starts over with the first timeout, in milliseconds. */
export const STABLE_MS = 60_000;

const TIMEOUT_DOUBLINGS = 4;

/**
 * The factor on the timeout of the next process: doubled for each timeout in a row, 16 at most. Restarts must not make a slow
 * process slower.
 */
export const timeoutFactor = (timeouts: number): number => 2 ** Math.min(timeouts, TIMEOUT_DOUBLINGS);

export interface WatchdogOptions {
  /** Time without a heartbeat, in milliseconds. It is noticed up to {@link HEARTBEAT_MS} later. */
  readonly timeoutMs: number;
  /** Called once, with the time since the last heartbeat in milliseconds; the watchdog has stopped then. */
  readonly onTimeout: (quietMs: number) => void;
  /** Called every {@link HEARTBEAT_MS}: for a process that answers only when asked. */
  readonly onTick?: () => void;
}

/**
 * Watches one process. It counts its own ticks instead of reading a clock: a host that slept, or a stopped watching process, does
 * not count against the watched one.
 */
export class Watchdog {
  timeoutMs: number;
  #quietMs = 0;
  readonly #timer: NodeJS.Timeout;

  /** Starts watching at once. */
  constructor({ timeoutMs, onTimeout, onTick }: WatchdogOptions) {
    this.timeoutMs = timeoutMs;
    this.#timer = setInterval(() => {
      this.#quietMs += HEARTBEAT_MS;
      if (this.#quietMs <= this.timeoutMs) {
        onTick?.();
        return;
      }
      this.stop();
      onTimeout(this.#quietMs);
    }, HEARTBEAT_MS);
  }

  /** Milliseconds since the last heartbeat, in steps of {@link HEARTBEAT_MS}. */
  get quietMs(): number {
    return this.#quietMs;
  }

  /** Notes a heartbeat. */
  heard(): void {
    this.#quietMs = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
