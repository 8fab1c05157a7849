import { afterEach, describe, expect, it, vi } from 'vitest';
import { STABLE_MS } from '../../src/platform/watchdog.ts';
import { Supervisor } from '../../src/server/process/supervisor.ts';
import type { WorkerLink } from '../../src/server/process/worker-link.ts';

/** A worker that ends when it is killed, and answers no question. */
function link(pid: number): WorkerLink {
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  return { pid, ended, ask: () => Promise.reject(new Error('no answer')), kill: () => resolve('killed') };
}

describe('the start', () => {
  it('starts one worker first, then all others at once', async () => {
    const waiting = new Map<number, () => void>();
    const supervisor = new Supervisor({
      workers: 4,
      start: (number) => new Promise((resolve) => waiting.set(number, () => resolve(link(number)))),
      drainTimeoutMs: () => 0,
      log: () => {},
    });
    const started = supervisor.start();
    expect([...waiting.keys()]).toEqual([0]);
    waiting.get(0)?.();
    await expect.poll(() => [...waiting.keys()]).toEqual([0, 1, 2, 3]);
    for (const go of waiting.values()) go();
    await started;
    expect(supervisor.pids).toEqual([0, 1, 2, 3]);
  });

  it('fails with the error of the worker that failed, and leaves none running', async () => {
    const supervisor = new Supervisor({
      workers: 3,
      start: async (number) => {
        if (number === 1) throw new Error('worker 1');
        return link(number);
      },
      drainTimeoutMs: () => 0,
      log: () => {},
    });
    await expect(supervisor.start()).rejects.toThrow('worker 1');
    expect(supervisor.pids).toEqual([]);
  });

  it('leaves no worker running if it finishes after the stop', async () => {
    const { promise, resolve } = Promise.withResolvers<WorkerLink>();
    const supervisor = new Supervisor({ workers: 1, start: () => promise, drainTimeoutMs: () => 0, log: () => {} });
    const started = supervisor.start();
    const late = link(1);
    const kill = vi.spyOn(late, 'kill');
    await supervisor.stop();
    resolve(late);
    await expect(started).rejects.toMatchObject({ code: 'shutting_down' });
    expect(kill).toHaveBeenCalled();
  });
});

/** A worker that answers unless it hangs, and ends when it is killed. */
class FakeWorker implements WorkerLink {
  readonly pid: number;
  readonly ended: Promise<string>;
  readonly kill: () => void;
  hangs = false;
  requests = 0;

  constructor(pid: number) {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.pid = pid;
    this.ended = promise;
    this.kill = () => resolve('signal SIGKILL');
  }

  async ask(question: string, timeoutMs: number): Promise<never> {
    if (this.hangs)
      await Promise.race([
        this.ended.then((how) => Promise.reject(new Error(`ended (${how})`))),
        new Promise((_, reject) => {
          setTimeout(() => reject(new Error('did not answer in time')), timeoutMs);
        }),
      ]);
    const counters = { requests_total: this.requests };
    return (question === 'metrics' ? { counters, gauges: { connections: 1 }, histograms: {} } : {}) as never;
  }
}

