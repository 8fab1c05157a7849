import { describe, expect, it } from 'vitest';
import { Supervisor } from '../../src/server/supervisor.ts';
import type { WorkerLink } from '../../src/server/worker-link.ts';

/** A worker that ends when it is killed, and answers nothing. */
function link(pid: number): WorkerLink {
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  return { pid, ended, ask: () => Promise.reject(new Error('no answer')), kill: () => resolve('killed') };
}

describe('the start', () => {
  it('is that of one worker, then that of the others at once', async () => {
    const waiting = new Map<number, () => void>();
    const supervisor = new Supervisor({
      workers: 4,
      start: (number) => new Promise((resolve) => waiting.set(number, () => resolve(link(number)))),
      drainMs: 0,
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

  it('fails with what one failed with, and leaves none running', async () => {
    const supervisor = new Supervisor({
      workers: 3,
      start: async (number) => {
        if (number === 1) throw new Error('worker 1');
        return link(number);
      },
      drainMs: 0,
      log: () => {},
    });
    await expect(supervisor.start()).rejects.toThrow('worker 1');
    expect(supervisor.running).toBe(0);
  });
});
