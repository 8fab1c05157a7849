/** The program of a worker process. It lives and ends with the primary: it has no signals and no arguments of its own. */

import { closeSync } from 'node:fs';
import { messageOf, PagegateError } from '../../errors.ts';
import { mapShared } from '../../platform/libc.ts';
import { GIVEN_INDEX_FD } from '../data-loader.ts';
import { createLog, failureFields, requestFailureFields } from '../log.ts';
import { burstTableSizeBytes } from '../request/burst-limit.ts';
import type { KnownGoodPart } from '../swap/last-known-good.ts';
import { Worker } from './worker.ts';
import { answerFor, endsWorker, type FromWorker, type StartMessage, type ToWorker } from './worker-link.ts';

let worker: Worker | undefined;

function tell(message: FromWorker): void {
  // A primary that is gone is noticed by the disconnection.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

async function start({ config, number, workers, port, burstFile, knownGood }: StartMessage): Promise<void> {
  const log = createLog(config.log.level, { common: { worker: number, pid: process.pid } });
  try {
    const burstMemory = mapShared(burstFile, burstTableSizeBytes(config.burst)).buffer;
    const onKnownGood = (part: KnownGoodPart): void => tell({ type: 'known_good', part });
    worker = await Worker.open({ config, number, workers, burstMemory, log, knownGood, onKnownGood });
    // An index that is served no more must not keep its space on the disk.
    if (knownGood.index !== undefined) closeSync(GIVEN_INDEX_FD);
    await worker.listen(port);
    tell({ type: 'listening' });
  } catch (error) {
    log('worker_start_failed', failureFields(error));
    const code = error instanceof PagegateError ? error.code : 'worker_failed';
    tell({ type: 'failed', code, message: messageOf(error) });
  }
}

// The primary decides when a worker stops; a Ctrl-C in a terminal reaches the whole process group.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

// What nobody caught ends the worker, as it must; Node's own report of it might quote a request.
process.on('uncaughtException', (error) => {
  createLog('error', { common: { pid: process.pid } })('worker_crashed', requestFailureFields(error));
  process.exit(1);
});

process.on('disconnect', () => {
  void (worker?.drain() ?? Promise.resolve()).finally(() => process.exit(0));
});

process.on('message', (message: ToWorker) => {
  if (message.type === 'start') {
    void start(message);
    return;
  }
  const { id, question, range } = message;
  if (worker === undefined) return;
  void answerFor(worker, question, range).then((result) => {
    tell({ type: 'answer', id, answer: result });
    if (endsWorker(question) && process.connected) process.disconnect();
  });
});
