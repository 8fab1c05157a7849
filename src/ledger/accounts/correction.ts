/** Checks and stores an operator's correction of a meter. The ledger writer applies it; in a fleet, the database does. */
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { cycleAt } from '../cycle.ts';
import { type Account, currentUsage, NO_USAGE, planIn } from '../quota.ts';
import type { Sql, Transaction } from '../store/ledger-store.ts';

const NOTE_MAX_LENGTH = LIMITS.correctionNote.value;

/** What to change in a meter. */
export interface Correction {
  /** Lookups to give back. */
  readonly credit?: number;
  /** The cycle to move to. */
  readonly cycle?: number;
  /** Lookups that count as used in the cycle. */
  readonly used?: number;
}

const refuse = (why: string): PagegateError => new PagegateError('bad_correction', why);

/** Checks the note, which every correction needs. @throws PagegateError bad_correction */
export function checkCorrectionNote(note: string): void {
  const { length } = note.trim();
  if (length === 0 || length > NOTE_MAX_LENGTH)
    throw refuse(`The note: expected 1 to ${NOTE_MAX_LENGTH} characters that say why, got ${length}.`);
}

/**
 * Checks a correction and stores it until it is applied.
 *
 * @param nowSeconds on the ledger's clock.
 * @throws PagegateError bad_correction, account_state
 */
export async function requestCorrection(
  sql: Transaction,
  account: Account,
  wanted: Correction,
  { isFleet, nowSeconds }: { readonly isFleet: boolean; readonly nowSeconds: number },
): Promise<void> {
  const { credit = 0, cycle = null, used = null } = wanted;
  if (account.anchor === null) throw new PagegateError('account_state', `"${account.name}" has no plan yet.`);
  if (isFleet && (cycle !== null || used !== null))
    throw refuse('A fleet takes --credit alone: what nodes have spent is theirs to say.');
  const latest = cycleAt(account.anchor, nowSeconds);
  if (cycle !== null && cycle > latest)
    throw refuse(`--cycle: expected 0 to ${latest}, the cycle of today, got ${cycle}.`);
  const limit = planIn(account, cycle ?? latest)?.limit ?? 0;
  if (used !== null && used > limit) throw refuse(`--used: expected 0 to ${limit}, the limit, got ${used}.`);
  if (credit === 0 && cycle === null && used === null) throw refuse('Give --credit, --used or --cycle.');
  const insert = 'INSERT INTO corrections (account_id, cycle, used, credit) VALUES (?, ?, ?, ?)';
  // A ledger writer limits the credit to what is used itself: it knows that exactly.
  const maxCredit = isFleet ? await usedNow(sql, account, nowSeconds) : credit;
  await sql.run(insert, account.id, cycle, used, Math.min(credit, maxCredit));
  // Makes the nodes ask again, even if the account is at its limit and no node would ask for more.
  if (isFleet) await touchAccounts(sql, 'id = ?', account.id);
}

async function usedNow(sql: Transaction, account: Account, nowSeconds: number): Promise<number> {
  const seen = (await sql.usage([account])).get(account.id) ?? NO_USAGE;
  return currentUsage(account, seen, nowSeconds).used;
}

/** Updates accounts without changing a value, so that the nodes of a fleet ask again what is left of them. */
export const touchAccounts = (sql: Sql, where: string, value: number | string): Promise<number> =>
  sql.run(`UPDATE accounts SET state = state WHERE ${where}`, value);
