/** Certificate and private key of the listener, read from their files and checked. Whether they are taken is decided in `swap/`. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Stats } from 'node:fs';
import type { Config } from '../config/config.ts';
import { messageOf, PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { withoutBrackets } from '../network/address.ts';
import { readSmallFile } from '../platform/small-file.ts';

const NEXT_CERTIFICATE = /(?=-----BEGIN CERTIFICATE-----)/;

export interface Certificate {
  /** The chain, in PEM. */
  readonly chain: string;
  /** The private key, in PEM. It is neither logged nor written to a disk. */
  readonly key: string;
  /** When the first certificate of the chain expires, in milliseconds since 1970. */
  readonly expiresMs: number;
}

/**
 * Reads the files and checks that they hold a certificate and its key.
 *
 * @throws PagegateError tls_unusable
 */
export function readCertificate(certificateFile: string, keyFile: string): Certificate {
  const { chain, certificate } = readChain(certificateFile);
  const key = readPem(keyFile, ({ mode }) => {
    if ((mode & 0o007) !== 0) throw unusable(keyFile, 'it may be read by everybody; take that right away (chmod 0640)');
  });
  const privateKey = parsed(keyFile, 'a private key in PEM, without a passphrase', () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw unusable(keyFile, `the key does not belong to the certificate in ${certificateFile}`);
  }
  const ends = [certificate, ...certificatesOf(chain)].map(({ validTo }) => Date.parse(validTo));
  return { chain, key, expiresMs: Math.min(...ends) };
}

/**
 * Reads a chain and the certificate it begins with.
 *
 * @throws PagegateError tls_unusable
 */
export function readChain(file: string): { readonly chain: string; readonly certificate: X509Certificate } {
  const chain = readPem(file);
  const certificate = parsed(file, 'a certificate in PEM', () => new X509Certificate(chain));
  // For anything else the transport would only say that it does not start.
  const all = chain.split(NEXT_CERTIFICATE).filter((text) => NEXT_CERTIFICATE.test(text));
  for (const other of all.slice(1)) parsed(file, 'a certificate in PEM', () => new X509Certificate(other));
  return { chain, certificate };
}

/** The certificates of a chain, the server's own first. */
export const certificatesOf = (chain: string): X509Certificate[] =>
  chain.split(NEXT_CERTIFICATE).flatMap((text) => (NEXT_CERTIFICATE.test(text) ? [new X509Certificate(text)] : []));

/** The names that clients call the server by: those of the configuration, else its address where it listens on one. */
export function expectedNames({ server: { host }, tls: { names } }: Config): readonly string[] {
  if (names.length > 0) return names;
  return host === '0.0.0.0' || host === '::' || host === '[::]' ? [] : [withoutBrackets(host)];
}

function readPem(path: string, inspect: (stats: Stats) => void = () => {}): string {
  return readSmallFile(path, { code: 'tls_unusable', maxBytes: LIMITS.certificateBytes.value, inspect }).toString(
    'latin1',
  );
}

function parsed<T>(path: string, expected: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    const got = messageOf(cause);
    throw unusable(path, `expected ${expected}, and cannot read it as one: ${got}`, cause);
  }
}

function unusable(path: string, why: string, cause?: unknown): PagegateError {
  return new PagegateError('tls_unusable', `${path}: ${why}.`, { path }, { cause });
}

/**
 * What the configuration names; undefined without TLS.
 *
 * @throws PagegateError tls_unusable
 */
export function configuredCertificate({ certificate_file, key_file }: Config['tls']): Certificate | undefined {
  return certificate_file === null || key_file === null ? undefined : readCertificate(certificate_file, key_file);
}
