/** What every page of the console works with. */
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
  /** Proposals of entries: each compiles a whole policy. */
  readonly proposals: PacedQueue;
  /** Parts of pages that do not depend on who looks. */
  readonly kept: ShortCache;
  readonly limits: {
    /** Failed sign-ins of an address, and of a name. */
    readonly address: SignInLimiter;
    readonly name: SignInLimiter;
    /** Failures of a user who is signed in to give the present password: what others fail with at the sign-in does not count here. */
    readonly present: SignInLimiter;
    /** What an account does with its keys: each is a line in the audit. */
    readonly own: SignInLimiter;
  };
}
