/** The offline license: a payload and an Ed25519 signature over its exact bytes. It decides which data may be activated, never about a lookup. */
import { generateKeyPairSync, type KeyObject, randomUUID, sign, verify } from 'node:crypto';
import { PagegateError } from '../errors.ts';
import { parseDocument } from '../json/strict-json.ts';
import { LIMITS } from '../limits.ts';
import { parseEd25519Key } from '../platform/ed25519.ts';

const FORMAT = 'pagegate-license/1';
const MANIFESTS_MAX = LIMITS.licenseManifests.value;
const SIGNATURE_SIZE_BYTES = 64;
const KEY_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

/** Which data may be activated: listed drops, by the SHA-256 of their manifests, or all drops made up to a day. */
export type Entitlement =
  | { readonly kind: 'frozen'; readonly manifests: readonly string[] }
  | { readonly kind: 'refreshes_until'; readonly until: string };

export interface License {
  readonly licenseId: string;
  readonly licensee: string;
  /** RFC 3339, UTC. */
  readonly issued: string;
  /** Name of the dataset that it covers. */
  readonly dataset: string;
  readonly entitlement: Entitlement;
  /** Name of the key that signed it. */
  readonly signedBy: string;
}

/** Public keys in PEM form, by name. */
export type TrustedKeys = Readonly<Record<string, string>>;

/** The properties of an index on which a license decides. */
export interface LicensedData {
  readonly dataset: string;
  /** SHA-256 of the manifest's bytes, in lower-case hexadecimal. */
  readonly manifestSha256: string;
  /** When the drop was made, RFC 3339. */
  readonly created: string;
}

type Fields = Readonly<Record<string, unknown>>;

function refuse(what: string): never {
  throw new PagegateError('bad_license', what);
}

function asFields(value: unknown, name: string, allowed: readonly string[]): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refuse(`${name}: expected an object.`);
  const unknown = Object.keys(value).find((key) => !allowed.includes(key));
  if (unknown !== undefined) return refuse(`${name}: the field "${unknown.slice(0, 40)}" is not known.`);
  return value as Fields;
}

function asText(fields: Fields, name: string, pattern: RegExp, expected: string): string {
  const value = fields[name];
  return typeof value === 'string' && pattern.test(value) ? value : refuse(`${name}: expected ${expected}.`);
}

const DAY_LENGTH = 'YYYY-MM-DD'.length;
const toDay = (ms: number): string => new Date(ms).toISOString().slice(0, DAY_LENGTH);

function asMoment(fields: Fields, name: string, pattern: RegExp, expected: string): string {
  const text = asText(fields, name, pattern, expected);
  // Date.parse turns a day that does not exist into one of the next month: 30 February would become 2 March.
  const day = Date.parse(text.slice(0, DAY_LENGTH));
  const isReal = !Number.isNaN(Date.parse(text)) && !Number.isNaN(day) && toDay(day) === text.slice(0, DAY_LENGTH);
  return isReal ? text : refuse(`${name}: expected ${expected} that exists, got "${text}".`);
}

function asBase64(fields: Fields, name: string): Buffer {
  const text = asText(fields, name, /^[A-Za-z0-9+/]+={0,2}$/, 'base64');
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : refuse(`${name}: the base64 is not canonical.`);
}

function parseEntitlement(value: unknown): Entitlement {
  const fields = asFields(value, 'entitlement', ['frozen', 'refreshes_until']);
  if (Object.keys(fields).length !== 1) return refuse('entitlement: expected either "frozen" or "refreshes_until".');
  if ('refreshes_until' in fields) {
    return { kind: 'refreshes_until', until: asMoment(fields, 'refreshes_until', DATE, 'a date YYYY-MM-DD') };
  }
  const manifests: unknown = fields['frozen'];
  const isHash = (text: unknown): boolean => typeof text === 'string' && /^[0-9a-f]{64}$/.test(text);
  if (
    !Array.isArray(manifests) ||
    manifests.length === 0 ||
    manifests.length > MANIFESTS_MAX ||
    !manifests.every(isHash)
  ) {
    return refuse(`frozen: expected 1 to ${MANIFESTS_MAX} SHA-256 sums of manifests, in lower-case hexadecimal.`);
  }
  return { kind: 'frozen', manifests: manifests as string[] };
}

function parsePayload(bytes: Uint8Array, signedBy: string): License {
  const names = ['format', 'license_id', 'licensee', 'issued', 'dataset', 'entitlement'];
  const fields = asFields(parseDocument(bytes, 'bad_license', 'payload'), 'payload', names);
  if (fields['format'] !== FORMAT) refuse(`payload: expected format "${FORMAT}".`);
  return {
    licenseId: asText(fields, 'license_id', /^[\x21-\x7e]{1,64}$/, '1 to 64 printable ASCII characters'),
    licensee: asText(fields, 'licensee', /^[^\p{Cc}\u2028\u2029]{1,200}$/u, '1 to 200 printable characters'),
    issued: asMoment(fields, 'issued', TIMESTAMP, 'an RFC 3339 time'),
    dataset: asText(fields, 'dataset', /^[\x21-\x7e]{1,128}$/, '1 to 128 printable ASCII characters'),
    entitlement: parseEntitlement(fields['entitlement']),
    signedBy,
  };
}

