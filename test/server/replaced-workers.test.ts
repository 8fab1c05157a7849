/** A worker that replaces one that died serves the same data as the others, whatever happened to the files. */
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createCertificate } from '../../tools/certificate.ts';
import { putPem } from '../support/put-pem.ts';
import { read, startTestServer, switchTo, type TestServer } from '../support/server.ts';

let dir: string;
let server: TestServer;
const file = (name: string): string => join(dir, name);
const policy = (note: string) => {
  const own = { id: 'mine', group: 'own', host: 'blocked.com', verdict: 'deny', note };
  return JSON.stringify({ format: 'pagegate-policy/1', add: { hosts: [own] } });
};
const installCertificate = (name: string): void => {
  const { certificate, key } = createCertificate(name);
  putPem(file('cert.pem'), certificate);
  putPem(file('key.pem'), key);
};

const start = async ({ withTls = false, workers = 1 } = {}): Promise<void> => {
  installCertificate('first.test');
  writeFileSync(file('policy.json'), policy('Our first note.'));
  server = await startTestServer({
    entries: [{ domain: 'blocked.com', language: 'de' }],
    workers,
    config: {
      server: { poll_seconds: 0.2 },
      policy: { file: file('policy.json') },
      ...(withTls ? { tls: { certificate_file: file('cert.pem'), key_file: file('key.pem') } } : {}),
    },
  });
};
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'pagegate-replaced-'));
});
afterEach(async () => {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** Kills workers and waits for the same number of new ones. */
async function replace(pids: readonly number[]): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  await expect.poll(() => server.server.pids.filter((pid) => !pids.includes(pid)).length).toBe(pids.length);
}
const problems = async () => {
  const { workers } = await server.server.status();
  return workers.map((worker) => Object.keys((worker as { problems: object }).problems).sort());
};
const health = async () => (await read(await fetch(`${server.adminUrl}/readyz`))).status;
const answers = (count: number) =>
  Promise.all(
    Array.from({ length: count }, () =>
      server.check('?domain=blocked.com', { 'x-api-key': server.keys['pro']!, connection: 'close' }),
    ),
  );
const nameOnPort = () =>
  new Promise<string>((resolve, reject) => {
    const socket = connect({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false });
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
  });

describe('after the death of all workers', () => {
  it('the same data is still served, whatever happened to license, index and policy', async () => {
    await start({ workers: 2 });
    const [before] = await answers(1);
    expect(before!.body).toMatchObject({ language: 'de', matched: { id: 'mine' } });
    const license = readFileSync(server.paths.licenseFile);
    const kept = `${server.paths.indexDir}.kept`;
    const undo = {
      license: () => writeFileSync(server.paths.licenseFile, license),
      index: () => switchTo(server.paths, 1),
      removed: () => renameSync(kept, server.paths.indexDir),
      policy: () => writeFileSync(file('policy.json'), policy('Our first note.')),
    };
    const cases: readonly [string, () => void, 'index' | 'policy', () => void][] = [
      ['the license is gone', () => rmSync(server.paths.licenseFile), 'index', undo.license],
      ['the license does not cover it', () => server.publish(2, [], { dataset: 'x' }), 'index', undo.index],
      ['the generation was removed', () => renameSync(server.paths.indexDir, kept), 'index', undo.removed],
      ['the link points to nothing', () => breakLink(), 'index', undo.index],
      ['the policy file is broken', () => writeFileSync(file('policy.json'), '{'), 'policy', undo.policy],
      ['the policy file is gone', () => rmSync(file('policy.json')), 'policy', undo.policy],
    ];
    for (const [what, spoil, part, repair] of cases) {
      spoil();
      await server.server.reload();
      expect(await problems(), what).toEqual([[part], [part]]);
      await replace(server.server.pids);
      for (const { status, headers, body } of await answers(20)) {
        expect([what, status, body.language, body.matched.note]).toEqual([what, 200, 'de', 'Our first note.']);
        expect(headers.get('x-pagegate-data'), what).toBe(before!.headers.get('x-pagegate-data'));
      }
      expect(await problems(), what).toEqual([[part], [part]]);
      expect(await health(), what).toBe(200);
      repair();
      await server.server.reload();
      expect(await problems(), what).toEqual([[], []]);
    }
  });

  it('the certificate in use stays in use, whatever happened to its files', async () => {
    await start({ withTls: true });
    const cases: readonly [string, () => void][] = [
      ['the key may be read by everybody', () => chmodSync(file('key.pem'), 0o644)],
      ['the key does not fit', () => putPem(file('key.pem'), createCertificate('x').key)],
      ['the certificate is gone', () => rmSync(file('cert.pem'))],
    ];
    for (const [i, [what, spoil]] of cases.entries()) {
      installCertificate(`good-${i}.test`);
      await expect.poll(nameOnPort, { message: what }).toBe(`good-${i}.test`);
      await server.server.reload();
      spoil();
      await expect.poll(problems, { message: what }).toEqual([['certificate']]);
      await replace(server.server.pids);
      for (let n = 0; n < 10; n += 1) expect(await nameOnPort(), what).toBe(`good-${i}.test`);
      expect(await problems(), what).toEqual([['certificate']]);
      expect(await health(), what).toBe(200);
      installCertificate(`new-${i}.test`);
      await expect.poll(problems, { message: what }).toEqual([[]]);
      expect(await nameOnPort(), what).toBe(`new-${i}.test`);
    }
    expect((await read(await fetch(`${server.adminUrl}/metrics`))).text).toMatch(
      /^pagegate_certificate_expiry_seconds 2\d{6}/m,
    );
  });

  it('files that are valid again, or new, are used as usual', async () => {
    await start();
    rmSync(server.paths.licenseFile);
    writeFileSync(file('policy.json'), '{');
    await replace(server.server.pids);
    // The last known good data is also kept for the next replacement.
    await replace(server.server.pids);
    expect((await answers(4)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    writeFileSync(file('policy.json'), policy('Our second note.'));
    await expect
      .poll(async () => (await answers(8)).every(({ body }) => body.matched.note === 'Our second note.'))
      .toBe(true);
    expect((await answers(1))[0]!.body.language).toBe('de');
  });
});

/** Returns the open files of a process that are in the index store. */
const openIndexes = (pid: number): string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
      return target.startsWith(server.paths.indexDir) ? [target] : [];
    } catch {
      return [];
    }
  });

