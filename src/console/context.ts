/** What the pages of the console share. */
import type { Config } from '../config/config.ts';
import type { StatePaths } from '../config/paths.ts';
import type { Accounts } from './accounts.ts';
import type { DecisionLogs } from './decisions/logs.ts';
import type { JobRunner } from './jobs/runner.ts';
import type { PacedQueue } from './paced-queue.ts';
import type { DoctorReport } from './pages/doctor-report.ts';
import type { PrimaryAnswers, PrimaryQuestion } from './process/messages.ts';
import type { ShortCache } from './short-cache.ts';
import type { ConsoleStore } from './store/store.ts';
import type { Judge } from './try-verdict.ts';
import type { SignInLimiter } from './web/sign-in-limiter.ts';

export interface ConsoleContext {
  readonly config: Config;
  readonly paths: StatePaths;
  readonly store: ConsoleStore;
  readonly accounts: Accounts;
  readonly ask: <Q extends PrimaryQuestion>(question: Q) => Promise<PrimaryAnswers[Q]>;
  readonly jobs: JobRunner;
  readonly doctor: DoctorReport;
  readonly decisions: DecisionLogs;
  readonly judge: Judge;
  /** Queue for proposed policy entries: each compiles a whole policy. */
  readonly proposals: PacedQueue;
  /** Cached parts of pages that are the same for all users. */
  readonly kept: ShortCache;
  readonly limits: {
    /** Failed sign-ins by client address, and by name. */
    readonly address: SignInLimiter;
    readonly name: SignInLimiter;
    /** Wrong current passwords of users who are signed in. Failed sign-ins of others do not count here. */
    readonly present: SignInLimiter;
    /** Actions of accounts on their own keys: each adds a line to the audit. */
    readonly own: SignInLimiter;
  };
}
