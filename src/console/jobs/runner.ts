/** Runs long jobs in separate processes, one at a time (`doctor` besides), and tracks their progress. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../config/config.ts';
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { killOnExit } from '../../platform/child-cleanup.ts';
import { lowerPriority } from '../../platform/priority.ts';
import type { Progress } from '../../progress.ts';
import type { FromJob, JobKind, JobRequest, Jobs, ToJob } from './messages.ts';

/** By how much the nice value is raised. Jobs run below the console, as it runs below the workers; any lower, a refresh on a busy host would hardly progress. */
const LOWER_BY = 5;

export interface Job {
  /** What the job does, in words. */
  readonly title: string;
  readonly actor: string;
  /** Milliseconds since 1970. */
  readonly startedMs: number;
  endedMs: number | undefined;
  /** The progress while it runs. */
  progress: Progress;
  /** The outcome in words; empty while it runs. */
  text: string;
  state: 'running' | 'done' | 'failed';
  /** The id of its process. */
  pid: number | undefined;
}

/** The jobs that the console has started. */
export class JobRunner {
  /** Newest first. */
  readonly jobs: Job[] = [];
  readonly #config: Config;
  readonly #children = new Set<ChildProcess>();
  /** The process of the running job. */
  #worker: ChildProcess | undefined;
  #doctor: Promise<Jobs['doctor']['output']> | undefined;

  constructor(config: Config) {
    this.#config = config;
  }

  /** The job that runs now. */
  get running(): Job | undefined {
    return this.jobs.find(({ state }) => state === 'running');
  }

  /**
   * Starts a job on generations; its outcome appears in {@link jobs}.
   *
   * @param about.describe describes the output in words; may also store it
   * @throws PagegateError refresh_busy if another job runs
   */
  start<K extends Exclude<JobKind, 'doctor'>>(
    request: JobRequest<K>,
    about: { readonly title: string; readonly actor: string; readonly describe: (output: Jobs[K]['output']) => string },
  ): void {
    if (this.running !== undefined)
      throw new PagegateError('refresh_busy', `The console is at work: ${this.running.title}.`);
    const { title, actor, describe } = about;
    const job: Job = {
      title,
      actor,
      startedMs: Date.now(),
      endedMs: undefined,
      progress: { what: 'starting' },
      text: '',
      state: 'running',
      pid: undefined,
    };
    this.jobs.unshift(job);
    this.jobs.splice(LIMITS.consoleJobs.value);
    const end = (state: 'done' | 'failed', text: string): void => {
      job.state = state;
      job.text = text;
      job.endedMs = Date.now();
    };
    const { child, output } = this.#run(request, (progress) => {
      job.progress = progress;
    });
    job.pid = child.pid;
    this.#worker = child;
    output.then(describe).then(
      (text) => end('done', text),
      (error: Error) => end('failed', error.message),
    );
  }

  /** Cancels the running job, if any. It ends like a command on Ctrl-C, and does not change what is served. */
  cancel(actor: string): void {
    if (this.running !== undefined)
      this.#worker?.send({ type: 'stop', reason: `${actor} has stopped it.` } satisfies ToJob, () => {});
  }

  /** Runs the checks of doctor, once at a time; concurrent callers share the result. */
  doctor(): Promise<Jobs['doctor']['output']> {
    this.#doctor ??= this.#run({ kind: 'doctor', input: {} }, () => {}).output.finally(() => {
      this.#doctor = undefined;
    });
    return this.#doctor;
  }

  stop(): void {
    for (const child of this.#children) child.kill('SIGTERM');
  }

  #run<K extends JobKind>(
    request: JobRequest<K>,
    onProgress: (progress: Progress) => void,
  ): { readonly child: ChildProcess; readonly output: Promise<Jobs[K]['output']> } {
    const child = fork(fileURLToPath(new URL('./main.ts', import.meta.url)), [], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      execArgv: [],
    });
    this.#children.add(child);
    killOnExit(child);
    const output = new Promise<Jobs[K]['output']>((resolve, reject) => {
      child.on('message', (message: FromJob) => {
        if (message.type === 'progress') onProgress(message.progress);
        else if (message.type === 'done') resolve(message.output as Jobs[K]['output']);
        else reject(new Error(message.message));
      });
      child.on('error', reject);
      child.on('exit', (code, signal) => {
        this.#children.delete(child);
        reject(new Error(`The work ended before it was done (${signal === null ? `code ${code}` : signal}).`));
      });
    });
    if (child.pid !== undefined) lowerPriority(child.pid, LOWER_BY);
    child.send({ type: 'start', config: this.#config, request } satisfies ToJob, () => {});
    return { child, output };
  }
}
