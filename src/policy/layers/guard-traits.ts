/** What a request must have for a guard to be worth asking; most requests have few of these. */
import type { RuleEntry } from '../documents.ts';
import type { Subject } from '../subject.ts';
import { hasDigit } from '../url/characters.ts';

const TRAIT = {
  always: 1,
  spelling: 2,
  address: 4,
  international: 8,
  query: 16,
  /** Another scheme than http and https, or another port than theirs. */
  place: 32,
  /** Longer than {@link USUAL_LENGTH}. */
  length: 64,
  /** Another method than GET. */
  method: 128,
  /** A digit in the host. */
  hostDigit: 256,
  /** A host longer than {@link USUAL_HOST_LENGTH}. */
  hostLength: 512,
} as const;

/** Every set of traits is less. */
export const TRAIT_SETS = 1024;

const USUAL_HOST_LENGTH = 31;

const USUAL_LENGTH = 512;
/** The longest URL that the check `length` lets pass where the rule names no limit. */
export const LENGTH_MAX = 4096;

/** Which traits a check needs; a check that is not listed is always asked. */
const NEEDS: Readonly<Record<string, number>> = {
  userinfo: TRAIT.spelling,
  spelling: TRAIT.spelling,
  address: TRAIT.address,
  idn_invalid: TRAIT.international,
  idn_confusable: TRAIT.international,
  parameter: TRAIT.query,
  spelled_address: TRAIT.hostDigit,
};

/** The traits that a rule's check needs, one of them; none where it can never hold. */
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

/** Whether a name must be longer than usual to be taken for a tunnel. */
function isLongTunnel({ min_run: run = 0, max_subdomain_length: length = 0 }: RuleEntry): boolean {
  return run > USUAL_HOST_LENGTH && length >= USUAL_HOST_LENGTH;
}

/** The traits of a request. A plain URL has none of those that come from an unusual spelling. */
export function traitsOf({ url, method, host }: Subject): number {
  let traits: number = hasDigit(host, 0, host.length) ? TRAIT.always | TRAIT.hostDigit : TRAIT.always;
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
