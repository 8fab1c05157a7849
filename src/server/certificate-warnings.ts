/** Why clients refuse the certificate of the listener, or soon will. */
import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { counted } from '../counted.ts';
import { DAY_MS, rfc3339 } from '../times.ts';
import { type Certificate, certificatesOf } from './read-certificate.ts';

/** A certificate that expires within this time is a warning. */
const CERTIFICATE_DAYS = 14;

/**
 * Why clients refuse a certificate, or soon will: each a sentence without its full stop.
 *
 * @param names what clients call this server by.
 */
export function certificateWarnings(
  { chain }: Pick<Certificate, 'chain'>,
  names: readonly string[],
  nowMs: number,
): string[] {
  const [own] = certificatesOf(chain);
  if (own === undefined) return [];
  return [...timeWarnings('the certificate', own, nowMs), ...chainAndNameWarnings({ chain }, names, nowMs)];
}

/** The same, without what the dates of the server's own certificate say. */
export function chainAndNameWarnings(
  { chain }: Pick<Certificate, 'chain'>,
  names: readonly string[],
  nowMs: number,
): string[] {
  const [own, ...others] = certificatesOf(chain);
  if (own === undefined) return [];
  const found = others.flatMap((other) => timeWarnings(`the chain's certificate "${nameOf(other)}"`, other, nowMs));
  const uncovered = names.filter((name) => (isIP(name) === 0 ? own.checkHost(name) : own.checkIP(name)) === undefined);
  if (own.subjectAltName === undefined) found.push('the certificate names no host, so clients refuse it');
  else if (uncovered.length > 0)
    found.push(`the certificate is for ${own.subjectAltName}, not for ${uncovered.join(', ')} (tls.names)`);
  return found;
}

function timeWarnings(what: string, { validFrom, validTo }: X509Certificate, nowMs: number): string[] {
  const leftMs = Date.parse(validTo) - nowMs;
  const on = rfc3339(Date.parse(validTo) / 1000);
  if (leftMs <= 0) return [`${what} expired at ${on}`];
  const fromMs = Date.parse(validFrom);
  if (fromMs > nowMs) return [`${what} is not valid before ${rfc3339(fromMs / 1000)}`];
  const days = Math.floor(leftMs / DAY_MS);
  return days < CERTIFICATE_DAYS ? [`${what} expires at ${on}, in ${counted(days, 'day')}`] : [];
}

const nameOf = ({ subject }: X509Certificate): string => subject.replaceAll('\n', ', ');
