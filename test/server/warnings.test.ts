/** Warnings of health while lookups are answered: in /readyz, in the log, in metrics, and in the reply to a reload. */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { createLicenseKey, issueLicense } from '../../src/license/license.ts';
import { withdraw } from '../../src/refresh/withdrawn-drops.ts';
import { hostWarnings } from '../../src/server/admin/warnings.ts';
import { certificateWarnings } from '../../src/server/certificate-warnings.ts';
import { askServer } from '../../src/server/control-socket.ts';
import { readCertificate } from '../../src/server/read-certificate.ts';
import { createCertificate } from '../../tools/certificate.ts';
import { putPem } from '../support/put-pem.ts';
import { startTestServer, type TestServer, type TestServerOptions } from '../support/server.ts';

let server: TestServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

const ENTRIES = [{ domain: 'example.com' }];

async function start(options: TestServerOptions = {}): Promise<TestServer> {
  server = await startTestServer({ entries: ENTRIES, ...options });
  return server;
}

const folder = (): string => {
  const dir = mkdtempSync(join(tmpdir(), 'pagegate-warnings-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
};

async function readyz({ adminUrl }: TestServer): Promise<{ status: number; warnings: string[] }> {
  const response = await fetch(`${adminUrl}/readyz`);
  return { status: response.status, ...((await response.json()) as { warnings: string[] }) };
}

async function metric({ adminUrl }: TestServer, series: string): Promise<number | undefined> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`pagegate_${series} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

const logged = ({ log }: TestServer, event: string): Record<string, unknown>[] =>
  log.map((line) => JSON.parse(line) as Record<string, unknown>).filter((line) => line['event'] === event);

describe('the certificate', () => {
  const HALF_A_DAY_AGO = -0.5;
  const inDays = (days: number, names: readonly string[] = []): string[] =>
    certificateWarnings({ chain: createCertificate('x.test', days).certificate }, names, Date.now());

  it('expires with the first certificate of its chain that expires', () => {
    const [own, other] = [createCertificate('own.test', 30), createCertificate('other.test', 5)];
    const dir = folder();
    const files = [join(dir, 'cert.pem'), join(dir, 'key.pem')] as const;
    putPem(files[0], own.certificate + other.certificate);
    putPem(files[1], own.key);
    const { expiresMs } = readCertificate(...files);
    expect(expiresMs).toBe(Date.parse(new X509Certificate(other.certificate).validTo));
  });

  it('causes no warning if it is valid for its names', () => {
    expect(inDays(30, ['localhost', '127.0.0.1'])).toEqual([]);
  });

  it.each([
    ['has expired', HALF_A_DAY_AGO, [], /^the certificate expired at 20/],
    ['expires soon', 13.5, [], /^the certificate expires at 20\S+, in 13 days$/],
    [
      'is for other names',
      30,
      ['localhost', 'pagegate.internal', '10.1.2.3'],
      /, not for pagegate\.internal, 10\.1\.2\.3 /,
    ],
  ])('causes a warning: %s', (_name, days, names, expected) => {
    expect(inDays(days, names)).toEqual([expect.stringMatching(expected)]);
  });

  it('causes a warning if it is not valid yet', () => {
    const { certificate } = createCertificate('x.test', 30);
    const warnings = certificateWarnings({ chain: certificate }, [], Date.now() - 3 * 86_400_000);
    expect(warnings).toEqual([expect.stringMatching(/^the certificate is not valid before 20/)]);
  });

  it('causes a warning if its issuer in the chain has expired', () => {
    const chain = createCertificate('x.test', 30).certificate + createCertificate('Old CA', HALF_A_DAY_AGO).certificate;
    expect(certificateWarnings({ chain }, [], Date.now())).toEqual([
      expect.stringMatching(/^the chain's certificate "CN=Old CA" expired at 20/),
    ]);
  });

  it('is reported as expired by start, /readyz, status, metrics and reload, until it is renewed', async () => {
    const dir = folder();
    const tls = { certificate_file: join(dir, 'cert.pem'), key_file: join(dir, 'key.pem') };
    const install = (days: number): void => {
      const { certificate, key } = createCertificate('x.test', days);
      putPem(tls.certificate_file, certificate);
      putPem(tls.key_file, key);
    };
    install(HALF_A_DAY_AGO);
    const { paths, ...running } = await start({ config: { tls } });
    const expired = expect.stringMatching(/^the certificate expired at 20/);
    expect(logged(running as TestServer, 'warning')).toMatchObject([
      { level: 'warn', kind: 'certificate', warning: expired },
    ]);
    expect(await readyz(server!)).toMatchObject({ status: 200, warnings: [expired] });
    expect(await metric(server!, 'warnings{kind="certificate"}')).toBe(1);
    expect(await metric(server!, 'certificate_expiry_seconds')).toBeLessThan(0);
    expect(await askServer(paths.socket, 'reload')).toMatchObject({ warnings: [expired] });
    install(30);
    expect(await askServer(paths.socket, 'reload')).toMatchObject({ warnings: [] });
    await expect
      .poll(() => logged(server!, 'warning_ended'))
      .toMatchObject([{ kind: 'certificate', warning: expired }]);
    expect(await metric(server!, 'warnings{kind="certificate"}')).toBe(0);
    expect(await metric(server!, 'certificate_expiry_seconds')).toBeGreaterThan(29 * 86_400);
  });

  it('causes a warning if it is for another name than clients use', async () => {
    const dir = folder();
    const tls = {
      certificate_file: join(dir, 'cert.pem'),
      key_file: join(dir, 'key.pem'),
      names: ['pagegate.internal'],
    };
    const { certificate, key } = createCertificate('x.test');
    putPem(tls.certificate_file, certificate);
    putPem(tls.key_file, key);
    await start({ config: { tls } });
    const other = expect.stringMatching(
      /^the certificate is for .*localhost.*, not for pagegate\.internal \(tls\.names\)$/,
    );
    expect(await readyz(server!)).toMatchObject({ status: 200, warnings: [other] });
  });
});

describe('data', () => {
  const day = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

  it('causes a warning and a metric for a license that ends soon or has ended', async () => {
    const vendor = createLicenseKey();
    const { paths, adminUrl } = await start({
      config: { license: { trusted_keys: { vendor: vendor.publicKey } }, server: { poll_seconds: 0.1 } },
    });
    // The license that the test server installs is signed by another key.
    expect((await readyz(server!)).warnings).toContainEqual(expect.stringMatching(/license/));
    const license = (until: string): void => {
      const entitlement = { kind: 'refreshes_until', until } as const;
      const terms = { licensee: 'Test', dataset: 'test', entitlement };
      writeFileSync(paths.licenseFile, issueLicense(terms, vendor.privateKey, 'vendor'));
    };
    license(day(10));
    await expect
      .poll(() => readyz(server!))
      .toMatchObject({
        warnings: expect.arrayContaining([expect.stringMatching(/^the license ends with \S+, in 10 days$/)]),
      });
    expect(await metric(server!, 'license_expiry_seconds')).toBeGreaterThan(9 * 86_400);
    license(day(-3));
    await expect
      .poll(() => readyz(server!))
      .toMatchObject({
        warnings: expect.arrayContaining([expect.stringMatching(/^the license ended with /)]),
      });
    expect(await metric(server!, 'license_expiry_seconds')).toBeLessThan(0);
    expect(adminUrl).toMatch(/^http/);
  });

  it('causes a warning if the license does not cover the served index: the next start would serve nothing', async () => {
    const { privateKey, publicKey } = createLicenseKey();
    const { paths } = await start({
      config: { license: { trusted_keys: { vendor: publicKey } }, server: { poll_seconds: 0.1 } },
    });
    const license = (dataset: string, until: string): void => {
      const terms = { licensee: 'Test', dataset, entitlement: { kind: 'refreshes_until', until } as const };
      writeFileSync(paths.licenseFile, issueLicense(terms, privateKey, 'vendor'));
    };
    const warned = (why: string) =>
      expect
        .poll(async () => (await readyz(server!)).warnings)
        .toContainEqual(
          expect.stringMatching(
            `^the server continues with its index, but after a start it would serve nothing: .*${why}.*(?<!\\.)$`,
          ),
        );
    license('test', day(100));
    await expect.poll(() => readyz(server!)).toMatchObject({ status: 200, warnings: [] });
    license('other', day(100));
    await warned('it is for dataset "other", the index has "test"');
    license('test', '2001-01-01');
    await warned('it covers drops made up to 2001-01-01, this one was made');
    rmSync(paths.licenseFile);
    await warned('No license is installed; .*/license.json');
  });

  it('causes a warning that nothing is served, not that something goes on, if the server starts without a trusted license', async () => {
    const { publicKey } = createLicenseKey();
    const { log } = await start({ config: { license: { trusted_keys: { vendor: publicKey } } } });
    expect((await readyz(server!)).warnings).toContainEqual(expect.stringMatching(/^no index is served: .*license/));
    expect(log.join()).not.toContain('goes on');
  });

  it('ends the warnings about license and index when a trusted key is put back', async () => {
    const vendor = createLicenseKey();
    const keyFile = join(folder(), 'vendor.public.pem');
    const { paths } = await start({
      config: { license: { trusted_keys: { vendor: keyFile } }, server: { poll_seconds: 0.1 } },
    });
    const entitlement = { kind: 'refreshes_until', until: day(300) } as const;
    const terms = { licensee: 'Test', dataset: 'test', entitlement };
    writeFileSync(paths.licenseFile, issueLicense(terms, vendor.privateKey, 'vendor'));
    const isAway = expect.stringContaining(keyFile);
    expect(await askServer(paths.socket, 'reload')).toMatchObject({ warnings: [isAway, isAway] });
    writeFileSync(keyFile, vendor.publicKey);
    await expect.poll(() => readyz(server!)).toMatchObject({ warnings: [] });
  });

  it('causes a warning after a rollback until a newer drop is served', async () => {
    const { paths, publish } = await start({ config: { server: { poll_seconds: 0.1 } } });
    expect((await readyz(server!)).warnings).toEqual([]);
    const mark = { manifestSha256: 'ab'.repeat(32), generation: 2, revision: 9, withdrawnAt: '2026-01-01T00:00:00Z' };
    withdraw(paths.indexDir, mark);
    await expect
      .poll(() => readyz(server!))
      .toMatchObject({
        warnings: [expect.stringMatching(/^generation 2 \(revision 9\) was rolled back at 2026-01-01T00:00:00Z; /)],
      });
    expect(await metric(server!, 'warnings{kind="withdrawn"}')).toBe(1);
    publish(3, ENTRIES);
    await expect.poll(() => readyz(server!)).toMatchObject({ warnings: [] });
    // The served generation may be built later, from an older drop.
    withdraw(paths.indexDir, { ...mark, dataset: 'test' });
    await expect.poll(() => readyz(server!)).toMatchObject({ warnings: [expect.stringMatching(/^generation 2 /)] });
    withdraw(paths.indexDir, { ...mark, dataset: 'test', revision: 0 });
    await expect.poll(() => readyz(server!)).toMatchObject({ warnings: [] });
  });

  it('has a metric for an account from 80 % of its quota, and a warning from 95 %', async () => {
    await start({ accounts: { small: { plan: 'custom', limit: 20 }, large: { plan: 'pro' } } });
    const headers = { 'x-api-key': server!.keys['small']! };
    const ask = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i++) expect((await server!.check('?domain=example.com', headers)).status).toBe(200);
    };
    await ask(17);
    const ratio = 'account_quota_used_ratio{account="small"}';
    await expect.poll(() => metric(server!, ratio)).toBe(0.85);
    expect((await readyz(server!)).warnings).toEqual([]);
    await ask(2);
    await expect
      .poll(() => readyz(server!))
      .toMatchObject({
        warnings: ['account small has used 95 % of its quota'],
      });
    expect(await metric(server!, 'account_quota_used_ratio{account="large"}')).toBeUndefined();
  });
});

describe('the decision log', () => {
  const withLog = (dir: string) => start({ config: { decision_log: { enabled: true, dir } } });

  async function expectDropped(reason: RegExp): Promise<void> {
    await expect
      .poll(async () => {
        await server!.check('?domain=example.com');
        return (await readyz(server!)).warnings;
      })
      .toContainEqual(expect.stringMatching(reason));
    expect((await server!.check('?domain=example.com')).status).toBe(200);
    // The line comes through a pipe, so the warning may arrive first.
    await expect
      .poll(() => logged(server!, 'decision_log_failed')[0])
      .toMatchObject({ level: 'error', code: 'decision_log_failed' });
    expect(logged(server!, 'decision_log_failed')[0]).not.toHaveProperty('stack');
    expect(await metric(server!, 'decision_log_dropped_total')).toBeGreaterThan(0);
  }

  it('causes a warning with a code and without a stack trace if it cannot be written', async () => {
    const dir = join(folder(), 'log');
    writeFileSync(dir, 'a file in the place of the folder');
    await withLog(dir);
    await expectDropped(/^worker 0, decision log: The decision log cannot be written.*: /);
    rmSync(dir);
  });

  it.runIf(process.getuid?.() === 0)('causes a warning on a full disk', async ({ skip }) => {
    const dir = folder();
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8k', 'tmpfs', dir], { stdio: 'pipe' });
    } catch {
      return skip();
    }
    onTestFinished(() => void execFileSync('umount', ['-l', dir]));
    writeFileSync(join(dir, 'full'), Buffer.alloc(8_192));
    await withLog(dir);
    await expectDropped(/ENOSPC/);
  });
});

describe('the disk', () => {
  it('causes a warning if it is nearly full', () => {
    expect(hostWarnings({ state: 2 * 1024 ** 3, decision_log: 5 * 1024 ** 2 })).toEqual([
      { kind: 'disk', text: 'the disk of decision_log has 5 MiB free' },
    ]);
  });

  it('has a metric', async () => {
    await start();
    expect(await metric(server!, 'disk_free_bytes{place="state"}')).toBeGreaterThan(0);
    expect(dirname(server!.paths.ledgerFile)).toContain('ledger');
    mkdirSync(join(folder(), 'x'));
  });
});
