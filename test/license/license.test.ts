/** Licenses: signed, altered, foreign, and the data that they cover. */
import { sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../src/errors.ts';
import { installLicense, loadLicense } from '../../src/license/installed.ts';
import {
  assertEntitled,
  createLicenseKey,
  type Entitlement,
  issueLicense,
  type LicenseTerms,
  verifyLicense,
} from '../../src/license/license.ts';
import { HARMLESS_JSON, HOSTILE_JSON } from '../support/hostile-json.ts';

const SHA = 'ab'.repeat(32);
const vendor = createLicenseKey();
const trusted = { vendor: vendor.publicKey };
const terms: LicenseTerms = {
  licensee: 'Acme Ä/S',
  dataset: 'web',
  entitlement: { kind: 'refreshes_until', until: '2026-06-30' },
  licenseId: 'L-1',
};
const issued = issueLicense(terms, vendor.privateKey, 'vendor');

const expectCode = (task: () => unknown, code: ErrorCode): void => {
  expect(task).toThrow(expect.objectContaining({ code }));
};

/** The envelope with one field replaced. */
const altered = (change: Record<string, unknown>): string => JSON.stringify({ ...JSON.parse(issued), ...change });
const payload = (): Buffer => Buffer.from(JSON.parse(issued).payload, 'base64');
/** Any payload, signed by the vendor. */
const signed = (bytes: Uint8Array): string =>
  altered({
    payload: Buffer.from(bytes).toString('base64'),
    signature: sign(null, bytes, vendor.privateKey).toString('base64'),
  });
const signedWith = (change: Record<string, unknown>): string =>
  signed(Buffer.from(JSON.stringify({ ...JSON.parse(payload().toString()), ...change })));

describe('a license', () => {
  it('is verified and read', () => {
    expect(verifyLicense(issued, trusted)).toMatchObject({
      licenseId: 'L-1',
      licensee: 'Acme Ä/S',
      dataset: 'web',
      signedBy: 'vendor',
      entitlement: { kind: 'refreshes_until', until: '2026-06-30' },
    });
  });

  it.each(['v', '7', 'vendor-2026', `a${'._-'.repeat(21)}`])('may be signed with a key named %s', (name) => {
    const text = issueLicense(terms, vendor.privateKey, name);
    expect(verifyLicense(text, { [name]: vendor.publicKey })).toMatchObject({ signedBy: name });
  });

  it.each(['', '-v', '.v', 'a b', 'ä', `a${'b'.repeat(64)}`])('is not signed with a key named "%s"', (name) => {
    expectCode(() => issueLicense(terms, vendor.privateKey, name), 'bad_license');
  });

  it('is refused when any byte of its payload or signature was changed', () => {
    const bytes = payload();
    for (let i = 0; i < bytes.length; i += 1) {
      const changed = Buffer.from(bytes);
      changed[i]! ^= 1;
      expectCode(() => verifyLicense(altered({ payload: changed.toString('base64') }), trusted), 'license_untrusted');
    }
    const signature = Buffer.from(JSON.parse(issued).signature, 'base64');
    for (let i = 0; i < signature.length; i += 1) {
      const changed = Buffer.from(signature);
      changed[i]! ^= 1;
      expectCode(() => verifyLicense(altered({ signature: changed.toString('base64') }), trusted), 'license_untrusted');
    }
  });

  it('is refused if another key signed it, under its own name or the trusted one', () => {
    const other = createLicenseKey();
    expectCode(() => verifyLicense(issueLicense(terms, other.privateKey, 'other'), trusted), 'license_untrusted');
    expectCode(() => verifyLicense(issueLicense(terms, other.privateKey, 'vendor'), trusted), 'license_untrusted');
    expectCode(() => verifyLicense(issued, {}), 'license_untrusted');
    expectCode(() => verifyLicense(altered({ key: 'toString' }), trusted), 'license_untrusted');
  });

  it.each([
    ['no JSON', 'hello'],
    ['an array', '[]'],
    ['another format', altered({ format: 'pagegate-license/2' })],
    ['a further field', altered({ extra: 1 })],
    ['a signature of the wrong size', altered({ signature: 'AAAA' })],
    ['base64 that is not canonical', altered({ signature: `${JSON.parse(issued).signature.slice(0, -3)}B==` })],
    ['no payload', altered({ payload: 7 })],
    ['more than a megabyte', `${issued}${' '.repeat(1024 * 1024)}`],
  ])('is refused with %s', (_what, text) => {
    expectCode(() => verifyLicense(text, trusted), 'bad_license');
  });

  it.each([
    ['a date that does not exist', { entitlement: { kind: 'refreshes_until', until: '2026-13-40' } }],
    ['a 30 February', { entitlement: { kind: 'refreshes_until', until: '2027-02-30' } }],
    ['a leap day in a common year', { entitlement: { kind: 'refreshes_until', until: '2027-02-29' } }],
    ['a 31 April', { entitlement: { kind: 'refreshes_until', until: '2027-04-31' } }],
    ['a date in another form', { entitlement: { kind: 'refreshes_until', until: '30.06.2026' } }],
    ['no manifest', { entitlement: { kind: 'frozen', manifests: [] } }],
    ['a manifest that is not a hash', { entitlement: { kind: 'frozen', manifests: ['AB'.repeat(32)] } }],
    ['no id', { licenseId: '' }],
    ['an id of 65 characters', { licenseId: 'x'.repeat(65) }],
    ['an id with a space', { licenseId: 'L 1' }],
    ['a licensee with a line break', { licensee: 'Acme\nEvil' }],
    ['no dataset', { dataset: '' }],
  ] as [string, Partial<LicenseTerms>][])('is not even issued with %s', (_what, change) => {
    expectCode(() => issueLicense({ ...terms, ...change }, vendor.privateKey, 'vendor'), 'bad_license');
  });

  it.each(['1', '!', '~'.repeat(64)])('may have the id %s', (licenseId) => {
    const text = issueLicense({ ...terms, licenseId }, vendor.privateKey, 'vendor');
    expect(verifyLicense(text, trusted).licenseId).toBe(licenseId);
  });

  it('may end on a leap day', () => {
    const entitlement: Entitlement = { kind: 'refreshes_until', until: '2028-02-29' };
    const license = issueLicense({ ...terms, entitlement }, vendor.privateKey, 'vendor');
    expect(verifyLicense(license, trusted).entitlement).toEqual(entitlement);
  });

  it('is refused if its day of issue does not exist', () => {
    const at = (issuedAt: string): string => signedWith({ issued: issuedAt });
    // The written day counts, whatever day it is in UTC.
    expect(verifyLicense(at('2026-01-01T00:30:00+02:00'), trusted).issued).toBe('2026-01-01T00:30:00+02:00');
    expectCode(() => verifyLicense(at('2026-02-30T00:30:00Z'), trusted), 'bad_license');
    expectCode(() => verifyLicense(at('2026-02-20T25:30:00Z'), trusted), 'bad_license');
  });

  it.each([
    ['two entitlements', signedWith({ entitlement: { frozen: [SHA], refreshes_until: '2026-06-30' } })],
    ['no entitlement', signedWith({ entitlement: {} })],
    ['more drops than there can be', signedWith({ entitlement: { frozen: new Array(10_001).fill(SHA) } })],
    ['another format', signedWith({ format: 'pagegate-license/2' })],
    ['a further field', signedWith({ seats: 5 })],
    ['no licensee', signedWith({ licensee: '' })],
    ['bytes that are not UTF-8', signed(Buffer.from(payload().toString().replace('Acme', '\xff'), 'latin1'))],
  ])('signed by the vendor is also refused with %s', (_what, text) => {
    expectCode(() => verifyLicense(text, trusted), 'bad_license');
  });

  it.each(HOSTILE_JSON)('is refused with $name, in the file and in the signed payload', ({ spoil, expected }) => {
    const refused = expect.objectContaining({ code: 'bad_license', message: expect.stringMatching(expected) });
    expect(() => verifyLicense(spoil(issued), trusted)).toThrow(refused);
    const content = spoil(payload().toString());
    // An empty payload is not even base64.
    if (content.length > 0) expect(() => verifyLicense(signed(content), trusted)).toThrow(refused);
  });

  it.each(HARMLESS_JSON)('is read with $name', ({ spoil }) => {
    expect(verifyLicense(spoil(issued), trusted)).toEqual(verifyLicense(issued, trusted));
    expect(verifyLicense(signed(spoil(payload().toString())), trusted)).toEqual(verifyLicense(issued, trusted));
  });

  it('names its key by a name that is valid in a configuration', () => {
    for (const name of ['', 'a b', '-a', 'a'.repeat(65)]) {
      expectCode(() => issueLicense(terms, vendor.privateKey, name), 'bad_license');
      expectCode(() => verifyLicense(altered({ key: name }), { [name]: vendor.publicKey }), 'bad_license');
    }
  });

  it('needs Ed25519 keys, and a private key is never trusted as a public one', async () => {
    const { generateKeyPairSync } = await import('node:crypto');
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    expectCode(() => issueLicense(terms, pem, 'vendor'), 'bad_license_key');
    expectCode(() => issueLicense(terms, 'no key', 'vendor'), 'bad_license_key');
    expectCode(() => verifyLicense(issued, { vendor: vendor.privateKey }), 'bad_license_key');
    const publicPem = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString();
    expectCode(() => verifyLicense(issued, { vendor: publicPem }), 'bad_license_key');
  });
});

describe('an entitlement', () => {
  const check = (entitlement: Entitlement, created: string, dataset = 'web', manifestSha256 = SHA) =>
    assertEntitled(verifyLicense(issueLicense({ ...terms, entitlement }, vendor.privateKey, 'vendor'), trusted), {
      dataset,
      manifestSha256,
      created,
    });
  const until: Entitlement = { kind: 'refreshes_until', until: '2026-06-30' };
  const frozen: Entitlement = { kind: 'frozen', manifests: ['00'.repeat(32), SHA] };

  it('up to a day covers drops created until its end, and none after', () => {
    check(until, '2020-01-01T00:00:00Z');
    check(until, '2026-06-30T23:59:59Z');
    expectCode(() => check(until, '2026-07-01T00:00:00Z'), 'license_not_entitled');
    expectCode(() => check(until, '2026-06-30T23:59:59-01:00'), 'license_not_entitled');
    expectCode(() => check(until, 'nonsense'), 'license_not_entitled');
  });

  it('for frozen drops covers those and no others', () => {
    check(frozen, '2099-01-01T00:00:00Z');
    expectCode(() => check(frozen, '2020-01-01T00:00:00Z', 'web', 'cd'.repeat(32)), 'license_not_entitled');
  });

  it('is for its dataset only', () => {
    expectCode(() => check(until, '2026-01-01T00:00:00Z', 'other'), 'license_not_entitled');
    expectCode(() => check(frozen, '2026-01-01T00:00:00Z', 'other'), 'license_not_entitled');
  });
});

describe('an installed license', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'pagegate-license-'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  it('is installed completely, and an invalid one leaves the old one', () => {
    const target = join(dir, 'license', 'license.json');
    expectCode(() => loadLicense(target, trusted), 'license_missing');
    const source = join(dir, 'new.json');
    writeFileSync(source, issued);
    expect(installLicense(target, source, trusted).licenseId).toBe('L-1');
    writeFileSync(source, altered({ key: 'other' }));
    expectCode(() => installLicense(target, source, trusted), 'license_untrusted');
    expect(readFileSync(target, 'utf8')).toBe(issued);
    expect(loadLicense(target, trusted).licenseId).toBe('L-1');
    expectCode(() => installLicense(target, join(dir, 'none'), trusted), 'license_unreadable');
  });
});