describe('a worker that replaces another', () => {
  it('does not listen without an index while the other worker has one, and health says why', async () => {
    await start({ workers: 2 });
    const [victim, other] = server.server.pids;
    // An index that others may change is not trusted, even if it was served before.
    chmodSync(join(server.paths.indexDir, 'generations/1/index.pgx'), 0o666);
    process.kill(victim!, 'SIGKILL');
    await expect
      .poll(async () => (await server.server.status()).warnings)
      .toEqual(expect.arrayContaining([expect.stringMatching(/^worker 0 cannot be started and is tried again: /)]));
    expect(server.server.pids).toEqual([other]);
    for (const { status } of await answers(40)) expect(status).toBe(200);
    chmodSync(join(server.paths.indexDir, 'generations/1/index.pgx'), 0o444);
    await expect.poll(() => server.server.pids.length).toBe(2);
    for (const { status } of await answers(40)) expect(status).toBe(200);
  });

  it('keeps no index open that is no longer served, and neither does the primary', async () => {
    await start();
    rmSync(server.paths.licenseFile);
    await replace(server.server.pids);
    expect(server.server.pids.map((pid) => openIndexes(pid).length)).toEqual([1]);
    expect(openIndexes(process.pid)).toEqual([join(server.paths.indexDir, 'generations/1/index.pgx')]);
  });

  it('does not go back to data before a newer generation', async () => {
    await start();
    await replace(server.server.pids);
    server.publish(2, [{ domain: 'blocked.com', language: 'fr' }]);
    await expect.poll(async () => (await answers(8)).every(({ body }) => body.language === 'fr')).toBe(true);
    const second = join(server.paths.indexDir, 'generations/2/index.pgx');
    for (const pid of [...server.server.pids, process.pid])
      await expect.poll(() => new Set(openIndexes(pid))).toEqual(new Set([second]));
  });
});

function breakLink(): void {
  rmSync(server.paths.currentLink);
  symlinkSync('generations/99', server.paths.currentLink);
}
