/** The program with the real builder, verifier and license, as an operator uses it. */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { EXIT } from '../../src/errors.ts';
import { openIndex } from '../../src/index/read.ts';
import { readAudit } from '../../src/ledger/audit.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { currentGeneration, listGenerations, listLitter } from '../../src/refresh/store.ts';
import { refreshFrom } from '../../src/refresh-steps/run.ts';
import {
  type CommandOutcome,
  createInstallation,
  domainOf,
  type Installation,
  PAGEGATE,
  pageOf,
  type Report,
} from '../../tools/installation.ts';
import { pagegateHere } from '../support/program.ts';

const run = promisify(execFile);

let place: Installation;
beforeAll(async () => {
  place = createInstallation();
  const { code, json } = await place.pagegate('refresh', place.drop('r5', { revision: 5 }));
  expect({ code, json }).toMatchObject({ code: 0, json: { outcome: 'activated', generation: 1, records: 200 } });
});
afterAll(() => place.remove());

/** Runs a command on an installation inside this process, with the same result as in a process of its own. */
async function pagegateOn({ configFile }: Installation, ...words: string[]): Promise<CommandOutcome> {
  const { status, stdout, stderr } = await pagegateHere([...words, '--config', configFile, '--json']);
  return { code: status, json: JSON.parse(stdout === '' ? stderr : stdout), stderr };
}

const indexFile = () => join(place.store, 'current/index.pgx');
const servedPage = (): string | undefined => {
  const index = openIndex(indexFile());
  try {
    return index.decode(index.find(domainOf(7))).pageTypes[0]?.url;
  } finally {
    index.close();
  }
};

test('a refresh before the first account creates no ledger', () => {
  expect(existsSync(join(place.state, 'ledger/ledger.sqlite'))).toBe(false);
});

test('a drop that no licensee could accept is not signed', async () => {
  const drop = place.drop('delta', { revision: 6 });
  const file = join(drop, 'manifest.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8'));
  const { privateKey } = generateKeyPairSync('ed25519');
  const key = join(drop, 'key.pem');
  writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  rmSync(join(drop, 'manifest.json.sig'));
  const sign = async (changed: object) => {
    chmodSync(file, 0o644);
    writeFileSync(file, JSON.stringify({ ...manifest, ...changed }));
    return /\[(\w+)\]/.exec((await pagegateHere(['drop', 'sign', drop, '--key', key])).stderr)?.[1];
  };
  const [first, ...others] = manifest.files;
  expect(await sign({ kind: 'delta' })).toBe('drop_kind');
  expect(await sign({ files: [{ ...first, records: first.records + 1 }, ...others] })).toBe('drop_part_records');
  expect(existsSync(join(drop, 'manifest.json.sig'))).toBe(false);
  expect(await sign({})).toBeUndefined();
});

describe('a refusal does not change what is served', () => {
  const flip = (part: Buffer): Buffer => {
    const changed = Buffer.from(part);
    changed[part.length >> 1]! ^= 0x10;
    return changed;
  };
  test.each([
    ['wrong checksum', { revision: 6, damage: flip }, /^drop_part_(checksum|truncated)$/, EXIT.bad_input],
    ['truncated part', { revision: 6, damage: (p: Buffer) => p.subarray(0, -9) }, /^drop_part_size$/, EXIT.bad_input],
    [
      'part cut before it was listed',
      { revision: 6, prepare: (p: Buffer) => p.subarray(0, -9) },
      /^drop_part_truncated$/,
      EXIT.bad_input,
    ],
    ['older revision', { revision: 4 }, /^drop_older_revision$/, EXIT.refused],
    ['outside the license', { revision: 6, dataset: 'other' }, /^license_not_entitled$/, EXIT.refused],
  ])('%s', async (name, spec, code, exit) => {
    const before = readFileSync(indexFile());
    const outcome = await pagegateOn(place, 'refresh', place.drop(name, spec));
    expect(outcome.json.error).toMatch(code);
    expect(outcome.code).toBe(exit);
    expect(currentGeneration(place.store)).toBe(1);
    expect(readFileSync(indexFile()).equals(before)).toBe(true);
    expect(listLitter(place.store)).toEqual([]);
  });

  test('a manifest that was changed after signing', async () => {
    const drop = place.drop('forged', { revision: 6 });
    const text = readFileSync(join(drop, 'manifest.json'), 'utf8');
    writeFileSync(join(drop, 'manifest.json'), text.replace('"complete"', '"partial"'));
    expect(await pagegateOn(place, 'refresh', drop)).toMatchObject({
      code: EXIT.refused,
      json: { error: 'drop_signature_invalid' },
    });
    expect(await pagegateOn(place, 'drop', 'verify', drop)).toMatchObject({
      json: { error: 'drop_signature_invalid' },
    });
    expect(currentGeneration(place.store)).toBe(1);
  });

  // Only root can mount a small file system. The builder's own failures are tested elsewhere.
  test.runIf(process.getuid?.() === 0)('no space', async () => {
    const small = createInstallation();
    const { state } = small;
    try {
      const license = readFileSync(join(state, 'license/license.json'));
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', state], { stdio: 'pipe' });
      execFileSync('mkdir', ['-p', join(state, 'license')]);
      writeFileSync(join(state, 'license/license.json'), license);
    } catch {
      small.remove();
      return; // This machine does not let root mount.
    }
    try {
      const outcome = await pagegateOn(small, 'refresh', small.drop('r1', { revision: 1 }));
      expect(outcome).toMatchObject({ code: EXIT.environment, json: { error: 'build_no_space' } });
      expect(currentGeneration(small.store)).toBeUndefined();
      expect(listLitter(small.store)).toEqual([]);
    } finally {
      execFileSync('umount', [state]);
      small.remove();
    }
  });
});

