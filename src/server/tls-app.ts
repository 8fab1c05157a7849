/** Creates the transport's app for a certificate, and so finds what its TLS library does not take. */
import { PagegateError } from '../errors.ts';
import { createMemoryFile } from '../platform/libc.ts';
import type { Certificate } from './read-certificate.ts';
import { loadUws, type TemplatedApp } from './uws.ts';

/** An app with functions that the transport's types lack: those that pass connections from one app to another, and the timeouts. */
export interface HandingApp extends TemplatedApp {
  /** Returns the descriptor by which another app passes connections to this one. */
  getDescriptor(): number;
  addChildAppDescriptor(descriptor: number): void;
  removeChildAppDescriptor(descriptor: number): void;
  /** Sets how long a connection may wait before its first request, in seconds. The transport checks every four seconds. */
  setIdleTimeout(seconds: number): void;
  /** Sets how long a connection may wait after a response, in seconds. */
  setResponseTimeout(seconds: number): void;
}

/**
 * Creates an app that answers with a certificate. The transport reports no reason if that fails, so the message names the possible ones.
 *
 * @throws PagegateError tls_unusable
 */
export function createTlsApp(certificate: Certificate, ciphers: string | undefined): HandingApp {
  return withCertificateFiles(certificate, (files) => {
    try {
      return loadUws().SSLApp({ ...files, ...(ciphers === undefined ? {} : { ssl_ciphers: ciphers }) }) as HandingApp;
    } catch (cause) {
      const what = `The TLS library does not take tls.ciphers ("${ciphers}"), or a key of this kind: use RSA, or ECDSA on P-256 or P-384.`;
      throw new PagegateError('tls_unusable', what, { ciphers }, { cause });
    }
  });
}

/** Runs a task with chain and key in in-memory files, because the transport accepts only file names. */
function withCertificateFiles<T>(
  { chain, key }: Certificate,
  task: (files: { readonly cert_file_name: string; readonly key_file_name: string }) => T,
): T {
  const [chainFile, keyFile] = [createMemoryFile(chain), createMemoryFile(key)];
  try {
    return task({ cert_file_name: chainFile.path, key_file_name: keyFile.path });
  } finally {
    chainFile.close();
    keyFile.close();
  }
}