/** Parses a key in PEM form. `name` is its name in messages. @throws PagegateError bad_license_key */
export function readLicenseKey(pem: string, kind: 'public' | 'private', name: string): KeyObject {
  try {
    return parseEd25519Key(pem, kind);
  } catch (cause) {
    throw new PagegateError('bad_license_key', `Key "${name}": ${(cause as Error).message}.`, {}, { cause });
  }
}

/** Creates a vendor's key pair, in PEM form. */
export function createLicenseKey(): { privateKey: string; publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

export interface LicenseTerms {
  readonly licensee: string;
  readonly dataset: string;
  readonly entitlement: Entitlement;
  readonly licenseId?: string;
}

/**
 * Signs a license (vendor side) and returns the file's content.
 *
 * @param signedBy the name under which the licensee trusts the key.
 * @param keyFile the name of the private key in messages.
 * @throws PagegateError bad_license for terms that {@link verifyLicense} would refuse, bad_license_key.
 */
export function issueLicense(terms: LicenseTerms, privateKeyPem: string, signedBy: string, keyFile = signedBy): string {
  if (!KEY_NAME.test(signedBy)) refuse(`key: expected a name like vendor-2026, got "${signedBy.slice(0, 64)}".`);
  const { entitlement } = terms;
  const payload = Buffer.from(
    JSON.stringify({
      format: FORMAT,
      license_id: terms.licenseId ?? randomUUID(),
      licensee: terms.licensee,
      issued: new Date().toISOString(),
      dataset: terms.dataset,
      entitlement:
        entitlement.kind === 'frozen' ? { frozen: entitlement.manifests } : { refreshes_until: entitlement.until },
    }),
  );
  parsePayload(payload, signedBy);
  const key = readLicenseKey(privateKeyPem, 'private', keyFile);
  const envelope = {
    format: FORMAT,
    key: signedBy,
    payload: payload.toString('base64'),
    signature: sign(null, payload, key).toString('base64'),
  };
  return `${JSON.stringify(envelope, null, 2)}\n`;
}

/**
 * Checks a license file's signature against the trusted keys, then parses its payload.
 *
 * @throws PagegateError bad_license (not a license, or altered), license_untrusted (another key), bad_license_key.
 */
export function verifyLicense(file: Uint8Array | string, trusted: TrustedKeys): License {
  const bytes = typeof file === 'string' ? Buffer.from(file) : file;
  if (bytes.length > LIMITS.licenseBytes.value) return refuse(`It has more than ${LIMITS.licenseBytes.value} bytes.`);
  const envelope = asFields(parseDocument(bytes, 'bad_license', 'the file'), 'the file', [
    'format',
    'key',
    'payload',
    'signature',
  ]);
  if (envelope['format'] !== FORMAT) return refuse(`the file: expected format "${FORMAT}".`);
  const name = asText(envelope, 'key', KEY_NAME, "a key's name");
  const payload = asBase64(envelope, 'payload');
  const signature = asBase64(envelope, 'signature');
  if (signature.length !== SIGNATURE_SIZE_BYTES) return refuse(`signature: expected ${SIGNATURE_SIZE_BYTES} bytes.`);
  const pem = Object.hasOwn(trusted, name) ? trusted[name] : undefined;
  if (pem === undefined) {
    const known = Object.keys(trusted).join(', ') || 'none';
    throw new PagegateError('license_untrusted', `Signed by "${name}"; trusted here: ${known}.`, { key: name });
  }
  if (!verify(null, payload, readLicenseKey(pem, 'public', name), signature)) {
    throw new PagegateError(
      'license_untrusted',
      `The signature does not fit the content and the trusted key "${name}".`,
      { key: name },
    );
  }
  return parsePayload(payload, name);
}

/** The end of a day (UTC), in milliseconds since 1970. A license covers its whole last day. */
export const endOfDayMs = (date: string): number => Date.parse(`${date}T00:00:00Z`) + 86_400_000;

/**
 * Refuses data that a license does not cover. Called when an index is activated, never for an index that is being served already.
 *
 * @throws PagegateError license_not_entitled
 */
export function assertEntitled(license: License, data: LicensedData): void {
  const refuseData = (why: string): never => {
    throw new PagegateError('license_not_entitled', `License ${license.licenseId}: ${why}`, {
      license_id: license.licenseId,
    });
  };
  if (license.dataset !== data.dataset)
    refuseData(`it is for dataset "${license.dataset}", the index has "${data.dataset}".`);
  const { entitlement } = license;
  if (entitlement.kind === 'frozen') {
    if (entitlement.manifests.includes(data.manifestSha256)) return;
    refuseData(
      `it is for ${entitlement.manifests.length} frozen drops, and ${data.manifestSha256.slice(0, 16)}… is not one of them.`,
    );
  } else {
    if (Date.parse(data.created) < endOfDayMs(entitlement.until)) return;
    refuseData(`it covers drops made up to ${entitlement.until}, this one was made ${data.created}.`);
  }
}
