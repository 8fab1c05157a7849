/**
 * What the primary process of a running server and the one that follows it say to each other, as JSON over the channel that Node gives a
 * child. The two may be of different versions: a released message keeps its meaning, and `protocol` grows where that cannot be.
 *
 *     successor               predecessor
 *     hello            →                     its version, and what it needs to share
 *                      ←      begin          what it may share
 *     ready | failed   →                     its workers listen beside the old ones
 *                      ←      take           the ledger writer's place is free
 *     taken            →                     it has everything, and gets all new connections
 *                      ←      confirm        after a second of that
 *     confirmed        →
 *                      ←      committed      the predecessor answers what is open and ends
 *
 * Until `committed` the predecessor can go on as if nothing had been; it kills a successor that fails, hangs or says that it is not well.
 */
import type { LedgerVersions } from '../../ledger/writer.ts';

export const HAND_OVER_PROTOCOL = 1;

/** Set for a server that is started to follow a running one. */
export const SUCCESSOR_VARIABLE = 'PAGEGATE_SUCCESSOR';

/** Whether lookups can be answered; otherwise the reasons why not. */
export interface SuccessorReadiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

export type FromSuccessor =
  | {
      readonly type: 'hello';
      readonly protocol: number;
      readonly version: string;
      readonly pid: number;
      readonly versions: LedgerVersions;
      readonly ledgerFile: string;
      readonly socket: string;
    }
  | ({ readonly type: 'ready'; readonly keepsBurstFile: boolean } & SuccessorReadiness)
  | { readonly type: 'taken' }
  | ({ readonly type: 'confirmed' } & SuccessorReadiness)
  | { readonly type: 'failed'; readonly message: string };

export interface BeginMessage {
  readonly type: 'begin';
  readonly host: string;
  readonly port: number;
  readonly burst: { readonly file: string; readonly sizeBytes: number } | null;
}

export interface TakeMessage {
  readonly type: 'take';
  /** Sockets of the predecessor that listen on the port: the successor's first one has this place among all. */
  readonly listening: number;
  /** Where the admin listener is that comes with this message; null without one. */
  readonly admin: { readonly host: string; readonly port: number } | null;
}

export type FromPredecessor =
  | BeginMessage
  | TakeMessage
  | { readonly type: 'confirm' }
  | { readonly type: 'committed' };
