import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { parseTrustedKey, signManifest, verifySignature } from '../../src/drop/signature.ts';

const MANIFEST = Buffer.from('{"format":"pagegate-drop/1"}');

// Key and signature of RFC 8032, section 7.1, test 2 (message: the single byte 0x72).
const RFC_PUBLIC = '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c';
const RFC_SIGNATURE =
  '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00';

test('agrees with the test vector of RFC 8032', () => {
  const x = Buffer.from(RFC_PUBLIC, 'hex').toString('base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  const file = `${Buffer.from(RFC_SIGNATURE, 'hex').toString('base64')}\n`;
  expect(verifySignature(Buffer.from([0x72]), file, [{ name: 'rfc', key }])).toBe('rfc');
  expect(() => verifySignature(Buffer.from([0x73]), file, [{ name: 'rfc', key }])).toThrow(/No trusted key/);
});

test('one valid signature by any trusted key is enough, and that key is named', () => {
  const [old, next] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];
  const file = signManifest(MANIFEST, old.privateKey) + signManifest(MANIFEST, next.privateKey);
  expect(verifySignature(MANIFEST, file, [{ name: 'next', key: next.publicKey }])).toBe('next');
  expect(verifySignature(MANIFEST, file, [{ name: 'old', key: old.publicKey }])).toBe('old');
});

test('every single-bit flip of a signature is refused', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const good = Buffer.from(signManifest(MANIFEST, privateKey), 'base64');
  for (let bit = 0; bit < good.length * 8; bit += 1) {
    const bad = Buffer.from(good);
    bad[bit >> 3]! ^= 1 << (bit & 7);
    const file = `${bad.toString('base64')}\n`;
    expect(() => verifySignature(MANIFEST, file, [{ name: 'k', key: publicKey }])).toThrow(/No trusted key/);
  }
});

test.each([
  ['empty', ''],
  ['text', 'hello\n'],
  ['63 bytes', `${Buffer.alloc(63).toString('base64')}\n`],
  ['nine lines', `${Buffer.alloc(64).toString('base64')}\n`.repeat(9)],
])('an invalid signature file is refused: %s', (_name, file) => {
  const { publicKey } = generateKeyPairSync('ed25519');
  expect(() => verifySignature(MANIFEST, file, [{ name: 'k', key: publicKey }])).toThrow(/signature file/);
});

test('only Ed25519 keys are trusted', () => {
  const rsa = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  expect(() => parseTrustedKey('own', rsa.privateKey)).toThrow(/is a private key/);
  expect(() => parseTrustedKey('rsa', rsa.publicKey)).toThrow(/expected ed25519, got rsa/);
  expect(() => parseTrustedKey('none', 'not a key')).toThrow(/holds no public key in PEM/);
});
