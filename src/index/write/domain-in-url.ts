/** Splits a URL at its domain: into origin (scheme and host prefix), domain and path. */
import { COLON, NUMBER_SIGN, QUESTION_MARK, SLASH } from '../../bytes/ascii.ts';

const LOWER_S = 0x73;
const HTTP_SIZE_BYTES = 'http://'.length;

/**
 * Returns where the domain begins in the URL `source[start, end)`; -1 if its host does not end with the domain, or if the scheme is
 * neither http nor https. The origin precedes the domain, the path follows it.
 */
export function findDomainInUrl(
  source: Uint8Array,
  start: number,
  end: number,
  domain: Uint8Array,
  domainStart: number,
  domainEnd: number,
): number {
  const hostStart = start + HTTP_SIZE_BYTES + (source[start + 4] === LOWER_S ? 1 : 0);
  if (hostStart > end || source[hostStart - 1] !== SLASH || source[hostStart - 2] !== SLASH) return -1;
  if (source[hostStart - 3] !== COLON) return -1;
  let hostEnd = hostStart;
  while (hostEnd < end) {
    const byte = source[hostEnd]!;
    if (byte === SLASH || byte === QUESTION_MARK || byte === NUMBER_SIGN || byte === COLON) break;
    hostEnd++;
  }
  const found = hostEnd - (domainEnd - domainStart);
  if (found < hostStart) return -1;
  for (let i = domainStart, j = found; i < domainEnd; i++, j++) if (domain[i] !== source[j]) return -1;
  return found;
}
