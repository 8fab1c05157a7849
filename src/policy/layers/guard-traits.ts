/** Traits of a request that decide which guard rules can match it. Most requests have few traits, so most rules are skipped. */
import type { RuleEntry } from '../documents.ts';
import type { Subject } from '../subject.ts';

const TRAIT = {
  always: 1,
  spelling: 2,
  address: 4,
  international: 8,
  query: 16,
  /** A scheme other than http and https, or a port other than 80 and 443. */
  place: 32,
  /** Longer than {@link USUAL_LENGTH}. */
  length: 64,
  /** A method other than GET. */
  method: 128,
  /** A digit in the host. */
  hostDigit: 256,
  /** A host longer than {@link USUAL_HOST_LENGTH}. */
  hostLength: 512,
  /** See {@link Subject.isBeyondHost}. */
  beyondHost: 1024,
} as const;

/** The number of trait sets: every bit mask of {@link TRAIT} is below it. */
export const TRAIT_SETS = 2048;

const USUAL_HOST_LENGTH = 31;

const USUAL_LENGTH = 512;
/** The longest URL that the check `length` lets pass if the rule sets no limit. */
export const LENGTH_MAX = 4096;

/** The trait that a request must have for a check to match. A check that is not listed always runs. */
const NEEDS: Readonly<Record<string, number>> = {
  userinfo: TRAIT.spelling,
  spelling: TRAIT.spelling,
  address: TRAIT.address,
  idn_invalid: TRAIT.international,
  idn_confusable: TRAIT.international,
  parameter: TRAIT.query,
  spelled_address: TRAIT.hostDigit,
  secret: TRAIT.beyondHost,
  nested_internal: TRAIT.beyondHost,
};

/** Returns the trait bit that a request must have for the rule's check to match; 0 if it never matches. */
export function traitsNeeded(rule: RuleEntry): number {
  const { check = '' } = rule;
  const allowed = new Set<string | number>(rule.allowed ?? []);
  if (check === 'scheme' && allowed.has('http') && allowed.has('https')) return TRAIT.place;
  if (check === 'port' && allowed.has(80) && allowed.has(443)) return TRAIT.place;
  if (check === 'length' && (rule.max_length ?? LENGTH_MAX) >= USUAL_LENGTH) return TRAIT.length;
  if (check === 'method' && allowed.has('GET')) return TRAIT.method;
  if (check === 'method_is' && !(rule.methods ?? []).includes('GET')) return TRAIT.method;
  if (check === 'category' && rule.threats !== true && (rule.categories ?? []).length === 0) return 0;
  if (check === 'dns_tunnel' && isLongTunnel(rule)) return TRAIT.hostLength;
  return NEEDS[check] ?? TRAIT.always;
}

/** Whether only host names longer than usual can count as a tunnel. */
function isLongTunnel({ min_run: run = 0, max_subdomain_length: length = 0 }: RuleEntry): boolean {
  return run > USUAL_HOST_LENGTH && length >= USUAL_HOST_LENGTH;
}

/**
 * Returns the traits of a request as a bit mask. A plain URL has no trait of an unusual spelling.
 * @param hasHostDigit whether there is a digit in the host
 */
export function traitsOf({ url, method, host, isBeyondHost }: Subject, hasHostDigit: boolean): number {
  let traits: number = hasHostDigit ? TRAIT.always | TRAIT.hostDigit : TRAIT.always;
  if (isBeyondHost) traits |= TRAIT.beyondHost;
  if (host.length > USUAL_HOST_LENGTH) traits |= TRAIT.hostLength;
  if (url.query !== '' || url.queryMark >= 0) traits |= TRAIT.query;
  if (url.href.length > USUAL_LENGTH) traits |= TRAIT.length;
  if (method !== 'GET') traits |= TRAIT.method;
  if (url.isPlain) return traits;
  if ((url.scheme !== 'http' && url.scheme !== 'https') || (url.port !== 80 && url.port !== 443)) traits |= TRAIT.place;
  if (url.hostKind !== 'domain') traits |= TRAIT.address;
  if (url.host.includes('xn--')) traits |= TRAIT.international;
  return url.spelling !== 0 || url.hasUserinfo ? traits | TRAIT.spelling : traits;
}
