/** Certificate and private key of the listener: read once, checked, and handed to the transport from memory. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { PagegateError } from '../errors.ts';
import { memoryFile } from '../platform/libc.ts';

export interface Certificate {
  /** The chain, in PEM. */
  readonly chain: string;
  /** The private key, in PEM. It is neither logged nor written to a disk. */
  readonly key: string;
  /** When the certificate expires, in milliseconds since 1970. */
  readonly expiresMs: number;
}

/** Reads the files and checks that they hold a certificate and its key. Throws `tls_unusable`. */
export function readCertificate(certificateFile: string, keyFile: string): Certificate {
  try {
    const chain = readFileSync(certificateFile, 'latin1');
    const certificate = new X509Certificate(chain);
    const { mode } = statSync(keyFile);
    if ((mode & 0o007) !== 0) throw new Error(`${keyFile} may be read by everybody; take that right away (chmod 0640)`);
    const key = readFileSync(keyFile, 'latin1');
    if (!certificate.checkPrivateKey(createPrivateKey(key))) {
      throw new Error(`the key in ${keyFile} does not belong to the certificate in ${certificateFile}`);
    }
    return { chain, key, expiresMs: Date.parse(certificate.validTo) };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new PagegateError('tls_unusable', `${why}.`, { certificate: certificateFile, key: keyFile }, { cause });
  }
}

/** What the configuration names; undefined without TLS. Throws `tls_unusable`. */
export function configuredCertificate({ certificate_file, key_file }: Config['tls']): Certificate | undefined {
  return certificate_file === null || key_file === null ? undefined : readCertificate(certificate_file, key_file);
}

/** Runs a task with names under which this process can open the two as files, only meanwhile: the transport knows files only. */
export function withCertificateFiles<T>(
  { chain, key }: Certificate,
  task: (files: { readonly cert_file_name: string; readonly key_file_name: string }) => T,
): T {
  const [chainFile, keyFile] = [memoryFile(chain), memoryFile(key)];
  try {
    return task({ cert_file_name: chainFile.path, key_file_name: keyFile.path });
  } finally {
    chainFile.close();
    keyFile.close();
  }
}
