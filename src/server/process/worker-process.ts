/** The program of a worker process. The primary controls it by messages: it takes no arguments, ignores signals, and ends with the primary. */

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

function send(message: FromWorker): void {
  // If the primary has ended, the `disconnect` event reports that.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

async function start({ config, number, workers, port, burstFile, knownGood }: StartMessage): Promise<void> {
  const log = createLog(config.log.level, { common: { worker: number, pid: process.pid } });
  try {
    const burstMemory = mapShared(burstFile, burstTableSizeBytes(config.burst)).buffer;
    const onKnownGood = (part: KnownGoodPart): void => send({ type: 'known_good', part });
    worker = await Worker.open({ config, number, workers, burstMemory, log, knownGood, onKnownGood });
    // The open file would keep disk space in use after the index is replaced.
    if (knownGood.index !== undefined) closeSync(GIVEN_INDEX_FD);
    await worker.listen(port);
    send({ type: 'listening' });
  } catch (error) {
    log('worker_start_failed', failureFields(error));
    const code = error instanceof PagegateError ? error.code : 'worker_failed';
    send({ type: 'failed', code, message: messageOf(error) });
  }
}

// The primary decides when a worker stops; a Ctrl-C in a terminal reaches the whole process group.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

// An uncaught exception ends the worker. It is logged here, because Node's own report might quote a request.
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
    send({ type: 'answer', id, answer: result });
    if (endsWorker(question) && process.connected) process.disconnect();
  });
});
