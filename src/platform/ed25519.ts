/** Ed25519 keys in PEM, which drops and licenses are signed and checked with. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

const KINDS = {
  // createPublicKey would quietly derive it from a private key, which has no place on a licensee's host.
  public: { create: createPublicKey, other: 'PRIVATE KEY', mistake: 'it is a private key; expected the public one' },
  private: { create: createPrivateKey, other: 'PUBLIC KEY', mistake: 'it is a public key; expected the private one' },
} as const;

/**
 * The key in a PEM text.
 *
 * @throws Error whose message says why it is not one, and never holds a part of the text
 */
export function parseEd25519Key(pem: string, kind: keyof typeof KINDS): KeyObject {
  const { create, other, mistake } = KINDS[kind];
  if (pem.includes(other)) throw new Error(mistake);
  let key: KeyObject;
  try {
    key = create(pem);
  } catch (cause) {
    // What OpenSSL says of a text that is no key tells nobody what to do.
    throw new Error(`it holds no ${kind} key in PEM (${(cause as Error).message})`, { cause });
  }
  if (key.asymmetricKeyType !== 'ed25519') throw new Error(`expected ed25519, got ${key.asymmetricKeyType}`);
  return key;
}
