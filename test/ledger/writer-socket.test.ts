/** The worker's end of the connection to the ledger writer, if its folder or the counters are missing. */
import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { identityFile } from '../../src/ledger/store/identity.ts';
import { connectToWriter, listenForWorkers } from '../../src/ledger/writer/writer-socket.ts';
import { accountOf, chargeOnce, LedgerFolder } from './support.ts';

/** Returns a ledger path that is too long for a socket address, so that the socket is opened through the open folder. */
function longPath(): { readonly dir: string; readonly file: string } {
  const root = mkdtempSync(join(tmpdir(), 'pagegate-link-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const dir = join(root, 'x'.repeat(120));
  mkdirSync(dir);
  return { dir, file: join(dir, 'ledger.sqlite') };
}

it('if closed while connecting, it stays closed and reports nothing more', async () => {
  const { file } = longPath();
  await listenForWorkers(file, () => {});
  const events: string[] = [];
  const links = Array.from({ length: 20 }, () =>
    connectToWriter(file, { onConnect: () => events.push('connect'), onAnswer: () => events.push('answer') }),
  );
  for (const link of links) link.close();
  await sleep(200);
  expect(events).toEqual([]);
});

it('keeps trying if the folder of the ledger is missing', async () => {
  const { dir, file } = longPath();
  let connected = 0;
  renameSync(dir, `${dir.slice(0, -1)}y`);
  const link = connectToWriter(file, { onConnect: () => (connected += 1), onAnswer: () => {} });
  onTestFinished(() => link.close());
  await sleep(200);
  renameSync(`${dir.slice(0, -1)}y`, dir);
  await listenForWorkers(file, () => {});
  await expect.poll(() => connected).toBe(1);
});

it('a meter that cannot map the counters of the next ledger writer charges in those it has, and tries again', async () => {
  const folder = new LedgerFolder();
  try {
    const { meter, key, reserver } = await folder.metered(1_000);
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe(999);
    const { countersFile } = folder;
    const identity = identityFile(folder.file);
    renameSync(identity, `${identity}.away`);
    mkdirSync(identity);
    rmSync(countersFile, { force: true });
    reserver.reconnectAll();
    await sleep(300);
    expect(meter.health()).toMatchObject({ ready: true });
    rmSync(identity, { recursive: true });
    renameSync(`${identity}.away`, identity);
    reserver.tick();
    await sleep(300);
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe(998);
  } finally {
    await folder.remove();
  }
});
