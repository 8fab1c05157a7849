/**
 * Messages between the primary processes of a running server and its successor, as JSON over Node's IPC channel to a child process. The two may
 * have different versions: a message keeps its meaning once released, and `protocol` is increased for an incompatible change.
 *
 *     successor               predecessor
 *     hello            →                     its version, ledger and control socket
 *                      ←      begin          port and burst file to share
 *     ready | failed   →                     its workers listen beside the old ones
 *                      ←      take           the predecessor's ledger writer has stopped
 *     taken            →                     it has taken over, and gets all new connections
 *                      ←      confirm        a second later
 *     confirmed        →                     its readiness
 *                      ←      committed      the predecessor answers open requests and ends
 *
 * Until `committed` the predecessor can continue as before: it kills a successor that fails, hangs or reports that it is not ready.
 */
import type { LedgerVersions } from '../../ledger/writer.ts';

export const HAND_OVER_PROTOCOL = 1;

/** Environment variable that is set for a server started as a successor. */
export const SUCCESSOR_VARIABLE = 'PAGEGATE_SUCCESSOR';

/** Whether the successor can answer lookups, and the reasons if not. */
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
  /** Number of the predecessor's sockets on the port. It is also the position of the successor's first socket among all of them. */
  readonly listening: number;
  /** Address of the admin listener whose socket is sent with this message; null without one. */
  readonly admin: { readonly host: string; readonly port: number } | null;
}

export type FromPredecessor =
  | BeginMessage
  | TakeMessage
  | { readonly type: 'confirm' }
  | { readonly type: 'committed' };
