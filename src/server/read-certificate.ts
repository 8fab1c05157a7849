/** Reads and checks the listener's certificate and private key. `swap/` decides whether they are used. */
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
  /** The private key, in PEM. It is never logged or written to disk. */
  readonly key: string;
  /** Earliest expiry of all certificates in the chain, in milliseconds since 1970. */
  readonly expiresMs: number;
}

/**
 * Reads both files and checks that the key belongs to the certificate.
 *
 * @throws PagegateError tls_unusable
 */
export function readCertificate(certificateFile: string, keyFile: string): Certificate {
  const { chain, certificate } = readChain(certificateFile);
  const key = readPem(keyFile, 'tls.key_file (--tls-key)', ({ mode }) => {
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
 * Reads a certificate chain. Returns it with its first certificate, the server's own.
 *
 * @throws PagegateError tls_unusable
 */
export function readChain(file: string): { readonly chain: string; readonly certificate: X509Certificate } {
  const chain = readPem(file, 'tls.certificate_file (--tls-certificate)');
  const certificate = parsed(file, 'a certificate in PEM', () => new X509Certificate(chain));
  // Without this check, the transport would fail to start without giving a reason.
  const all = chain.split(NEXT_CERTIFICATE).filter((text) => NEXT_CERTIFICATE.test(text));
  for (const other of all.slice(1)) parsed(file, 'a certificate in PEM', () => new X509Certificate(other));
  return { chain, certificate };
}

/** The certificates of a chain, the server's own first. */
export const certificatesOf = (chain: string): X509Certificate[] =>
  chain.split(NEXT_CERTIFICATE).flatMap((text) => (NEXT_CERTIFICATE.test(text) ? [new X509Certificate(text)] : []));

/** Returns the names that clients use for the server: the configured ones, or else the address it listens on. Empty if it listens on all. */
export function expectedNames({ server: { host }, tls: { names } }: Config): readonly string[] {
  if (names.length > 0) return names;
  return host === '0.0.0.0' || host === '::' || host === '[::]' ? [] : [withoutBrackets(host)];
}

function readPem(path: string, secretOption: string, inspect: (stats: Stats) => void = () => {}): string {
  const maxBytes = LIMITS.certificateBytes.value;
  return readSmallFile(path, { code: 'tls_unusable', secretOption, maxBytes, inspect }).toString('latin1');
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
 * Reads the configured certificate; undefined without TLS.
 *
 * @throws PagegateError tls_unusable
 */
export function configuredCertificate({ certificate_file, key_file }: Config['tls']): Certificate | undefined {
  return certificate_file === null || key_file === null ? undefined : readCertificate(certificate_file, key_file);
}
