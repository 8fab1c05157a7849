/** The ledger writer in its own process, with meters in this one. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backupLedger } from '../../src/ledger/backup.ts';
import { Meter } from '../../src/ledger/meter.ts';
import { restoreLedger } from '../../src/ledger/restore.ts';
import { type LedgerWriter, startLedgerWriter, type WriterHealth } from '../../src/ledger/writer.ts';
import { isAlive } from '../support/processes.ts';
import { accountOf, chargeOnce, LedgerFolder } from './support.ts';

let folder: LedgerFolder;
let ledgerWriters: LedgerWriter[];
let meters: Meter[];
beforeEach(() => {
  folder = new LedgerFolder();
  folder.nowMs = Date.now();
  ledgerWriters = [];
  meters = [];
});
afterEach(async () => {
  for (const meter of meters) await meter.close();
  for (const ledgerWriter of ledgerWriters) await ledgerWriter.close();
  await folder.remove();
});

async function subscribe(name: string, limit: number): Promise<string> {
  const ledger = folder.ledger();
  await ledger.createAccount(name);
  return (await ledger.subscribe(name, 'custom', `PAY-${name}`, limit)).issued!.key;
}

async function start(onHealth?: (health: WriterHealth) => void): Promise<LedgerWriter> {
  const ledgerWriter = await startLedgerWriter({ file: folder.file }, onHealth === undefined ? {} : { onHealth });
  ledgerWriters.push(ledgerWriter);
  return ledgerWriter;
}

/** How long a charge waits for a ledger writer that is being restarted on a busy machine. */
const ANSWER_TIMEOUT_MS = 60_000;

async function open(file = folder.file): Promise<Meter> {
  const meter = new Meter({ file, timeoutMs: ANSWER_TIMEOUT_MS });
  meters.push(meter);
  return meter;
}

const inFile = (column: 'used' | 'reserved'): unknown =>
  folder.ledger().database.prepare(`SELECT ${column} FROM meters`).pluck().get();

