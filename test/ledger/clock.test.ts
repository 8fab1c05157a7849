/** A clock far ahead, with a real ledger writer: when the command of the operator returns, the confirmation is in effect. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Meter } from '../../src/ledger/meter.ts';
import { type LedgerWriter, startLedgerWriter } from '../../src/ledger/writer.ts';
import { accountOf, chargeOnce, DAY_MS, LedgerFolder } from './support.ts';

let folder: LedgerFolder;
let ledgerWriter: LedgerWriter;
let meter: Meter;
let key: string;
beforeEach(async () => {
  folder = new LedgerFolder();
  folder.nowMs = Date.now();
  const ledger = folder.ledger();
  await ledger.createAccount('acme');
  key = (await ledger.subscribe('acme', 'custom', 'PAY-1', 9)).issued!.key;
  const longAgo = Math.floor((folder.nowMs - 100 * DAY_MS) / 1000);
  ledger.database.prepare('UPDATE ledger SET last_seen_at = ?').run(longAgo);
  ledgerWriter = await startLedgerWriter({ file: folder.file });
  meter = new Meter({ file: folder.file });
});
afterEach(async () => {
  await meter.close();
  await ledgerWriter.close();
  await folder.remove();
});

it('is refused until an operator accepts it, and then the server charges at once', async () => {
  const account = accountOf(meter, key);
  expect(await chargeOnce(meter, account)).toBe('ledger_unavailable');
  // One message, without the text that clients get.
  expect(meter.health().reason).toMatch(/^The clock says .*, 100 days after .* run `pagegate account accept-clock`\.$/);
  expect(ledgerWriter.health).toEqual({ ready: false, reason: meter.health().reason });
  await folder.ledger().acceptClock();
  expect(meter.health()).toMatchObject({ ready: true });
  expect(await chargeOnce(meter, accountOf(meter, key))).toBe(8);
});
