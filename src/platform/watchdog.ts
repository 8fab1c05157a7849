/** Detects that another process has sent no heartbeat for too long. */
import { LIMITS } from '../limits.ts';

/** How often a watched process sends a heartbeat, or is asked for one, in milliseconds. */
export const HEARTBEAT_MS = LIMITS.heartbeatMs.value;

/** After a process has run for this long, in milliseconds, its timeout is the initial one again. */
export const STABLE_MS = 60_000;

const TIMEOUT_DOUBLINGS = 4;

/**
 * Factor for the timeout of the next process: doubles with each timeout in a row, up to 16. Restarts must not make a slow process
 * slower.
 */
export const timeoutFactor = (timeouts: number): number => 2 ** Math.min(timeouts, TIMEOUT_DOUBLINGS);

export interface WatchdogOptions {
  /** Allowed time without a heartbeat, in milliseconds. A timeout is detected up to {@link HEARTBEAT_MS} later. */
  readonly timeoutMs: number;
  /** Called once, with the time since the last heartbeat in milliseconds. The watchdog has stopped by then. */
  readonly onTimeout: (quietMs: number) => void;
  /** Called every {@link HEARTBEAT_MS}, to request a heartbeat from a process that only answers. */
  readonly onTick?: () => void;
}

/**
 * Watches one process. It counts its own ticks instead of reading a clock, so that time in which the host slept, or the watching process
 * was stopped, does not count against the watched one.
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

  /** Records a heartbeat. */
  heard(): void {
    this.#quietMs = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
