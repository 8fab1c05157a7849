/**
 * The new server's side of a restart: it takes over step by step from the server that started it. If that server dies meanwhile, the new one
 * continues alone, because no other server is left.
 */

import { Server } from 'node:net';
import { messageOf } from '../../errors.ts';
import { LEDGER_VERSIONS } from '../../ledger/writer.ts';
import { PROGRAM_VERSION } from '../../version.ts';
import {
  type BeginMessage,
  type FromPredecessor,
  type FromSuccessor,
  HAND_OVER_PROTOCOL,
  SUCCESSOR_VARIABLE,
  type SuccessorReadiness,
  type TakeMessage,
} from './restart-messages.ts';

/** What the predecessor has handed to this server. */
export interface TakenOver extends Omit<TakeMessage, 'type'> {
  /** The socket of its admin listener. */
  readonly adminServer: Server | undefined;
}

/** The running server that this one replaces, and the messages to and from it. */
export class Predecessor {
  /** Resolves when it has answered its open requests, or has ended for another reason. */
  readonly gone: Promise<void>;
  /** Resolves when it can no longer take back the service, or has ended. */
  readonly committed: Promise<void>;
  /** Resolves with the port and burst file to share; undefined if it has ended. */
  readonly begin: Promise<BeginMessage | undefined>;
  /** Resolves when its ledger writer has stopped; with undefined if it has ended. */
  readonly take: Promise<TakenOver | undefined>;
  #onConfirm: () => Promise<SuccessorReadiness> = async () => ({ ready: true, reasons: [] });

  constructor() {
    const begin = Promise.withResolvers<BeginMessage | undefined>();
    const take = Promise.withResolvers<TakenOver | undefined>();
    const committed = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    this.begin = begin.promise;
    this.take = take.promise;
    this.committed = committed.promise;
    this.gone = gone.promise;
    process.on('message', (message: FromPredecessor, handle: unknown) => {
      if (message.type === 'begin') begin.resolve(message);
      else if (message.type === 'take')
        take.resolve({ ...message, adminServer: handle instanceof Server ? handle : undefined });
      else if (message.type === 'confirm')
        void this.#onConfirm().then((state) => send({ type: 'confirmed', ...state }));
      else committed.resolve();
    });
    const end = (): void => {
      begin.resolve(undefined);
      take.resolve(undefined);
      committed.resolve();
      gone.resolve();
    };
    if (process.connected) process.once('disconnect', end);
    else end();
  }

  /** Sends this server's version, ledger file and control socket, which must be compatible with the predecessor's. */
  hello(ledgerFile: string, socket: string): void {
    send({
      type: 'hello',
      protocol: HAND_OVER_PROTOCOL,
      version: PROGRAM_VERSION,
      pid: process.pid,
      versions: LEDGER_VERSIONS,
      ledgerFile,
      socket,
    });
  }

  /** Reports that all workers listen, and whether lookups can be answered. */
  ready(state: SuccessorReadiness, keepsBurstFile: boolean): void {
    send({ type: 'ready', ready: state.ready, reasons: state.reasons, keepsBurstFile });
  }

  /** Reports that this server has taken over. `onConfirm` is called when the predecessor asks for its readiness a little later. */
  taken(onConfirm: () => Promise<SuccessorReadiness>): void {
    this.#onConfirm = onConfirm;
    send({ type: 'taken' });
  }

  /** Reports why this server cannot take over, and disconnects. */
  async fail(error: unknown): Promise<void> {
    const message = messageOf(error);
    await new Promise<void>((resolve) => {
      if (!process.connected) resolve();
      else process.send?.({ type: 'failed', message } satisfies FromSuccessor, undefined, undefined, () => resolve());
    });
    if (process.connected) process.disconnect();
  }
}

function send(message: FromSuccessor): void {
  // If the predecessor has ended, the `disconnect` event reports that.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

/** Returns the predecessor of this process; undefined for a server that was not started as a successor. Call it only once. */
export function findPredecessor(): Predecessor | undefined {
  const isSuccessor = process.env[SUCCESSOR_VARIABLE] !== undefined;
  delete process.env[SUCCESSOR_VARIABLE];
  return isSuccessor ? new Predecessor() : undefined;
}