describe('a worker that hangs', () => {
  let workers: FakeWorker[];
  let log: string[];
  let supervisor: Supervisor;

  const startWith = async (timeoutMs: number): Promise<void> => {
    workers = [];
    log = [];
    supervisor = new Supervisor({
      workers: 2,
      start: async () => {
        const worker = new FakeWorker(100 + workers.length);
        workers.push(worker);
        return worker;
      },
      drainTimeoutMs: () => 0,
      timeoutMs,
      log: (event, fields) => log.push(`${event} ${JSON.stringify(fields)}`),
    });
    await supervisor.start();
  };
  afterEach(() => supervisor.stop());

  it('is killed and replaced; its counters are kept, its open connections are not', async () => {
    await startWith(2_000);
    workers[1]!.requests = 7;
    await expect.poll(() => supervisor.metrics()).toMatchObject({ counters: { requests_total: 7 } });
    workers[1]!.hangs = true;
    await expect.poll(() => supervisor.pids).toEqual([100, 102]);
    expect(log).toEqual([
      expect.stringMatching(/^worker_hung .*"worker":1,"pid":101,"quiet_seconds":3/),
      expect.stringMatching(/^worker_died .*"worker":1,"pid":101/),
      expect.stringMatching(/^worker_replaced .*"worker":1,"pid":102/),
    ]);
    expect(await supervisor.metrics()).toMatchObject({ counters: { requests_total: 7 }, gauges: { connections: 2 } });
    expect((await supervisor.ask('status')).missing).toEqual([]);
  });

  it('is given twice as much time after each end in a row, without an upper limit', async () => {
    vi.useFakeTimers();
    try {
      await startWith(10_000);
      const push = workers.push.bind(workers);
      workers.push = (worker) => push(Object.assign(worker, { hangs: true }));
      workers[1]!.hangs = true;
      await vi.advanceTimersByTimeAsync(600_000);
      const timeouts = log.flatMap((line) => /worker_hung .*"quiet_seconds":(\d+)/.exec(line)?.[1] ?? []);
      expect(timeouts.slice(0, 6)).toEqual(['11', '21', '41', '81', '161', '161']);
    } finally {
      vi.useRealTimers();
    }
  });

  it('is named without a long wait for it', async () => {
    await startWith(60_000);
    workers[1]!.hangs = true;
    const missing = { worker: 1, pid: 101, listens: true };
    const ask = vi.spyOn(workers[1]!, 'ask');
    expect(await supervisor.ask('status')).toMatchObject({
      answers: [{ worker: 0 }],
      missing: [{ ...missing, reason: expect.stringContaining('did not answer') }],
    });
    expect(ask).toHaveBeenCalledWith('status', 2_000, undefined);
    await expect
      .poll(async () => (await supervisor.ask('status')).missing)
      .toEqual([{ ...missing, reason: expect.stringMatching(/^has not answered for \d+ s$/) }]);
  });

  it('does not delay a reload beyond its own life', async () => {
    await startWith(2_000);
    workers[1]!.hangs = true;
    const { answers, missing } = await supervisor.ask('reload');
    expect(answers).toMatchObject([{ worker: 0 }]);
    expect(missing).toMatchObject([{ worker: 1, pid: 101, reason: expect.stringMatching(/^did not answer for 3 s/) }]);
  });

  it('is restarted less and less often if it ends again and again, and at once after it has lived for long', async () => {
    vi.useFakeTimers();
    try {
      await startWith(60_000);
      const replaced = (): number => log.filter((line) => line.startsWith('worker_replaced')).length;
      /** Returns the number of replacements in each of the next periods, of a worker that ends at its start. */
      const end = async (periodsMs: readonly number[]): Promise<number[]> => {
        const counts: number[] = [];
        for (const ms of periodsMs) {
          const before = replaced();
          workers.at(-1)!.kill();
          await vi.advanceTimersByTimeAsync(ms);
          counts.push(replaced() - before);
        }
        return counts;
      };
      expect(await end([0, 99, 1, 199, 1, 399, 1])).toEqual([1, 0, 1, 0, 1, 0, 1]);
      await vi.advanceTimersByTimeAsync(STABLE_MS + 1_000);
      expect(await end([0])).toEqual([1]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('is killed at the stop, and reported apart from one that ends by itself meanwhile', async () => {
    await startWith(60_000);
    for (const worker of workers) worker.hangs = true;
    const stopping = supervisor.stop();
    workers[1]!.kill();
    await stopping;
    expect(log).toEqual([
      'worker_died {"worker":1,"pid":101,"how":"signal SIGKILL"}',
      'worker_killed {"worker":0,"pid":100,"reason":"did not answer in time"}',
    ]);
  });

  it('is distinguished from one that ended and cannot be started', async () => {
    await startWith(60_000);
    workers.push = () => {
      throw new Error('the disk is gone');
    };
    workers[0]!.kill();
    const reason = 'cannot be started and is tried again: the disk is gone';
    await expect
      .poll(async () => (await supervisor.ask('status')).missing)
      .toEqual([{ worker: 0, pid: null, listens: false, reason }]);
  });
});
