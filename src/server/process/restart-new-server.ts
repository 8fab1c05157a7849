/**
 * The new server's side of a restart: it takes over from the server that started it, step by step. Where that one dies meanwhile, it goes on
 * alone: nobody else would.
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

/** What the predecessor has passed on. */
export interface TakenOver extends Omit<TakeMessage, 'type'> {
  /** The listening socket of its admin listener. */
  readonly adminServer: Server | undefined;
}

/** The server that this one follows. */
export class Predecessor {
  /** Resolves when it has answered what was open, or is gone for another reason. */
  readonly gone: Promise<void>;
  /** Resolves when there is no way back for it, or it is gone. */
  readonly committed: Promise<void>;
  /** Resolves with what it may share; undefined where it is gone. */
  readonly begin: Promise<BeginMessage | undefined>;
  /** Resolves when it has left the ledger writer's place; undefined where it is gone. */
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
        void this.#onConfirm().then((state) => tell({ type: 'confirmed', ...state }));
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

  /** Says what this server needs to share. */
  hello(ledgerFile: string, socket: string): void {
    tell({
      type: 'hello',
      protocol: HAND_OVER_PROTOCOL,
      version: PROGRAM_VERSION,
      pid: process.pid,
      versions: LEDGER_VERSIONS,
      ledgerFile,
      socket,
    });
  }

  /** Says that all workers listen. */
  ready(state: SuccessorReadiness, keepsBurstFile: boolean): void {
    tell({ type: 'ready', ready: state.ready, reasons: state.reasons, keepsBurstFile });
  }

  /** Says that this server has everything; asked a little later, it says how it is. */
  taken(onConfirm: () => Promise<SuccessorReadiness>): void {
    this.#onConfirm = onConfirm;
    tell({ type: 'taken' });
  }

  /** Says why this server cannot follow, and lets go. */
  async fail(error: unknown): Promise<void> {
    const message = messageOf(error);
    await new Promise<void>((resolve) => {
      if (!process.connected) resolve();
      else process.send?.({ type: 'failed', message } satisfies FromSuccessor, undefined, undefined, () => resolve());
    });
    if (process.connected) process.disconnect();
  }
}

function tell(message: FromSuccessor): void {
  // A predecessor that is gone is noticed by the disconnection.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

/** The predecessor of this process; undefined for a server that starts by itself. To be called once. */
export function findPredecessor(): Predecessor | undefined {
  const isSuccessor = process.env[SUCCESSOR_VARIABLE] !== undefined;
  delete process.env[SUCCESSOR_VARIABLE];
  return isSuccessor ? new Predecessor() : undefined;
}