test('a newer drop is served, its index is read-only, and rollback works in both directions', async () => {
  const drop = place.drop('r6', { revision: 6 });
  expect((await pagegateOn(place, 'refresh', drop)).json).toMatchObject({
    outcome: 'activated',
    revision: 6,
    signed_by: 'vendor',
  });
  expect(servedPage()).toBe(pageOf(domainOf(7), 6));
  expect(statSync(indexFile()).mode & 0o222).toBe(0);
  expect((await pagegateOn(place, 'refresh', drop)).json).toMatchObject({ outcome: 'unchanged' });
  expect((await pagegateOn(place, 'rollback')).json).toMatchObject({ outcome: 'activated', revision: 5 });
  expect(servedPage()).toBe(pageOf(domainOf(7), 5));
  expect(await pagegateOn(place, 'refresh', drop)).toMatchObject({
    code: 0,
    json: { outcome: 'unchanged', revision: 5, withdrawn: { revision: 6 } },
  });
  const { generation } = listGenerations(place.store).at(-1)!;
  expect((await pagegateOn(place, 'rollback', '--to', String(generation))).json).toMatchObject({ revision: 6 });
  expect((await pagegateOn(place, 'generations', 'list')).json.generations).toMatchObject([
    { revision: 5, state: 'kept' },
    { revision: 6, state: 'served' },
  ]);
});

test('a rollback to a damaged generation is refused', async () => {
  const served = currentGeneration(place.store)!;
  const other = listGenerations(place.store).find((one) => !one.current)!;
  const bytes = readFileSync(other.indexFile);
  bytes[bytes.length >> 1]! ^= 1;
  rmSync(other.indexFile);
  writeFileSync(other.indexFile, bytes, { mode: 0o444 });
  const outcome = await pagegateOn(place, 'rollback', '--to', String(other.generation));
  expect(outcome.json.error).toMatch(/^(generation_damaged|index_corrupt)$/);
  expect(outcome.code).toBe(EXIT.corrupt);
  expect(currentGeneration(place.store)).toBe(served);
});

describe('doctor', () => {
  const statusOf = (json: Report, id: string) => json.checks?.find((check) => check.id === id);

  test('finds nothing wrong with an intact installation', async () => {
    const { state } = place;
    const keyFile = join(state, 'keys/ledger.key');
    const ledger = await openLedger({ file: join(state, 'ledger/ledger.sqlite'), keyFile, actor: 'test' });
    await ledger.createAccount('one');
    await ledger.close();
    const { code, json } = await pagegateOn(place, 'doctor');
    expect(json.checks?.filter((check) => check.status === 'problem')).toEqual([]);
    expect(code).toBe(0);
    for (const id of [
      'permissions',
      'policy',
      'ledger',
      'configuration',
      'platform',
      'transport',
      'mapping',
      'index',
      'versions',
      'license',
      'drop_keys',
    ]) {
      expect(statusOf(json, id)).toMatchObject({ status: 'ok' });
    }
  });

  test('reports for each fault what it is and what to do', async () => {
    const bad = createInstallation({ config: { tls: { certificate_file: 'none.pem', key_file: 'none.key' } } });
    writeFileSync(join(bad.state, 'license/license.json'), '{}');
    chmodSync(bad.state, 0o777);
    const { code, json } = await pagegateOn(bad, 'doctor');
    expect(code).toBe(EXIT.environment);
    expect(json.ok).toBe(false);
    for (const id of ['permissions', 'certificate', 'index', 'license']) {
      expect(statusOf(json, id)).toMatchObject({ status: 'problem', advice: expect.stringMatching(/.{20}/) });
    }
    for (const { status, advice } of json.checks ?? []) {
      if (status === 'warning' || status === 'problem') expect(advice).toMatch(/.{15}/);
    }
    bad.remove();
  });

  test('reports an invalid index file and an invalid configuration', async () => {
    const bad = createInstallation();
    await pagegateOn(bad, 'refresh', bad.drop('r1', { revision: 1 }));
    const file = join(bad.store, 'current/index.pgx');
    chmodSync(file, 0o644);
    truncateSync(file, 100);
    chmodSync(file, 0o444);
    expect(statusOf((await pagegateOn(bad, 'doctor')).json, 'index')).toMatchObject({ status: 'problem' });
    writeFileSync(bad.configFile, '{"no_such_setting": 1}');
    const { json } = await pagegateOn(bad, 'doctor');
    expect(json.checks).toMatchObject([{ id: 'configuration', status: 'problem' }]);
    bad.remove();
  });
});

