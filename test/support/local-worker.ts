/** A worker inside the test process: tests can inspect it, and it starts immediately. */
import type { Log } from '../../src/server/log.ts';
import { Worker } from '../../src/server/process/worker.ts';
import { answerFor, endsWorker, type forkWorker, type WorkerLink } from '../../src/server/process/worker-link.ts';
import { burstTableSizeBytes, initializeBurstTable } from '../../src/server/request/burst-limit.ts';

/** Starts the only worker of a server, instead of `forkWorker`. */
export function localWorker(log: Log): typeof forkWorker {
  return async ({ config, number, workers, port }, { onKnownGood }) => {
    const burstMemory = new SharedArrayBuffer(burstTableSizeBytes(config.burst));
    initializeBurstTable(burstMemory);
    const worker = await Worker.open({ config, number, workers, burstMemory, log, onKnownGood });
    try {
      await worker.listen(port);
      return linkTo(worker);
    } catch (error) {
      await worker.drain();
      throw error;
    }
  };
}

function linkTo(worker: Worker): WorkerLink {
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  return {
    pid: process.pid,
    ended,
    async ask(question, _timeoutMs, range) {
      const result = await answerFor(worker, question, range);
      if (endsWorker(question)) resolve('drained');
      return result;
    },
    kill: () => resolve('killed'),
  };
}
