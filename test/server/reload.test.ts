import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseTarget } from '../../src/domain/target.ts';
import { statedEvidence } from '../../src/policy/cases.ts';
import { explain } from '../../src/policy/explain.ts';
import { loadPolicy } from '../../src/policy/load.ts';
import { recordNames } from '../../src/record/names.ts';
import { type Answer, read, startTestServer, switchTo, type TestServer } from '../support/server.ts';

/** Generation n has language n, so that a mixed response is noticed. */
const LANGUAGES = ['aa', 'en', 'de', 'fr', 'it', 'es'];
const entries = (generation: number) =>
  Array.from({ length: 50 }, (_, i) => ({
    domain: `site-${i}.com`,
    language: LANGUAGES[generation]!,
    page_types: { docs: `https://site-${i}.com/generation-${generation}` },
  }));

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ entries: entries(1), config: { server: { poll_seconds: 3600 } } });
});
afterAll(() => server.stop());

const reasonOf = async (): Promise<string> => {
  const { body } = await read(await fetch(`${server.adminUrl}/status`));
  return body.workers[0]?.problems.index ?? '';
};
const generationOf = (answer: Answer): string => answer.headers.get('x-pagegate-data')!.split('.')[0]!;

describe('hot swap', () => {
  it('under load: every response comes completely from one generation', async () => {
    server.publish(2, entries(2));
    let isDone = false;
    const seen = new Map<string, number>();
    const load = Array.from({ length: 8 }, async (_, client) => {
      for (let i = 0; !isDone; i++) {
        const answer = await server.check(`?domain=site-${(client * 7 + i) % 50}.com`);
        const generation = generationOf(answer);
        expect(answer.status).toBe(200);
        expect(answer.body.language).toBe(LANGUAGES[Number(generation)]);
        expect(answer.body.page_types['docs']).toContain(`/generation-${generation}`);
        seen.set(generation, (seen.get(generation) ?? 0) + 1);
      }
    });
    for (let swap = 0; swap < 60; swap++) {
      switchTo(server.paths, (swap % 2) + 1);
      await server.server.reload();
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    isDone = true;
    await Promise.all(load);
    expect([...seen.keys()].sort()).toEqual(['1', '2']);
    const text = (await read(await fetch(`${server.adminUrl}/metrics`))).text;
    const mapped = readFileSync('/proc/self/maps', 'utf8').match(/ \/.*\/index\.pgx/g) ?? [];
    expect(new Set(mapped.filter((path) => path.includes(dirname(server.paths.indexDir)))).size).toBe(1);
    expect(text).toMatch(/^pagegate_swaps_total\{part="index",outcome="done"\} 60$/m);
  });

  it.each<[string, (folder: string) => void, RegExp]>([
    [
      'a file that is not an index',
      (folder) => writeFileSync(join(folder, 'index.pgx'), 'no index', { mode: 0o444 }),
      /index/i,
    ],
    ['an empty file', (folder) => writeFileSync(join(folder, 'index.pgx'), '', { mode: 0o444 }), /index/i],
    ['no file', () => {}, /no index file/],
    [
      'an index that others may write',
      (folder) => {
        server.publish(4, entries(4));
        chmodSync(join(folder, '..', '4', 'index.pgx'), 0o666);
        renameSync(join(folder, '..', '4', 'index.pgx'), join(folder, 'index.pgx'));
      },
      /can be changed by/,
    ],
  ])('refuses %s and keeps the old one', async (name, write, expected) => {
    switchTo(server.paths, 2);
    await server.server.reload();
    const number = 10 + name.length;
    const folder = join(server.paths.indexDir, 'generations', String(number));
    mkdirSync(folder);
    write(folder);
    switchTo(server.paths, number);
    expect(JSON.stringify(await server.server.reload())).toContain('refused');
    expect(await reasonOf()).toMatch(expected);
    const health = await read(await fetch(`${server.adminUrl}/readyz`));
    expect([health.status, health.text]).toEqual([200, expect.stringMatching(expected)]);
    const answer = await server.check('?domain=site-1.com');
    expect([answer.status, generationOf(answer)]).toEqual([200, '2']);
    switchTo(server.paths, 2);
    await server.server.reload();
    expect(await reasonOf()).toBe('');
  });

  it('refuses an index if the license is a pipe, and keeps the old one', async () => {
    const { licenseFile } = server.paths;
    server.publish(20, entries(3));
    renameSync(licenseFile, `${licenseFile}.kept`);
    execFileSync('mkfifo', [licenseFile]);
    try {
      expect(JSON.stringify(await server.server.reload())).toContain('refused');
      expect(await reasonOf()).toMatch(/license\.json: expected a regular file, got a pipe/);
      expect(generationOf(await server.check('?domain=site-1.com'))).toBe('2');
    } finally {
      renameSync(`${licenseFile}.kept`, licenseFile);
    }
    switchTo(server.paths, 2);
    await server.server.reload();
    expect(await reasonOf()).toBe('');
  });

  it('refuses an index outside the license, one of another dataset and one with another vocabulary', async () => {
    const { vocabulary } = recordNames('full');
    const wrong: [number, object, RegExp][] = [
      [41, { dataset: 'other' }, /it is for dataset "test", the index has "other"/],
      [42, { created: '2100-01-01T00:00:00Z' }, /this one was made 2100-01-01/],
      [
        43,
        { vocabulary: { ...vocabulary, version: 99 } },
        /was built with page-type vocabulary .* 99, this program has/,
      ],
      [
        44,
        { vocabulary: { ...vocabulary, name: 'mine' } },
        /was built with page-type vocabulary mine .*, this program has/,
      ],
    ];
    for (const [generation, metadata, reason] of wrong) {
      server.publish(generation, [{ domain: 'x.com' }], metadata);
      expect(JSON.stringify(await server.server.reload()), String(generation)).toContain('refused');
      expect(await reasonOf()).toMatch(reason);
      expect(generationOf(await server.check('?domain=site-1.com'))).toBe('2');
    }
    expect((await read(await fetch(`${server.adminUrl}/metrics`))).text).toMatch(
      /pagegate_swaps_total\{part="index",outcome="refused"\} \d/,
    );
  });
});

describe('without a reload', () => {
  it('the server notices a new generation, even if there was none before', async () => {
    const other = await startTestServer({ config: { server: { poll_seconds: 0.05 } } });
    try {
      const none = await other.check('?domain=site-1.com');
      expect([none.status, none.body.error, none.headers.get('retry-after')]).toEqual([503, 'no_index', '5']);
      expect((await read(await fetch(`${other.adminUrl}/readyz`))).status).toBe(503);
      other.publish(3, entries(3));
      await expect.poll(async () => (await other.check('?domain=site-1.com')).status).toBe(200);
      expect((await read(await fetch(`${other.adminUrl}/readyz`))).status).toBe(200);
    } finally {
      await other.stop();
    }
  });

  it('a policy can be replaced under load: every response fits the policy revision that it names, and a refused policy is never used', async () => {
    const file = join(server.paths.runDir, 'policy-load.json');
    const note = 'Our own entry, for people only.';
    const own = { id: 'mine', host: 'blocked.com', paths: ['/a'], note };
    const documents = [
      {
        add: { hosts: [{ ...own, verdict: 'deny' }] },
        allow: [{ id: 'api', host: 'blocked.com', path: '/v1/', methods: ['POST'] }],
      },
      { add: { hosts: [{ ...own, verdict: 'flag' }] }, override: { rules: { login: { verdict: 'flag' } } } },
      { add: { hosts: [{ ...own, verdict: 'nonsense' }] } },
    ].map((document) => JSON.stringify({ format: 'pagegate-policy/1', ...document }));
    const put = (at: number): void => {
      writeFileSync(`${file}.new`, documents[at]!);
      renameSync(`${file}.new`, file);
    };
    const policies = [0, 1].map((at) => {
      put(at);
      return loadPolicy({ file });
    });
    const other = await startTestServer({
      entries: [{ domain: 'blocked.com' }],
      config: { policy: { file }, server: { poll_seconds: 3600 } },
    });
    const asked = [
      ['GET', 'https://blocked.com/a/b'],
      ['POST', 'https://blocked.com/v1/x'],
      ['POST', 'https://www.blocked.com/v1%2fx'],
      ['GET', 'https://blocked.com/login?next=/a'],
      ['GET', 'https://blocked.com/'],
    ] as const;
    try {
      let isDone = false;
      const seen = new Set<string>();
      const load = Array.from({ length: 4 }, async (_, client) => {
        for (let i = client; !isDone; i++) {
          const [method, url] = asked[i % asked.length]!;
          const answer = await other.check(`?method=${method}&url=${encodeURIComponent(url)}`);
          const revision = answer.headers.get('x-pagegate-data')!.split('.')[1]!;
          const policy = policies.find((one) => one.revision === revision)!;
          const target = parseTarget(url);
          if ('problem' in target) throw new Error(target.problem);
          const evidence = statedEvidence({ found: true });
          const { verdict } = explain(policy, { url: target.url, method }, evidence);
          const { layer, id, note: said } = verdict;
          expect(answer.body).toMatchObject({ verdict: verdict.verdict, matched: { layer, id, note: said } });
          seen.add(`${revision} ${verdict.verdict}`);
        }
      });
      for (let swap = 0; swap < 30; swap++) {
        put(swap % 3);
        await other.server.reload();
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      isDone = true;
      await Promise.all(load);
      expect(seen.size).toBeGreaterThanOrEqual(5);
      expect((await other.server.status()).workers).toMatchObject([{ problems: { policy: expect.any(String) } }]);
    } finally {
      await other.stop();
    }
  });

  it('the server notices a new policy file; an invalid one leaves the old policy in force', async () => {
    const file = join(server.paths.runDir, 'policy.json');
    const policy = (hosts: object[]) => JSON.stringify({ format: 'pagegate-policy/1', add: { hosts } });
    const own = { id: 'mine', group: 'own', host: 'blocked.com', verdict: 'deny', note: 'Our own entry.' };
    writeFileSync(file, policy([]));
    const other = await startTestServer({
      entries: [{ domain: 'blocked.com' }],
      config: { policy: { file }, server: { poll_seconds: 0.05 } },
    });
    const verdict = async () => (await other.check('?domain=blocked.com')).body.verdict;
    try {
      expect(await verdict()).toBe('allow');
      writeFileSync(file, policy([{ ...own, verdict: 'nonsense' }]));
      await expect
        .poll(async () => (await other.server.status()).workers)
        .toMatchObject([{ problems: { policy: expect.any(String) } }]);
      expect(await verdict()).toBe('allow');
      // A check of the index is also one of the policy: the same file is refused once.
      other.publish(2, [{ domain: 'blocked.com' }]);
      await expect.poll(async () => generationOf(await other.check('?domain=blocked.com'))).toBe('2');
      const { text } = await read(await fetch(`${other.adminUrl}/metrics`));
      expect(text).toMatch(/^pagegate_swaps_total\{part="policy",outcome="refused"\} 1$/m);
      writeFileSync(file, policy([own]));
      await expect.poll(verdict).toBe('deny');
      expect((await other.server.status()).workers).toMatchObject([{ problems: {} }]);
      rmSync(file);
      execFileSync('mkfifo', [file]);
      await expect
        .poll(async () => (await other.server.status()).workers)
        .toMatchObject([{ problems: { policy: expect.stringContaining('got a pipe') } }]);
      expect(await verdict()).toBe('deny');
    } finally {
      await other.stop();
    }
  });
});
