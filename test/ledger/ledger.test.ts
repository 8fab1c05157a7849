/** Accounts, keys and plans, as an administrator changes them. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../src/errors.ts';
import { readAudit } from '../../src/ledger/audit.ts';
import { CYCLE_SECONDS, cycleAt, cycleEnd, cycleStart } from '../../src/ledger/cycle.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { loadPlans, resolvePlan } from '../../src/ledger/plans.ts';
import { quotaView } from '../../src/ledger/quota.ts';
import { createApiKey, hashApiKey, isApiKeyShaped } from '../../src/ledger/store/api-key.ts';
import { clockProblem } from '../../src/ledger/store/clock.ts';
import { openKeyVault } from '../../src/ledger/store/key-vault.ts';
import type { ApiKeyRecord } from '../../src/ledger/store/records.ts';
import { SqliteStore } from '../../src/ledger/store/sqlite-store.ts';
import { LIMITS } from '../../src/limits.ts';
import { HARMLESS_JSON, HOSTILE_JSON } from '../support/hostile-json.ts';
import { DAY_MS, LedgerFolder, type TestLedger } from './support.ts';

let folder: LedgerFolder;
let ledger: TestLedger;
beforeEach(() => {
  folder = new LedgerFolder();
  ledger = folder.ledger();
});
afterEach(() => folder.remove());

const expectCode = (task: () => unknown, code: ErrorCode): void => {
  expect(task).toThrow(expect.objectContaining({ code }));
};

const expectRejection = async (change: Promise<unknown>, code: ErrorCode): Promise<void> => {
  await expect(change).rejects.toMatchObject({ code });
};

describe('accounts', () => {
  it('are not activated until they are subscribed, and then have a key', async () => {
    await ledger.createAccount('acme');
    expect((await ledger.view('acme')).quota).toEqual({
      plan: null,
      activated: false,
      quota_limit: null,
      quota_used: 0,
      quota_remaining: 0,
      quota_resets_at: null,
    });
    const { issued } = await ledger.subscribe('acme', 'pro', 'INV-1');
    expect(isApiKeyShaped(issued!.key)).toBe(true);
    expect((await ledger.view('acme')).quota).toEqual({
      plan: 'pro',
      activated: true,
      quota_limit: 90_000,
      quota_used: 0,
      quota_remaining: 90_000,
      quota_resets_at: '2026-01-31T00:00:00Z',
    });
  });

  it('are upgraded at once with the same anchor, are downgraded at the boundary, and can cancel a downgrade', async () => {
    await ledger.createAccount('acme');
    await ledger.subscribe('acme', 'pro', 'INV-1');
    folder.nowMs += 10 * DAY_MS;
    await ledger.subscribe('acme', 'business', 'INV-2');
    expect((await ledger.view('acme')).quota).toMatchObject({
      quota_limit: 2_000_000,
      quota_resets_at: '2026-01-31T00:00:00Z',
    });
    await ledger.subscribe('acme', 'pro_plus', 'INV-3');
    expect((await ledger.view('acme')).quota).toMatchObject({ plan: 'business', quota_limit: 2_000_000 });
    folder.nowMs += 20 * DAY_MS;
    expect((await ledger.view('acme')).quota).toMatchObject({ plan: 'pro_plus', quota_limit: 225_000 });
    await ledger.subscribe('acme', 'pro', 'INV-4');
    await ledger.keepPlan('acme');
    folder.nowMs += 30 * DAY_MS;
    expect((await ledger.view('acme')).quota).toMatchObject({ plan: 'pro_plus' });
    await expectRejection(ledger.keepPlan('acme'), 'account_state');
  });

  it('change to a plan of the same size at once', async () => {
    await ledger.createAccount('acme');
    await ledger.subscribe('acme', 'pro', 'INV-1');
    await ledger.subscribe('acme', 'custom', 'INV-2', 90_000);
    expect((await ledger.view('acme')).account).toMatchObject({ plan: 'custom', limit: 90_000, next: null });
  });

  it('accept a payment once, a custom limit only on the custom plan, and only known plans', async () => {
    await ledger.createAccount('acme');
    await ledger.subscribe('acme', 'custom', 'INV-1', 12_000_000);
    expect((await ledger.view('acme')).quota.quota_limit).toBe(12_000_000);
    await expectRejection(ledger.subscribe('acme', 'pro', 'INV-1'), 'payment_known');
    await expectRejection(ledger.subscribe('acme', 'pro', 'INV-2', 5), 'bad_plan_limit');
    await expectRejection(ledger.subscribe('acme', 'custom', 'INV-2'), 'bad_plan_limit');
    await expectRejection(ledger.subscribe('acme', 'custom', 'INV-2', 0), 'bad_plan_limit');
    await expectRejection(ledger.subscribe('acme', 'gold', 'INV-2'), 'unknown_plan');
    await expectRejection(ledger.subscribe('acme', 'pro', ''), 'bad_payment_reference');
    expect(ledger.database.prepare('SELECT count(*) FROM payments').pluck().get()).toBe(1);
  });

  it('can be suspended and reactivated, and closed permanently', async () => {
    await ledger.createAccount('acme');
    await expectRejection(ledger.setActive('acme', false), 'account_state');
    await ledger.subscribe('acme', 'pro', 'INV-1');
    await ledger.setActive('acme', false);
    expect((await ledger.view('acme')).quota).toMatchObject({ activated: false, plan: 'pro', quota_remaining: 90_000 });
    await ledger.setActive('acme', true);
    await ledger.closeAccount('acme');
    await expectRejection(ledger.closeAccount('acme'), 'account_state');
    await expectRejection(ledger.setActive('acme', true), 'account_state');
    await expectRejection(ledger.subscribe('acme', 'pro', 'INV-2'), 'account_state');
    await expectRejection(ledger.rotateKey('acme'), 'account_state');
  });

  it('have unique names that are safe to print', async () => {
    for (const name of ['', 'Acme', 'a b', '-a', 'a'.repeat(65), 'a\n', 'a/b']) {
      await expectRejection(ledger.createAccount(name), 'bad_account_name');
    }
    await ledger.createAccount('a.b-c_d@e');
    await expectRejection(ledger.createAccount('a.b-c_d@e'), 'account_exists');
    await expectRejection(ledger.view('nobody'), 'account_not_found');
  });

  it('are limited to the number of slots in the shared counters', async () => {
    await ledger.createAccount('first');
    ledger.database.exec("UPDATE sqlite_sequence SET seq = 65534 WHERE name = 'accounts'");
    expect((await ledger.createAccount('last')).id).toBe(65_535);
    await expectRejection(ledger.createAccount('beyond'), 'too_many_accounts');
  });

  it('refuse a change if the clock leapt ahead, until an operator confirms it', async () => {
    await ledger.createAccount('acme');
    await ledger.acceptClock();
    folder.nowMs += 400 * DAY_MS;
    await expectRejection(ledger.subscribe('acme', 'pro', 'INV-1'), 'ledger_clock');
    await ledger.acceptClock();
    await ledger.subscribe('acme', 'pro', 'INV-1');
    expect((await ledger.view('acme')).quota.quota_resets_at).toBe('2027-03-07T00:00:00Z');
  });

  it('do not show a downgrade as pending after it took effect', async () => {
    await ledger.createAccount('acme');
    await ledger.subscribe('acme', 'advanced', 'INV-1');
    await ledger.subscribe('acme', 'pro', 'INV-2');
    expect((await ledger.view('acme')).account).toMatchObject({
      plan: 'advanced',
      next: { plan: 'pro', fromCycle: 1 },
    });
    folder.nowMs += 30 * DAY_MS;
    expect((await ledger.view('acme')).account).toMatchObject({ plan: 'pro', limit: 90_000, next: null });
    expect((await ledger.list())[0]!.account.next).toBeNull();
    await expectRejection(ledger.keepPlan('acme'), 'account_state');
  });
});

describe('the current time and cycle', () => {
  it('accept a clock up to 45 days ahead of the latest moment seen, and any clock if no moment was seen', () => {
    expect(clockProblem(1_000, 1_000 + 45 * 86_400)).toBeUndefined();
    expect(clockProblem(1_000, 1_001 + 45 * 86_400)).toMatch(/45 days after/);
    expect(clockProblem(0, 1e9)).toBeUndefined();
  });

  it('are the first cycle before its start, and never less than zero lookups left', async () => {
    expect([0, 999, 1_000, 1_000 + CYCLE_SECONDS - 1, 1_000 + CYCLE_SECONDS].map((now) => cycleAt(1_000, now))).toEqual(
      [0, 0, 0, 0, 1],
    );
    for (const cycle of [0, 1, 7]) {
      expect(cycleAt(1_000, cycleStart(1_000, cycle))).toBe(cycle);
      expect(cycleEnd(1_000, cycle)).toBe(cycleStart(1_000, cycle + 1));
    }
    await ledger.createAccount('acme');
    const { account } = await ledger.subscribe('acme', 'custom', 'INV-1', 2);
    expect(quotaView(account, { cycle: 0, used: 5 }, account.anchor!)).toMatchObject({
      quota_used: 5,
      quota_remaining: 0,
    });
  });
});

describe('the audit table', () => {
  it('names the user, the action and the values before and after, and never a key or its hash', async () => {
    await ledger.createAccount('acme');
    const { issued } = await ledger.subscribe('acme', 'pro', 'INV-1');
    await folder.ledger('another').setActive('acme', false);
    const [latest, subscribed, created] = await readAudit(ledger, 'acme', 10);
    expect(latest).toMatchObject({ actor: 'another', action: 'account.suspend', account: 'acme' });
    expect(JSON.parse(latest!.before!)).toMatchObject({ state: 'active' });
    expect(JSON.parse(latest!.after!)).toMatchObject({ state: 'suspended' });
    expect(subscribed!.action).toBe('account.subscribe INV-1');
    expect(created).toMatchObject({ before: null, action: 'account.create' });
    const all = JSON.stringify(await readAudit(ledger, undefined, 100));
    expect(all).not.toContain(issued!.key);
    expect(all).not.toContain(hashApiKey(issued!.key));
  });

  it('cannot be changed or shortened', async () => {
    await ledger.createAccount('acme');
    expect(() => ledger.database.exec("UPDATE audit SET actor = 'x'")).toThrow(/append-only/);
    expect(() => ledger.database.exec('DELETE FROM audit')).toThrow(/append-only/);
    expect(await readAudit(ledger, undefined, 10)).toHaveLength(1);
  });

  it('has no line whose size grows with the keys that had already ended', async () => {
    await ledger.createAccount('acme');
    await ledger.issueKey('acme');
    const lengths: number[] = [];
    const seconds = (): number => Math.floor(folder.nowMs / 1000);
    for (let i = 0; i < 20; i++) {
      folder.nowMs += 1000;
      await ledger.rotateKey('acme');
      const [line] = await readAudit(ledger, 'acme', 1);
      const [before, after] = [line!.before!, line!.after!].map((text) => JSON.parse(text).keys as ApiKeyRecord[]);
      // The line of the rotation has the key that it ended and the key that it issued.
      expect(before).toMatchObject([{ expiresAt: null }]);
      expect(after).toMatchObject([{ id: before![0]!.id, expiresAt: seconds() }, { expiresAt: null }]);
      lengths.push(line!.after!.length);
    }
    expect(lengths.at(-1)! - lengths[0]!).toBeLessThan(10);
    folder.nowMs += 1000;
    await ledger.revokeKey('acme', (await ledger.view('acme')).keys.at(-1)!.id);
    const [revoked] = await readAudit(ledger, 'acme', 1);
    expect(JSON.parse(revoked!.after!).keys).toMatchObject([{ revokedAt: seconds() }]);
  });

  it('gets no line for a change that failed', async () => {
    await ledger.createAccount('acme');
    await expectRejection(ledger.subscribe('acme', 'gold', 'INV-1'), 'unknown_plan');
    await expectRejection(ledger.revokeKey('acme', 7), 'key_not_found');
    expect(await readAudit(ledger, undefined, 10)).toHaveLength(1);
  });
});

describe('keys', () => {
  it('have a prefix, 32 base62 characters and a checksum that detects every single wrong character', () => {
    const key = createApiKey();
    expect(key).toMatch(/^pg_[0-9A-Za-z]{38}$/);
    expect(isApiKeyShaped(key)).toBe(true);
    for (let i = 3; i < key.length; i += 1) {
      const other = key[i] === 'x' ? 'y' : 'x';
      expect(isApiKeyShaped(key.slice(0, i) + other + key.slice(i + 1)), `character ${i}`).toBe(false);
    }
    for (const text of [
      '',
      'pg_',
      `${key} `,
      key.slice(1),
      key.replace('pg_', 'pk_'),
      `${key}0`,
      'pg_'.padEnd(41, 'é'),
    ]) {
      expect(isApiKeyShaped(text), text).toBe(false);
    }
    expect(new Set(Array.from({ length: 1000 }, createApiKey)).size).toBe(1000);
  });

  it('use every base62 character about equally often', () => {
    const counts = new Map<string, number>();
    for (let i = 0; i < 4000; i += 1)
      for (const c of createApiKey().slice(3, 35)) counts.set(c, (counts.get(c) ?? 0) + 1);
    expect(counts.size).toBe(62);
    // 2,065 expected each; seven standard deviations are 318.
    for (const count of counts.values()) expect(Math.abs(count - 2065)).toBeLessThan(318);
  });

  it('are stored encrypted and hashed, never in clear', async () => {
    await ledger.createAccount('acme');
    const { key } = await ledger.issueKey('acme');
    ledger.close();
    const bytes = readFileSync(folder.file);
    const wal = existsSync(`${folder.file}-wal`) ? readFileSync(`${folder.file}-wal`) : Buffer.alloc(0);
    const all = Buffer.concat([bytes, wal]);
    expect(all.includes(key)).toBe(false);
    expect(all.includes(key.slice(3, 35))).toBe(false);
    expect(all.includes(hashApiKey(key))).toBe(true);
    ledger = folder.ledger();
    expect((await ledger.showKey('acme')).key).toBe(key);
  });

  it('are bound to their account and id: a row moved to another account cannot be decrypted', async () => {
    await ledger.createAccount('acme');
    await ledger.createAccount('evil');
    await ledger.issueKey('acme');
    await ledger.issueKey('evil');
    ledger.database.exec('UPDATE api_keys SET sealed = (SELECT sealed FROM api_keys WHERE id = 1) WHERE id = 2');
    await expectRejection(ledger.showKey('evil'), 'key_not_readable');
    ledger.database.exec('UPDATE api_keys SET sealed = zeroblob(69) WHERE id = 1');
    await expectRejection(ledger.showKey('acme'), 'key_not_readable');
  });

  it('cannot be shown without their encryption key, and the error says so; new keys can', async () => {
    await ledger.createAccount('acme');
    await ledger.issueKey('acme');
    ledger.close();
    renameSync(folder.keyFile, `${folder.keyFile}.lost`);
    ledger = folder.ledger();
    await expectRejection(ledger.showKey('acme'), 'key_not_readable');
    // Showing a key creates no new encryption key, which would be mistaken for the restored one.
    expect(existsSync(folder.keyFile)).toBe(false);
    await expect(ledger.showKey('acme')).rejects.toThrow(`there is no ${folder.keyFile}. Put the file back`);
    const { key } = await ledger.rotateKey('acme');
    expect((await ledger.showKey('acme')).key).toBe(key);
  });

  it('keep their encryption key private, in another folder, and do not use it if others can read it', async () => {
    const vault = openKeyVault(folder.keyFile);
    expect(openKeyVault(folder.keyFile).id).toBe(vault.id);
    expect(vault.id).toMatch(/^[0-9a-f]{16}$/);
    chmodSync(folder.keyFile, 0o640);
    expectCode(() => openKeyVault(folder.keyFile), 'bad_key_file');
    chmodSync(folder.keyFile, 0o600);
    for (const text of ['short', '', `\ufeff${'0a'.repeat(32)}`, `${'0a'.repeat(32)}\0`, ' '.repeat(1 << 20)]) {
      writeFileSync(folder.keyFile, text);
      expectCode(() => openKeyVault(folder.keyFile), 'bad_key_file');
    }
    writeFileSync(folder.keyFile, `${'0a'.repeat(32)}\r\n`);
    expect(openKeyVault(folder.keyFile).id).toMatch(/^[0-9a-f]{16}$/);
    rmSync(folder.keyFile);
    execFileSync('mkfifo', ['-m', '600', folder.keyFile]);
    expectCode(() => openKeyVault(folder.keyFile), 'bad_key_file');
    const beside = new Ledger(new SqliteStore({ file: folder.file }), {
      keyFile: join(folder.dir, 'ledger', 'ledger.key'),
    });
    await beside.createAccount('acme');
    await expectRejection(beside.issueKey('acme'), 'bad_key_file');
    beside.close();
    expect(existsSync(join(folder.dir, 'ledger', 'ledger.key'))).toBe(false);
  });

  it('are encrypted differently each time, and only decrypt for their account and id', () => {
    const vault = openKeyVault(folder.keyFile);
    const sealed = vault.seal('secret', 1, 2);
    expect(Buffer.compare(sealed, vault.seal('secret', 1, 2))).not.toBe(0);
    expect(vault.open(sealed, 1, 2)).toBe('secret');
    for (const [account, id] of [
      [1, 3],
      [2, 2],
      [12, 2],
    ] as const)
      expectCode(() => vault.open(sealed, account, id), 'key_not_readable');
    for (const at of [0, 12, sealed.length - 1]) {
      const altered = Uint8Array.from(sealed);
      altered[at]! ^= 1;
      expectCode(() => vault.open(altered, 1, 2), 'key_not_readable');
    }
    expectCode(() => vault.open(sealed.subarray(0, 20), 1, 2), 'key_not_readable');
  });

  it('have an encryption key that is created once, readable by its owner only, of 64 hexadecimal digits', () => {
    const { id } = openKeyVault(folder.keyFile);
    expect(statSync(folder.keyFile).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(folder.keyFile)).mode & 0o777).toBe(0o700);
    expect(readdirSync(dirname(folder.keyFile))).toEqual([basename(folder.keyFile)]);
    const digits = readFileSync(folder.keyFile, 'latin1').trim();
    for (const text of [digits.slice(1), `${digits}0`, digits.toUpperCase(), `${digits.slice(1)}g`, '']) {
      writeFileSync(folder.keyFile, text);
      expectCode(() => openKeyVault(folder.keyFile), 'bad_key_file');
    }
    writeFileSync(folder.keyFile, digits);
    expect(openKeyVault(folder.keyFile).id).toBe(id);
    for (const mode of [0o604, 0o620, 0o610]) {
      chmodSync(folder.keyFile, mode);
      expectCode(() => openKeyVault(folder.keyFile), 'bad_key_file');
    }
    chmodSync(folder.keyFile, 0o400);
    expect(openKeyVault(folder.keyFile).id).toBe(id);
  });

  it('that cannot be shown name the file with the existing key, even if it is a credential', async () => {
    await ledger.createAccount('acme');
    await ledger.issueKey('acme');
    const dir = join(folder.dir, 'keys');
    const credential = join(dir, 'pagegate-ledger-key');
    writeFileSync(credential, '0'.repeat(64));
    process.env['CREDENTIALS_DIRECTORY'] = dir;
    try {
      await expect(folder.ledger().showKey('acme')).rejects.toThrow(`; ${credential} is `);
    } finally {
      delete process.env['CREDENTIALS_DIRECTORY'];
    }
  });

  it('take their encryption key from a systemd credential if there is one', () => {
    const dir = join(folder.dir, 'keys');
    const { id } = openKeyVault(folder.keyFile);
    const credential = join(dir, 'pagegate-ledger-key');
    renameSync(folder.keyFile, credential);
    process.env['CREDENTIALS_DIRECTORY'] = dir;
    try {
      expect(openKeyVault(folder.keyFile).id).toBe(id);
      expect(existsSync(folder.keyFile)).toBe(false);
      writeFileSync(credential, 'short');
      expectCode(() => openKeyVault(folder.keyFile), 'bad_key_file');
      rmSync(credential);
      // A credential that cannot be read does not lead to a new key.
      mkdirSync(credential);
      expectCode(() => openKeyVault(folder.keyFile), 'bad_key_file');
      rmdirSync(credential);
      expect(openKeyVault(folder.keyFile).id).not.toBe(id);
      expect(existsSync(folder.keyFile)).toBe(true);
    } finally {
      delete process.env['CREDENTIALS_DIRECTORY'];
    }
  });

  it('are rotated with an overlap that ends, and can be revoked', async () => {
    await ledger.createAccount('acme');
    const first = await ledger.issueKey('acme');
    await expectRejection(ledger.issueKey('acme'), 'account_state');
    await ledger.rotateKey('acme', 3600);
    folder.nowMs += 1000;
    const latest = await ledger.rotateKey('acme', 86_400);
    expect([(await ledger.showKey('acme')).key, (await ledger.showKey('acme', 1)).key]).toEqual([
      latest.key,
      first.key,
    ]);
    const [one, two, three] = (await ledger.view('acme')).keys;
    expect(one!.expiresAt! * 1000).toBe(folder.nowMs - 1000 + 3_600_000);
    expect(two!.expiresAt! * 1000).toBe(folder.nowMs + 86_400_000);
    expect(three!.expiresAt).toBeNull();
    await ledger.revokeKey('acme', first.record.id);
    await expectRejection(ledger.revokeKey('acme', first.record.id), 'account_state');
    await ledger.rotateKey('acme');
    expect((await ledger.view('acme')).keys[0]!.expiresAt).toBe(one!.expiresAt);
    await ledger.createAccount('other');
    await ledger.issueKey('other');
    await expectRejection(ledger.revokeKey('other', 2), 'key_not_found');
    await expectRejection(ledger.showKey('other', 2), 'key_not_found');
    await expectRejection(ledger.rotateKey('acme', 31 * 86_400), 'bad_overlap');
    await expectRejection(ledger.rotateKey('acme', -1), 'bad_overlap');
  });

  it('are limited in number at any time, however they overlap', async () => {
    await ledger.createAccount('acme');
    await ledger.issueKey('acme');
    const most = LIMITS.validKeys.value;
    for (let valid = 1; valid < most; valid++) await ledger.rotateKey('acme', 86_400);
    await expectRejection(ledger.rotateKey('acme', 86_400), 'too_many_keys');
    await ledger.revokeKey('acme', 1);
    await ledger.rotateKey('acme', 86_400);
    // Without an overlap all of them end.
    await ledger.rotateKey('acme');
    await ledger.rotateKey('acme', 86_400);
  });
});

describe('the plan catalog', () => {
  it('has a schema file that is up to date and refuses what the program refuses', () => {
    const read = (name: string): unknown =>
      JSON.parse(readFileSync(new URL(`../../data/${name}`, import.meta.url), 'utf8'));
    const validate = new Ajv2020().compile(read('schema/plans.schema.json') as object);
    const plans = read('plans.json') as { plans: object[] };
    expect(validate(plans)).toBe(true);
    expect(validate({ ...plans, plans: [{ ...plans.plans[0], lookups: 0 }] })).toBe(false);
    expect(validate({ ...plans, plans: [{ ...plans.plans[0], id: 'Pro' }] })).toBe(false);
  });

  it('has the plans and prices of the specification', () => {
    expect(loadPlans().map(({ name, priceUsd, lookups }) => [name, priceUsd, lookups])).toEqual([
      ['Pro', 99, 90_000],
      ['Pro Plus', 249, 225_000],
      ['Advanced', 499, 450_000],
      ['Advanced Plus', 999, 900_000],
      ['Business', 1997, 2_000_000],
      ['Enterprise', 3999, 10_000_000],
      ['Custom', null, null],
    ]);
  });

  it('accepts the largest and the smallest values within the limits', () => {
    const largest = { id: 'p'.repeat(32), name: 'x'.repeat(64), price_usd: 0, lookups: 1_000_000_000_000 };
    const plans = Array.from({ length: 100 }, (_, i) =>
      i === 0 ? largest : { id: `p${i}`, name: 'x', price_usd: null, lookups: i === 1 ? null : 1 },
    );
    const file = join(folder.dir, 'plans.json');
    writeFileSync(file, JSON.stringify({ version: 1, plans }));
    const loaded = loadPlans(file);
    expect(loaded).toHaveLength(100);
    expect(loaded[0]).toEqual({ id: largest.id, name: largest.name, priceUsd: 0, lookups: 1_000_000_000_000 });
    expect(resolvePlan(loaded, 'p1', 1_000_000_000_000)).toEqual({ plan: 'p1', limit: 1_000_000_000_000 });
    expect(resolvePlan(loaded, 'p1', 1)).toEqual({ plan: 'p1', limit: 1 });
    for (const limit of [0, -1, 1.5, Number.NaN, 1_000_000_000_001, undefined])
      expectCode(() => resolvePlan(loaded, 'p1', limit), 'bad_plan_limit');
  });

  it.each([
    ['no JSON', '{'],
    ['another version', '{"version":2,"plans":[{"id":"pro","name":"x","price_usd":1,"lookups":1}]}'],
    ['no plan', '{"version":1,"plans":[]}'],
    ['a bad id', '{"version":1,"plans":[{"id":"Pro","name":"x","price_usd":1,"lookups":1}]}'],
    ['no lookups', '{"version":1,"plans":[{"id":"pro","name":"x","price_usd":1,"lookups":0}]}'],
    ['a negative price', '{"version":1,"plans":[{"id":"pro","name":"x","price_usd":-1,"lookups":1}]}'],
    ['a price in words', '{"version":1,"plans":[{"id":"pro","name":"x","price_usd":"1","lookups":1}]}'],
    ['no price', '{"version":1,"plans":[{"id":"pro","name":"x","lookups":1}]}'],
    ['half a lookup', '{"version":1,"plans":[{"id":"pro","name":"x","price_usd":1,"lookups":1.5}]}'],
    ['lookups in words', '{"version":1,"plans":[{"id":"pro","name":"x","price_usd":1,"lookups":"9"}]}'],
    ['too many lookups', '{"version":1,"plans":[{"id":"pro","name":"x","price_usd":1,"lookups":1000000000001}]}'],
    ['an id that is not a text', '{"version":1,"plans":[{"id":7,"name":"x","price_usd":1,"lookups":1}]}'],
    ['a hyphen in an id', '{"version":1,"plans":[{"id":"pro-plus","name":"x","price_usd":1,"lookups":1}]}'],
    ['an id too long', `{"version":1,"plans":[{"id":"${'p'.repeat(33)}","name":"x","price_usd":1,"lookups":1}]}`],
    ['an empty name', '{"version":1,"plans":[{"id":"pro","name":"","price_usd":1,"lookups":1}]}'],
    ['a name too long', `{"version":1,"plans":[{"id":"pro","name":"${'x'.repeat(65)}","price_usd":1,"lookups":1}]}`],
    ['a name that is not a text', '{"version":1,"plans":[{"id":"pro","name":7,"price_usd":1,"lookups":1}]}'],
    ['a plan that is not an object', '{"version":1,"plans":["pro"]}'],
    ['a plan that is a list', '{"version":1,"plans":[["pro"]]}'],
    ['null for a plan', '{"version":1,"plans":[null]}'],
    ['plans that are not a list', '{"version":1,"plans":{"length":1}}'],
    ['nothing but null', 'null'],
    ['an unknown name', '{"version":1,"plans":[{"id":"pro","name":"x","price_usd":1,"lookups":1,"limit":9}]}'],
    ['another part', '{"version":1,"plan":[],"plans":[{"id":"pro","name":"x","price_usd":1,"lookups":1}]}'],
    [
      'more than a hundred plans',
      JSON.stringify({
        version: 1,
        plans: Array.from({ length: 101 }, (_, i) => ({ id: `p${i}`, name: 'x', price_usd: 1, lookups: 1 })),
      }),
    ],
    [
      'two alike',
      `{"version":1,"plans":[${Array(2).fill('{"id":"pro","name":"x","price_usd":1,"lookups":1}').join()}]}`,
    ],
  ])('refuses a file with %s', (_what, text) => {
    const file = join(folder.dir, 'plans.json');
    writeFileSync(file, text);
    expectCode(() => loadPlans(file), 'bad_plan_catalogue');
    rmSync(file);
    expectCode(() => loadPlans(file), 'bad_plan_catalogue');
  });

  const own = '{"version":1,"plans":[{"id":"pro","name":"x","price_usd":1,"lookups":1}]}';
  const loaded = (bytes: Uint8Array) => {
    writeFileSync(join(folder.dir, 'plans.json'), bytes);
    return loadPlans(join(folder.dir, 'plans.json'));
  };

  it.each(HOSTILE_JSON)('refuses a file with $name', ({ spoil, expected }) => {
    const refused = { code: 'bad_plan_catalogue', message: expect.stringMatching(expected) };
    expect(() => loaded(spoil(own))).toThrow(expect.objectContaining(refused));
  });

  it.each(HARMLESS_JSON)('reads a file with $name', ({ spoil }) => {
    expect(loaded(spoil(own))).toMatchObject([{ id: 'pro', lookups: 1 }]);
  });
});