test.runIf(spawnSync('openssl', ['version']).status === 0)(
  'the vendor signs, and other tools can verify the signature',
  async () => {
    const key = join(place.root, 'drops');
    expect((await run(PAGEGATE, ['license', 'keygen', '--out', key])).stderr).toBe('');
    const drop = place.drop('vendor', { revision: 50 });
    const privateKey = `${key}.private.pem`;
    await run(PAGEGATE, ['drop', 'sign', drop, '--key', privateKey]);
    // It is not the key that the installation trusts. As an additional signature it does no harm.
    expect((await pagegateOn(place, 'drop', 'verify', drop)).json.error).toBe('drop_signature_invalid');
    const raw = join(place.root, 'signature');
    writeFileSync(raw, Buffer.from(readFileSync(join(drop, 'manifest.json.sig'), 'latin1'), 'base64'));
    const files = ['-in', join(drop, 'manifest.json'), '-sigfile', raw];
    const checked = spawnSync('openssl', [
      'pkeyutl',
      '-verify',
      '-pubin',
      '-inkey',
      `${key}.public.pem`,
      '-rawin',
      ...files,
    ]);
    expect(checked.stdout.toString()).toContain('Verified Successfully');
    const damaged = place.drop('damaged', { revision: 51, damage: (part) => part.subarray(1) });
    const refused = run(PAGEGATE, ['drop', 'sign', damaged, '--key', privateKey]);
    await expect(refused).rejects.toMatchObject({ code: EXIT.bad_input });
  },
);

test('a refresh is in the audit if it changed what is served', async () => {
  const config = loadConfig({ env: {}, file: place.configFile });
  const drop = place.drop('audited', { revision: 60 });
  const outcomeOf = async (): Promise<string> =>
    (await refreshFrom(config, { drop, actor: 'somebody' }, { update: () => {} })).report.outcome;
  expect([await outcomeOf(), await outcomeOf()]).toEqual(['activated', 'unchanged']);
  const file = join(place.state, 'ledger/ledger.sqlite');
  const ledger = await openLedger({ file, keyFile: join(place.state, 'keys/ledger.key') });
  const lines = await readAudit(ledger, undefined, 100);
  await ledger.close();
  const { generation } = listGenerations(place.store).at(-1)!;
  expect(lines.filter(({ actor }) => actor === 'somebody')).toEqual([
    expect.objectContaining({ action: 'generation.refresh', after: JSON.stringify({ generation, revision: 60 }) }),
  ]);
});

test('a change that cannot be written to the audit causes a warning', async () => {
  const own = createInstallation();
  try {
    await pagegateOn(own, 'refresh', own.drop('r1', { revision: 1, domains: 4 }));
    mkdirSync(join(own.state, 'ledger'));
    writeFileSync(join(own.state, 'ledger/ledger.sqlite'), 'This is no ledger.');
    const warning = expect.stringMatching(/^The audit has no line of it: /) as string;
    const auditWarning = expect.stringMatching(/^Warning: The audit has no line of it: [^\n]*\n$/) as string;
    const refreshed = await pagegateOn(own, 'refresh', own.drop('r2', { revision: 2, domains: 4 }));
    expect(refreshed).toMatchObject({ code: 0, stderr: auditWarning, json: { generation: 2, warnings: [warning] } });
    expect(await pagegateOn(own, 'rollback')).toMatchObject({ code: 0, stderr: auditWarning, json: { generation: 1 } });
  } finally {
    own.remove();
  }
});

