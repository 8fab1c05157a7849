/** Reasons why clients refuse the listener's certificate, or soon will. */
import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { counted } from '../counted.ts';
import { DAY_MS, rfc3339 } from '../times.ts';
import { type Certificate, certificatesOf } from './read-certificate.ts';

/** Warn if a certificate expires within this time. */
const CERTIFICATE_DAYS = 14;

/**
 * Returns the reasons why clients refuse a certificate, or soon will. Each is a sentence without its full stop.
 *
 * @param names the names that clients use for this server.
 */
export function certificateWarnings(
  { chain }: Pick<Certificate, 'chain'>,
  names: readonly string[],
  nowMs: number,
): string[] {
  const [leaf] = certificatesOf(chain);
  if (leaf === undefined) return [];
  return [...timeWarnings('the certificate', leaf, nowMs), ...chainAndNameWarnings({ chain }, names, nowMs)];
}

/** {@link certificateWarnings} without the validity period of the server's own certificate. */
export function chainAndNameWarnings(
  { chain }: Pick<Certificate, 'chain'>,
  names: readonly string[],
  nowMs: number,
): string[] {
  const [leaf, ...others] = certificatesOf(chain);
  if (leaf === undefined) return [];
  const found = others.flatMap((other) => timeWarnings(`the chain's certificate "${nameOf(other)}"`, other, nowMs));
  const uncovered = names.filter(
    (name) => (isIP(name) === 0 ? leaf.checkHost(name) : leaf.checkIP(name)) === undefined,
  );
  if (leaf.subjectAltName === undefined) found.push('the certificate names no host, so clients refuse it');
  else if (uncovered.length > 0)
    found.push(`the certificate is for ${leaf.subjectAltName}, not for ${uncovered.join(', ')} (tls.names)`);
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
