/** Parses Ed25519 keys in PEM form, with which drops and licenses are signed and verified. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

const KINDS = {
  // Without this check, createPublicKey would derive a public key from a private one, which must not be on a licensee's host.
  public: { create: createPublicKey, other: 'PRIVATE KEY', mistake: 'it is a private key; expected the public one' },
  private: { create: createPrivateKey, other: 'PUBLIC KEY', mistake: 'it is a public key; expected the private one' },
} as const;

/**
 * Parses a key in PEM form.
 *
 * @throws Error whose message has the reason, and never a part of the text
 */
export function parseEd25519Key(pem: string, kind: keyof typeof KINDS): KeyObject {
  const { create, other, mistake } = KINDS[kind];
  if (pem.includes(other)) throw new Error(mistake);
  let key: KeyObject;
  try {
    key = create(pem);
  } catch (cause) {
    // OpenSSL's own message does not help if the text is not a key.
    throw new Error(`it holds no ${kind} key in PEM (${(cause as Error).message})`, { cause });
  }
  if (key.asymmetricKeyType !== 'ed25519') throw new Error(`expected ed25519, got ${key.asymmetricKeyType}`);
  return key;
}
