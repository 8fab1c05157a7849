import { generateKeyPairSync, hash } from 'node:crypto';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { type RefreshOptions, type RefreshSteps, refresh } from '../../src/refresh/refresh.ts';
import { currentGeneration, listGenerations, listLitter } from '../../src/refresh/store.ts';
import { type Bench, codeOf, createBench, fakeSteps, PART } from './support.ts';

let bench: Bench;
beforeEach(() => {
  bench = createBench();
});
afterEach(() => bench.remove());

describe('a refresh', () => {
  test('builds, verifies, activates, notifies the server and reports', async () => {
    const steps = fakeSteps();
    const report = await refresh(bench.options(bench.drop('a', { revision: 7 })), steps);
    expect(report).toMatchObject({
      outcome: 'activated',
      generation: 1,
      dataset: 'test',
      revision: 7,
      signedBy: 'vendor',
      reused: false,
      previousGeneration: null,
      notice: { server: 'told' },
    });
    expect(currentGeneration(bench.store)).toBe(1);
    expect(steps.notified).toEqual([1]);
    expect(readdirSync(join(bench.store, 'generations', '1')).sort()).toEqual([
      'index.pgx',
      'manifest.json',
      'manifest.json.sig',
      'report.json',
    ]);
    expect(listLitter(bench.store)).toEqual([]);
  });

  test('of the served drop changes nothing', async () => {
    const drop = bench.drop('a');
    await refresh(bench.options(drop), fakeSteps());
    const steps = fakeSteps({ build: () => Promise.reject(new Error('built twice')) });
    const again = await refresh(bench.options(drop), steps);
    expect(steps.notified).toEqual([]);
    expect(again).toMatchObject({ outcome: 'unchanged', generation: 1 });
  });

  test('of the served drop builds again on request', async () => {
    const drop = bench.drop('a');
    await refresh(bench.options(drop), fakeSteps());
    const again = await refresh(bench.options(drop, { rebuild: true }), fakeSteps());
    expect(again).toMatchObject({ outcome: 'activated', generation: 2, reused: false, previousGeneration: 1 });
    expect(currentGeneration(bench.store)).toBe(2);
  });

  test('of the served drop builds again if the program cannot read the served index', async () => {
    const drop = bench.drop('a');
    await refresh(bench.options(drop), fakeSteps());
    const { identify } = fakeSteps();
    const steps = fakeSteps({
      identify: (file) => {
        if (file.includes('/generations/1/')) throw new PagegateError('index_older_version', 'Format 1.0.');
        return identify(file);
      },
    });
    const again = await refresh(bench.options(drop), steps);
    expect(again).toMatchObject({ outcome: 'activated', generation: 2, reused: false, previousGeneration: 1 });
    expect(steps.notified).toEqual([2]);
    expect(await refresh(bench.options(drop), steps)).toMatchObject({ outcome: 'unchanged', generation: 2 });
  });

  test.each(['lost', 'damaged'])(
    'of the served drop builds again if the report of its generation is %s',
    async (how) => {
      const drop = bench.drop('a', { revision: 2 });
      await refresh(bench.options(bench.drop('before', { revision: 1 })), fakeSteps());
      await refresh(bench.options(drop), fakeSteps());
      const report = join(bench.store, 'generations/2/report.json');
      rmSync(report);
      if (how === 'damaged') writeFileSync(report, '{');
      expect(await refresh(bench.options(drop), fakeSteps())).toMatchObject({ outcome: 'activated', generation: 3 });
      expect(await refresh(bench.options(drop), fakeSteps())).toMatchObject({ outcome: 'unchanged', generation: 3 });
    },
  );

  test('depends on the served index, not on the report of one that it replaced', async () => {
    const drop = bench.drop('a', { revision: 3 });
    await refresh(bench.options(bench.drop('before', { revision: 2 })), fakeSteps());
    await refresh(bench.options(drop), fakeSteps());
    const [other, served] = ['1', '2'].map((number) => join(bench.store, 'generations', number, 'index.pgx'));
    renameSync(other!, served!);
    const between = bench.options(bench.drop('older', { revision: 1 }));
    expect(await codeOf(refresh(between, fakeSteps()))).toBe('drop_older_revision');
    expect(await refresh(bench.options(drop), fakeSteps())).toMatchObject({
      outcome: 'activated',
      generation: 3,
      previousGeneration: 2,
    });
    expect(listGenerations(bench.store).map((one) => one.generation)).toEqual([1, 2, 3]);
  });

  test('keeps the last N generations, including the served one', async () => {
    for (const revision of [1, 2, 3, 4, 5]) {
      await refresh(bench.options(bench.drop(`r${revision}`, { revision }), { keep: 3 }), fakeSteps());
    }
    expect(listGenerations(bench.store).map((one) => one.generation)).toEqual([3, 4, 5]);
    expect(currentGeneration(bench.store)).toBe(5);
  });

  test('that was killed after the build reuses the finished generation', async () => {
    await refresh(bench.options(bench.drop('a')), fakeSteps());
    const drop = bench.drop('b', { revision: 2 });
    await refresh(bench.options(drop), fakeSteps());
    // The state after a kill between numbering and switching: generation 2 is complete, generation 1 is served.
    rmSync(join(bench.store, 'current'));
    symlinkSync('generations/1', join(bench.store, 'current'));
    const steps = fakeSteps({ build: () => Promise.reject(new Error('built again')) });
    expect(await refresh(bench.options(drop), steps)).toMatchObject({
      generation: 2,
      reused: true,
      previousGeneration: 1,
    });
    expect(currentGeneration(bench.store)).toBe(2);
  });

  test.each([
    ['damaged', 'not an index'],
    [
      'of another drop',
      JSON.stringify({ dataset: 'test', revision: 9, manifestSha256: 'a'.repeat(64), recordCount: 2 }),
    ],
  ])('builds again if the index of the finished generation is %s', async (_what, index) => {
    await refresh(bench.options(bench.drop('a')), fakeSteps());
    const drop = bench.drop('b', { revision: 2 });
    await refresh(bench.options(drop), fakeSteps());
    rmSync(join(bench.store, 'current'));
    symlinkSync('generations/1', join(bench.store, 'current'));
    rmSync(join(bench.store, 'generations/2/index.pgx'));
    writeFileSync(join(bench.store, 'generations/2/index.pgx'), index);
    expect(await refresh(bench.options(drop), fakeSteps())).toMatchObject({ outcome: 'activated', reused: false });
    expect(JSON.parse(readFileSync(join(bench.store, 'current/index.pgx'), 'utf8'))).toMatchObject({ revision: 2 });
    expect(listGenerations(bench.store).map((one) => one.generation)).toEqual([1, 3]);
  });

  test('that is interrupted during verification keeps the finished generation', async () => {
    await refresh(bench.options(bench.drop('a')), fakeSteps());
    const drop = bench.drop('b', { revision: 2 });
    await refresh(bench.options(drop), fakeSteps());
    rmSync(join(bench.store, 'current'));
    symlinkSync('generations/1', join(bench.store, 'current'));
    const controller = new AbortController();
    const steps = fakeSteps({
      verify: async (_file, signal) => {
        controller.abort(new PagegateError('interrupted'));
        signal?.throwIfAborted();
        throw new Error('not interrupted');
      },
    });
    expect(await codeOf(refresh(bench.options(drop, { signal: controller.signal }), steps))).toBe('interrupted');
    expect(listGenerations(bench.store).map((one) => one.generation)).toEqual([1, 2]);
  });

  test('removes the unfinished files of an earlier one', async () => {
    mkdirSync(join(bench.store, 'generations/.building-7'), { recursive: true });
    writeFileSync(join(bench.store, 'withdrawn.json.4711.tmp'), '');
    symlinkSync('generations/7', join(bench.store, '.current-7'));
    await refresh(bench.options(bench.drop('a')), fakeSteps());
    expect(readdirSync(bench.store).sort()).toEqual(['current', 'generations', 'last-number', 'lock']);
    expect(readdirSync(join(bench.store, 'generations'))).toEqual(['1']);
  });

  test('accepts another dataset only with an option, with any revision', async () => {
    await refresh(bench.options(bench.drop('a', { revision: 5 })), fakeSteps());
    const other = bench.options(bench.drop('b', { revision: 1, dataset: 'other' }), { otherDataset: true });
    expect(await refresh(other, fakeSteps())).toMatchObject({ dataset: 'other', generation: 2 });
  });

  test('accepts an unsigned drop only with an option', async () => {
    const drop = bench.drop('a', { key: null });
    expect(await codeOf(refresh(bench.options(drop), fakeSteps()))).toBe('drop_unsigned');
    expect(await refresh(bench.options(drop, { unsigned: true }), fakeSteps())).toMatchObject({ signedBy: null });
  });

  test('with --unsigned still refuses an invalid signature', async () => {
    const drop = bench.drop('a', { key: generateKeyPairSync('ed25519').privateKey });
    expect(await codeOf(refresh(bench.options(drop, { unsigned: true }), fakeSteps()))).toBe('drop_signature_invalid');
  });

  test('reports a server that cannot be notified, and succeeds anyway', async () => {
    const steps = fakeSteps({ notifyServer: async () => ({ server: 'failed', reason: 'refused' }) });
    expect(await refresh(bench.options(bench.drop('a')), steps)).toMatchObject({ notice: { server: 'failed' } });
    expect(currentGeneration(bench.store)).toBe(1);
  });
});

