import { describe, expect, it } from 'vitest';
import { Thread } from '../../src/platform/threads.ts';

/** A main module that takes a moment to load, and then sets a flag in the memory that it got. */
const SLOW = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort, workerData } from 'node:worker_threads';
    await new Promise((resolve) => setTimeout(resolve, 50));
    workerData[0] = 1;
    parentPort.postMessage('ready');
  `)}`,
);
const BROKEN = new URL(`data:text/javascript,${encodeURIComponent("throw new RangeError('a broken module');")}`);

describe('a thread', () => {
  it('that is closed while it loads its modules ends after that', async () => {
    const loaded = new Uint8Array(new SharedArrayBuffer(1));
    await new Thread(SLOW, loaded).close();
    expect(loaded[0]).toBe(1);
  });

  it('that cannot load its modules rejects its calls, and can be closed', async () => {
    const thread = new Thread(BROKEN, undefined);
    await expect(thread.call('anything')).rejects.toThrow('a broken module');
    await thread.close();
    await expect(thread.call('anything')).rejects.toThrow('a broken module');
  });
});