test('prune removes the leftovers of an interrupted refresh, and old generations', async () => {
  execFileSync('mkdir', ['-p', join(place.store, 'generations/.building-99/temp')]);
  execFileSync('ln', ['-s', 'generations/99', join(place.store, '.current-123')]);
  const { json } = await pagegateOn(place, 'prune', '--keep', '1');
  expect(json.removed_litter).toHaveLength(2);
  expect(listGenerations(place.store)).toMatchObject([{ current: true }]);
  expect(listLitter(place.store)).toEqual([]);
});

test('a drop without records is refused, and one with far fewer is served with a warning', async () => {
  const own = createInstallation();
  try {
    const first = await pagegateOn(own, 'refresh', own.drop('r1', { revision: 1, domains: 20 }));
    const wholly = { rejects: {}, rejects_file: null };
    expect(first).toMatchObject({ code: 0, stderr: '', json: { previous_records: null, warnings: [], ...wholly } });
    const nothing = own.drop('r2', { revision: 2, domains: 0 });
    expect(await pagegateOn(own, 'refresh', nothing)).toMatchObject({
      code: EXIT.refused,
      json: { error: 'drop_empty', message: expect.stringContaining('Its manifest lists 0 lines.') },
    });
    expect(listGenerations(own.store)).toMatchObject([{ generation: 1, current: true }]);
    const half = await pagegateOn(own, 'refresh', own.drop('r3', { revision: 3, domains: 10 }));
    expect(half).toMatchObject({ code: 0, stderr: '', json: { previous_records: 20, warnings: [] } });
    const few = await pagegateOn(own, 'refresh', own.drop('r4', { revision: 4, domains: 4 }));
    const warning = `the index has 4 records, the one before had 10. If the vendor did not mean that: pagegate rollback --to 2`;
    expect(few).toMatchObject({ code: 0, stderr: `Warning: ${warning}\n`, json: { warnings: [warning] } });
    const one = await pagegateOn(own, 'refresh', own.drop('r5', { revision: 5, domains: 1 }), '--keep', '1');
    expect(one.stderr).toContain('pagegate refresh OLDER-DROP --rollback');
  } finally {
    own.remove();
  }
});

test('prune and rollback create nothing if there is no index store', async () => {
  const nowhere = join(place.root, 'nowhere');
  const words = ['--config', place.configFile, '--state-dir', nowhere];
  const { stdout } = await pagegateHere(['prune', ...words]);
  expect(stdout).toBe(`There is no index store ${join(nowhere, 'index')}; nothing was removed.\n`);
  expect(await pagegateOn(place, 'prune', '--state-dir', nowhere)).toMatchObject({
    code: 0,
    json: { removed_generations: [], removed_litter: [] },
  });
  const errorOf = async (...words: string[]) => (await pagegateOn(place, ...words, '--state-dir', nowhere)).json.error;
  expect(await errorOf('rollback')).toBe('nothing_to_roll_back');
  expect(await errorOf('rollback', '--to', '3')).toBe('generation_missing');
  expect(existsSync(nowhere)).toBe(false);
});

test('the reports show what a build left out, and whether the generation before a rollback is kept', async () => {
  const own = createInstallation();
  try {
    const text = async (...words: string[]): Promise<string> =>
      (await pagegateHere([...words, '--config', own.configFile])).stdout;
    const elsewhere = () => ({ login: 'https://elsewhere.example.net/login' });
    expect(await text('refresh', own.drop('r1', { revision: 1 }))).not.toContain('Left out');
    const drop = own.drop('r2', { revision: 2, pages: elsewhere });
    expect(await text('refresh', drop)).toContain(
      `Left out of it: 200 rejects (page_off_domain 200); see ${join(own.store, 'generations/2/rejects.ndjson')}.\n`,
    );
    expect(await text('rollback')).toContain('Now serving generation 1, revision 1 (before: generation 2).');
    expect(await text('rollback', '--to', '1')).toContain('Already serving generation 1, revision 1.');
    expect(await text('refresh', drop)).toContain('pagegate rollback --to 2, or pagegate refresh DROP --rollback.');
    await text('prune', '--keep', '1');
    const again = await text('refresh', drop);
    expect(again).toContain('on purpose: pagegate refresh DROP --rollback.');
    expect((await pagegateOn(own, 'refresh', drop)).json).toMatchObject({ withdrawn_is_kept: false, rejects: {} });
  } finally {
    own.remove();
  }
});