interface Refusal {
  readonly name: string;
  readonly code: string;
  readonly options?: Partial<RefreshOptions>;
  readonly steps?: Partial<RefreshSteps>;
  /** Creates the bad drop. Served is revision 5 of dataset "test". */
  drop(bench: Bench): string;
}

const editManifest = (folder: string, edit: (manifest: Record<string, unknown>) => void, bench_: Bench): string => {
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  edit(manifest);
  return bench_.resign(folder, manifest);
};

/** A drop that is valid until it is damaged. */
const damaged =
  (damage: (folder: string, b: Bench) => void) =>
  (b: Bench): string => {
    const folder = b.drop('x', { revision: 6 });
    damage(folder, b);
    return folder;
  };

const REFUSALS: readonly Refusal[] = [
  {
    name: 'bad signature: manifest changed after signing',
    code: 'drop_signature_invalid',
    drop: damaged((folder) => {
      const text = readFileSync(join(folder, 'manifest.json'), 'utf8');
      writeFileSync(join(folder, 'manifest.json'), text.replace('"revision":6', '"revision":9'));
    }),
  },
  {
    name: 'bad signature: signed by another key',
    code: 'drop_signature_invalid',
    drop: (b) => b.drop('x', { revision: 6, key: generateKeyPairSync('ed25519').privateKey }),
  },
  {
    name: 'bad signature: not a signature file',
    code: 'drop_signature_invalid',
    drop: damaged((folder) => {
      writeFileSync(join(folder, 'manifest.json.sig'), 'yes, really signed\n');
    }),
  },
  { name: 'no signature', code: 'drop_unsigned', drop: (b) => b.drop('x', { revision: 6, key: null }) },
  { name: 'no trusted key', code: 'no_trusted_keys', options: { trustedKeys: [] }, drop: (b) => b.drop('x') },
  {
    name: 'older revision',
    code: 'drop_older_revision',
    drop: (b) => b.drop('x', { revision: 4 }),
  },
  {
    name: 'same revision with other content',
    code: 'drop_older_revision',
    drop: (b) => b.drop('x', { revision: 5, parts: { 'other.ndjson.gz': PART } }),
  },
  { name: 'another dataset', code: 'drop_other_dataset', drop: (b) => b.drop('x', { revision: 6, dataset: 'other' }) },
  {
    name: 'outside the license',
    code: 'license_not_entitled',
    steps: {
      assertEntitled: () => {
        throw new PagegateError('license_not_entitled');
      },
    },
    drop: (b) => b.drop('x', { revision: 6 }),
  },
  {
    name: 'wrong vocabulary',
    code: 'drop_vocabulary',
    drop: (b) => b.drop('x', { revision: 6, vocabularyVersion: 9999 }),
  },
  { name: 'a delta drop', code: 'drop_kind', drop: (b) => b.drop('x', { revision: 6, kind: 'delta' }) },
  {
    name: 'truncated part',
    code: 'drop_part_size',
    drop: damaged((folder) => {
      truncateSync(join(folder, 'part-0.ndjson.gz'), PART.length - 3);
    }),
  },
  {
    name: 'missing part',
    code: 'drop_part_missing',
    drop: damaged((folder) => {
      rmSync(join(folder, 'part-0.ndjson.gz'));
    }),
  },
  {
    name: 'a part that is a link',
    code: 'drop_file_kind',
    drop: damaged((folder, b) => {
      rmSync(join(folder, 'part-0.ndjson.gz'));
      writeFileSync(join(b.root, 'outside'), PART);
      symlinkSync(join(b.root, 'outside'), join(folder, 'part-0.ndjson.gz'));
    }),
  },
  {
    name: 'a manifest that is a link',
    code: 'drop_file_kind',
    drop: damaged((folder, b) => {
      writeFileSync(join(b.root, 'elsewhere.json'), readFileSync(join(folder, 'manifest.json')));
      rmSync(join(folder, 'manifest.json'));
      symlinkSync(join(b.root, 'elsewhere.json'), join(folder, 'manifest.json'));
    }),
  },
  ...['../part-0.ndjson.gz', '/etc/passwd', 'a/b', '..', '.hidden', '', 'x\u0000y', 'a\\b'].map(
    (name): Refusal => ({
      name: `the part name ${JSON.stringify(name)}`,
      code: 'manifest_invalid',
      drop: (b) =>
        editManifest(
          b.drop('x', { revision: 6 }),
          (manifest) => {
            manifest['files'] = [{ name, bytes: 1, records: 1, sha256: hash('sha256', 'x') }];
          },
          b,
        ),
    }),
  ),
  {
    name: 'a part listed twice',
    code: 'drop_file_name',
    drop: (b) =>
      editManifest(
        b.drop('x', { revision: 6 }),
        (manifest) => {
          const files = manifest['files'] as unknown[];
          manifest['files'] = [...files, ...files];
        },
        b,
      ),
  },
  {
    name: 'no space (the builder meets a full disk)',
    code: 'build_no_space',
    steps: {
      build: () =>
        Promise.reject(
          Object.assign(new Error('no space left on device, write'), { code: 'ENOSPC', syscall: 'write' }),
        ),
    },
    drop: (b) => b.drop('x', { revision: 6 }),
  },
  {
    name: 'an index that verification refuses',
    code: 'generation_damaged',
    steps: {
      build: async ({ out }) => {
        writeFileSync(out, '{');
      },
    },
    drop: (b) => b.drop('x', { revision: 6 }),
  },
  {
    name: 'a drop whose lines are all left out',
    code: 'drop_empty',
    steps: {
      build: async ({ out, drop }) => {
        const manifestSha256 = hash('sha256', readFileSync(join(drop, 'manifest.json')));
        writeFileSync(out, JSON.stringify({ manifestSha256, recordCount: 0, sizeBytes: 1 }));
        return { rejects: { domain_missing: 2 } };
      },
    },
    drop: (b) => b.drop('x', { revision: 6 }),
  },
  {
    name: 'a drop that changed while it was read',
    code: 'drop_changed',
    steps: {
      build: async ({ out }) => {
        writeFileSync(
          out,
          JSON.stringify({ manifestSha256: hash('sha256', 'another manifest'), recordCount: 2, sizeBytes: 1 }),
        );
      },
    },
    drop: (b) => b.drop('x', { revision: 6 }),
  },
  {
    name: 'another drop than the one that was looked at',
    code: 'drop_changed',
    options: { manifestSha256: hash('sha256', 'another manifest') },
    drop: (b) => b.drop('x', { revision: 6 }),
  },
];