describe('the ledger writer', () => {
  it('says why if a node cannot write its copy, which is not a defect', async () => {
    const { database } = folder.ledger();
    database.exec('BEGIN IMMEDIATE');
    const fleet = {
      engine: { url: 'postgres://pagegate@127.0.0.1:1/pagegate' },
      nodeName: 'one',
      maxStalenessSeconds: 60,
      currentLink: '',
    };
    const refused = { code: 'ledger_unavailable', message: expect.stringContaining('holds the file locked') };
    await expect(startLedgerWriter({ file: folder.file, fleet })).rejects.toMatchObject(refused);
    database.exec('ROLLBACK');
  }, 60_000);

  it('has reserved in the ledger what is spent, before it is spent', async () => {
    const key = await subscribe('acme', 1000);
    await start();
    const meter = await open();
    for (let i = 0; i < 50; i += 1) {
      expect(await chargeOnce(meter, accountOf(meter, key))).toBe(999 - i);
      expect(inFile('reserved')).toBeGreaterThanOrEqual(i + 1);
      expect(inFile('reserved')).toBeLessThanOrEqual(i + 11);
    }
  });

  it('commits usage within moments, and exactly at its end, with nothing else reserved', async () => {
    const key = await subscribe('acme', 1000);
    const ledgerWriter = await start();
    const meter = await open();
    for (let i = 0; i < 21; i += 1) await chargeOnce(meter, accountOf(meter, key));
    await expect.poll(() => inFile('used')).toBe(21);
    expect(folder.names().filter((name) => name.startsWith('pagegate-'))).toEqual([]);
    expect(existsSync(folder.countersFile)).toBe(true);
    await chargeOnce(meter, accountOf(meter, key));
    await ledgerWriter.close();
    expect([inFile('used'), inFile('reserved'), existsSync(folder.countersFile)]).toEqual([22, 22, false]);
  });

  it('is restarted if it is killed, and the waiting charges are answered', async () => {
    const key = await subscribe('acme', 1000);
    const seen: boolean[] = [];
    const ledgerWriter = await start(({ ready }) => seen.push(ready));
    const meter = await open();
    for (let i = 0; i < 10; i += 1) await chargeOnce(meter, accountOf(meter, key));
    const { pid } = ledgerWriter;
    process.kill(pid!, 'SIGSTOP');
    const waiting = Array.from({ length: 20 }, () => chargeOnce(meter, accountOf(meter, key)));
    process.kill(pid!, 'SIGKILL');
    const left = (await Promise.all(waiting)).sort((a, b) => Number(b) - Number(a));
    expect(left).toEqual(Array.from({ length: 20 }, (_, i) => 989 - i));
    expect(ledgerWriter.pid).not.toBe(pid);
    // The state of the disk reaches the meter through the shared counters. The ledger writer's own report comes later.
    await expect.poll(() => ledgerWriter.health).toEqual({ ready: true });
    expect(seen).toEqual([true, false, true]);
    await ledgerWriter.close();
    expect(inFile('used')).toBe(30);
  });

  it('is killed and restarted if it hangs; meanwhile reserved lookups are spent, and no charge is lost', async () => {
    const key = await subscribe('acme', 1000);
    const reasons: string[] = [];
    const kills: [number, string][] = [];
    const ledgerWriter = await startLedgerWriter(
      { file: folder.file, timeoutMs: 3_000 },
      {
        onHealth: (health) => reasons.push(health.ready ? 'ready' : health.reason),
        onKill: (...kill) => kills.push(kill),
      },
    );
    ledgerWriters.push(ledgerWriter);
    const meter = await open();
    await chargeOnce(meter, accountOf(meter, key));
    const { pid } = ledgerWriter;
    process.kill(pid!, 'SIGSTOP');
    expect(meter.charge(accountOf(meter, key))).toBe(998);
    await expect.poll(() => ledgerWriter.pid !== undefined && ledgerWriter.pid !== pid).toBe(true);
    await expect.poll(() => ledgerWriter.health.ready).toBe(true);
    expect(kills).toEqual([[pid, expect.stringContaining('sent no heartbeat for 4 s')]]);
    expect(reasons).toEqual(['ready', expect.stringMatching(/sent no heartbeat .* started again/), 'ready']);
    await expect.poll(() => inFile('used')).toBe(2);
    // The next one gets a longer timeout: restarts must not make a slow writer slower.
    process.kill(ledgerWriter.pid!, 'SIGSTOP');
    await expect.poll(() => kills.length).toBe(2);
    expect(kills[1]![1]).toContain('sent no heartbeat for 7 s');
  });

  it('is retried until it can be started', async () => {
    const key = await subscribe('acme', 1000);
    const reasons: string[] = [];
    const ledgerWriter = await start((health) => reasons.push(health.ready ? 'ready' : health.reason));
    const program = process.execPath;
    process.execPath = join(folder.dir, 'no-such-program');
    try {
      process.kill(ledgerWriter.pid!, 'SIGKILL');
      const tries = () => reasons.filter((reason) => /cannot be started/.test(reason)).length;
      await expect.poll(tries).toBeGreaterThan(1);
      expect(ledgerWriter.pid).toBeUndefined();
      await expect(startLedgerWriter({ file: folder.file })).rejects.toMatchObject({ code: 'ledger_unavailable' });
    } finally {
      process.execPath = program;
    }
    await expect.poll(() => ledgerWriter.health.ready).toBe(true);
    const meter = await open();
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe(999);
  });

  it('is left alone while it works, even if its parent was stopped', async () => {
    await subscribe('acme', 1);
    const ledgerWriter = await startLedgerWriter({ file: folder.file, timeoutMs: 3_000 });
    ledgerWriters.push(ledgerWriter);
    const { pid } = ledgerWriter;
    // Meanwhile no report of the ledger writer is read.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6_000);
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    expect(ledgerWriter.pid).toBe(pid);
  });

  it('is killed at the end if it hangs, and the next start continues from its state', async () => {
    const key = await subscribe('acme', 10_000);
    const ledgerWriter = await start();
    const meter = await open();
    await chargeOnce(meter, accountOf(meter, key));
    await expect.poll(() => inFile('used')).toBe(1);
    process.kill(ledgerWriter.pid!, 'SIGSTOP');
    for (let i = 0; i < 20; i += 1) expect(meter.charge(accountOf(meter, key))).toBe(9_998 - i);
    const { pid } = ledgerWriter;
    await ledgerWriter.close(200);
    await expect.poll(() => isAlive(pid!)).toBe(false);
    expect(inFile('used')).toBe(1);
    await start();
    expect(inFile('used')).toBe(21);
  });

  it('dies with its parent, even if it hangs', async () => {
    await subscribe('acme', 1);
    const program = join(folder.dir, 'parent.ts');
    const source = new URL('../../src/ledger/writer.ts', import.meta.url).href;
    writeFileSync(
      program,
      `import { startLedgerWriter } from ${JSON.stringify(source)};
      const ledgerWriter = await startLedgerWriter({ file: ${JSON.stringify(folder.file)} });
      process.kill(ledgerWriter.pid!, 'SIGSTOP');
      console.log(ledgerWriter.pid);
      process.exit(0);`,
    );
    const { stdout } = spawnSync(process.execPath, [program], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const pid = Number(stdout);
    expect(pid).toBeGreaterThan(0);
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  it('notifies running workers of a change before the command ends', async () => {
    const key = await subscribe('acme', 1);
    await start();
    const meter = await open();
    await chargeOnce(meter, accountOf(meter, key));
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe('quota_exhausted');
    const ledger = folder.ledger();
    for (let i = 2; i < 8; i += 1) {
      await ledger.subscribe('acme', 'custom', `PAY-${i}`, i);
      expect(await chargeOnce(meter, accountOf(meter, key))).toBe(0);
    }
    await ledger.closeAccount('acme');
    expect(meter.authenticate(key).kind).toBe('unknown');
  });

  it('is succeeded by one on standby, while workers keep charging in the same counters', async () => {
    const key = await subscribe('acme', 1_000_000);
    const first = await start();
    const meter = await open();
    const successor = await startLedgerWriter({ file: folder.file, standsBy: true });
    ledgerWriters.push(successor);
    expect(successor.health).toEqual({ ready: true });
    let charged = 0;
    let isStopped = false;
    const charging = (async () => {
      while (!isStopped) {
        expect(await chargeOnce(meter, accountOf(meter, key))).toBe(999_999 - charged);
        charged += 1;
        if (charged % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      }
    })();
    await first.handOver(10_000);
    expect(first.pid).toBeUndefined();
    await successor.inPlace;
    // And back: the successor dies at once.
    const followed = successor.pid!;
    await successor.handOver(10_000);
    first.resume();
    await expect.poll(() => first.pid).toBeGreaterThan(0);
    expect(isAlive(followed)).toBe(false);
    const before = charged;
    await expect.poll(() => charged).toBeGreaterThan(before + 100);
    isStopped = true;
    await charging;
    await meter.close();
    await first.close();
    expect(inFile('used')).toBe(charged);
    // No recovery was necessary.
    const recovered = folder.ledger().database.prepare("SELECT count(*) FROM audit WHERE action = 'ledger.recover'");
    expect(recovered.pluck().get()).toBe(0);
  });

  it('on standby ends at once when told to', async () => {
    await start();
    const successor = await startLedgerWriter({ file: folder.file, standsBy: true });
    const pid = successor.pid!;
    await successor.close(60_000);
    expect(isAlive(pid)).toBe(false);
  });

  it('is the only one for its ledger, and no restore is possible while it runs', async () => {
    await subscribe('acme', 1);
    await start();
    await expect(startLedgerWriter({ file: folder.file })).rejects.toMatchObject({ code: 'ledger_in_use' });
    const backup = join(folder.dir, 'backup.sqlite');
    backupLedger(folder.file, backup);
    expect(() => restoreLedger({ backup, file: folder.file, actor: 'op' })).toThrow(
      expect.objectContaining({ code: 'ledger_in_use' }),
    );
  });

  it('starts with a damaged file, says why nothing is charged, and continues when the file is replaced', async () => {
    mkdirSync(dirname(folder.file), { recursive: true });
    writeFileSync(folder.file, 'this is not a database, and long enough to be read as one. '.repeat(80));
    const ledgerWriter = await start();
    expect(ledgerWriter.health).toMatchObject({ ready: false, reason: expect.stringContaining('SQLITE_NOTADB') });
    rmSync(folder.file);
    const key = await subscribe('acme', 5);
    await expect.poll(() => ledgerWriter.health.ready).toBe(true);
    const meter = await open();
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe(4);
  });

  it('works if the path is longer than a socket address allows', async () => {
    const deep = join(folder.dir, 'a-rather-long-name-of-a-directory'.repeat(3), 'and-another-one'.repeat(4));
    const file = join(deep, 'ledger', 'ledger.sqlite');
    const { openLedger } = await import('../../src/ledger/open.ts');
    const ledger = await openLedger({ file, keyFile: join(deep, 'keys', 'k') });
    await ledger.createAccount('acme');
    const { key } = (await ledger.subscribe('acme', 'custom', 'PAY-1', 5)).issued!;
    ledger.close();
    ledgerWriters.push(await startLedgerWriter({ file }));
    const meter = await open(file);
    expect(await chargeOnce(meter, accountOf(meter, key))).toBe(4);
  });
});
