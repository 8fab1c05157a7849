/** Messages between the primary and the console's process. */
import type { Config } from '../../config/config.ts';
import type { failureFields } from '../../server/log.ts';
import type { LogEvent, LogValue } from '../../server/log-events.ts';
import type { ServerStatus } from '../../server/status.ts';
import type { Sample } from '../store/time-series.ts';

/** A line of the primary's log with a level above `info`. */
export interface LoggedWarning {
  /** RFC 3339. */
  readonly time: string;
  readonly event: LogEvent;
  readonly fields: Readonly<Record<string, LogValue>>;
}

/** The questions that the console asks the primary, with the type of each answer. */
export interface PrimaryAnswers {
  readonly status: ServerStatus;
  /** Prometheus text. */
  readonly metrics: string;
  /** The samples of the minutes that the primary still has, oldest first. */
  readonly samples: readonly Sample[];
  /** The latest warnings, oldest first. */
  readonly warnings: readonly LoggedWarning[];
}

export type PrimaryQuestion = keyof PrimaryAnswers;

export type ToConsole =
  | { readonly type: 'start'; readonly config: Config }
  | { readonly type: 'answer'; readonly id: number; readonly answer?: unknown; readonly failure?: string }
  | { readonly type: 'stop' };

export type FromConsole =
  | { readonly type: 'heartbeat' }
  | { readonly type: 'listening'; readonly address: string }
  /** The primary logs it. */
  | { readonly type: 'failed'; readonly failure: ReturnType<typeof failureFields> }
  | { readonly type: 'ask'; readonly id: number; readonly question: PrimaryQuestion };