describe('a refusal does not change what is served', () => {
  test.each(REFUSALS)('$name: $code', async ({ code, options, steps, drop }) => {
    await refresh(bench.options(bench.drop('served', { revision: 5 })), fakeSteps());
    const before = readFileSync(join(bench.store, 'current/index.pgx'));
    const fake = fakeSteps(steps);
    expect(await codeOf(refresh(bench.options(drop(bench), options), fake))).toBe(code);
    expect(currentGeneration(bench.store)).toBe(1);
    expect(readFileSync(join(bench.store, 'current/index.pgx')).equals(before)).toBe(true);
    expect(listGenerations(bench.store).map((one) => one.generation)).toEqual([1]);
    expect(listLitter(bench.store)).toEqual([]);
    expect(fake.notified).toEqual([]);
  });
});

test('an index that was put in place manually still counts: an older drop is refused', async () => {
  await refresh(bench.options(bench.drop('served', { revision: 5 })), fakeSteps());
  rmSync(join(bench.store, 'generations/1/report.json'));
  const older = bench.options(bench.drop('older', { revision: 4 }));
  expect(await codeOf(refresh(older, fakeSteps()))).toBe('drop_older_revision');
  expect((await refresh(bench.options(bench.drop('newer', { revision: 6 })), fakeSteps())).generation).toBe(2);
});

test('a refresh that is interrupted during the build leaves nothing behind', async () => {
  await refresh(bench.options(bench.drop('served', { revision: 5 })), fakeSteps());
  const controller = new AbortController();
  const steps = fakeSteps({
    build: async ({ out, signal }) => {
      writeFileSync(out, '{');
      controller.abort(new PagegateError('interrupted'));
      signal?.throwIfAborted();
    },
  });
  const options = bench.options(bench.drop('next', { revision: 6 }), { signal: controller.signal });
  expect(await codeOf(refresh(options, steps))).toBe('interrupted');
  expect(currentGeneration(bench.store)).toBe(1);
  expect(listLitter(bench.store)).toEqual([]);
});
