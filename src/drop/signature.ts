/**
 * Detached signatures over a drop's manifest. `manifest.json.sig` has one line for each signature: the base64 of the 64 raw bytes of an
 * Ed25519 signature over the exact bytes of `manifest.json`. Any tool that supports Ed25519 can create and check it.
 */
import { type KeyObject, sign, verify } from 'node:crypto';
import { PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { parseEd25519Key } from '../platform/ed25519.ts';

/** Several signatures allow a vendor to change keys. A file with more than this many is not accepted as a signature file. */
const SIGNATURES_MAX = LIMITS.signatures.value;
const SIGNATURE_SIZE_BYTES = 64;
const SIGNATURE_LINE = /^[A-Za-z0-9+/]{86}==$/;

/** A public key that the operator trusts to sign drops, and the operator's name for it. */
export interface TrustedKey {
  readonly name: string;
  readonly key: KeyObject;
}

/**
 * Reads an Ed25519 public key (PEM).
 *
 * @throws PagegateError trusted_key_invalid
 */
export function parseTrustedKey(name: string, pem: string): TrustedKey {
  try {
    return { name, key: parseEd25519Key(pem, 'public') };
  } catch (cause) {
    throw new PagegateError('trusted_key_invalid', `"${name}": ${(cause as Error).message}.`, { name }, { cause });
  }
}

/** Signs a manifest and returns the line for the signature file. */
export function signManifest(manifest: Uint8Array, privateKey: KeyObject): string {
  return `${sign(null, manifest, privateKey).toString('base64')}\n`;
}

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '');

const isSignature = (line: string): boolean =>
  SIGNATURE_LINE.test(line) && Buffer.from(line, 'base64').length === SIGNATURE_SIZE_BYTES;

/** Returns why a text is not a valid signature file; undefined if it is valid. */
export function signatureFileProblem(text: string): string | undefined {
  const lines = linesOf(text);
  if (lines.length === 0) return 'it is empty';
  if (lines.length > SIGNATURES_MAX) return `it has ${lines.length} lines, and at most ${SIGNATURES_MAX} are read`;
  const bad = lines.findIndex((line) => !isSignature(line));
  return bad === -1 ? undefined : `its line ${bad + 1} is not the base64 of 64 bytes`;
}

function parseSignatures(text: string): Buffer[] {
  const problem = signatureFileProblem(text);
  if (problem !== undefined)
    throw new PagegateError('drop_signature_invalid', `The signature file is not one: ${problem}.`);
  return linesOf(text).map((line) => Buffer.from(line, 'base64'));
}

/**
 * Checks a signature file with the trusted keys. Returns the name of the key that made one of the signatures.
 *
 * @throws PagegateError drop_signature_invalid if no key did: the manifest was changed, or signed with another key
 * @throws PagegateError no_trusted_keys
 */
export function verifySignature(manifest: Uint8Array, signatureFile: string, trusted: readonly TrustedKey[]): string {
  if (trusted.length === 0) throw new PagegateError('no_trusted_keys');
  const signatures = parseSignatures(signatureFile);
  for (const { name, key } of trusted) {
    if (signatures.some((signature) => verify(null, manifest, key, signature))) return name;
  }
  const names = trusted.map(({ name }) => name);
  throw new PagegateError('drop_signature_invalid', `Trusted keys: ${names.join(', ')}.`, { trusted: names });
}
