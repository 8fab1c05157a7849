/**
 * What of a URL may be written into a log: plain lower-case words. Everything else may be a secret or name a person, and becomes
 * `***`. A list of what is allowed misses no secret that nobody thought of.
 */
import { registrableDomain } from '../../domain/public-suffix.ts';
import { LIMITS } from '../../limits.ts';
import { http } from '../../platform/http.ts';
import type { Policy } from '../../policy/policy.ts';

const MASK = '***';
/** Longer paths are cut: a line is a record, not an archive. */
const PATH_MAX_LENGTH = LIMITS.loggedPathCharacters.value;
/** Up to four words of up to twelve letters, and an extension: `/docs/getting-started`, `/index.html`. */
const PLAIN_SEGMENT = /^(?:[a-z]{1,12}(?:-[a-z]{1,12}){0,3}(?:\.[a-z]{2,5})?)?$/;
/** The same with a short number after it, as in names of hosts: `docs`, `api-eu`, `web12`. */
const PLAIN_LABEL = /^[a-z]{1,12}(?:-[a-z]{1,12}){0,3}-?[0-9]{0,2}$/;
/** The first label of a registrable domain: as long as a name that people remember, with at most three digits. */
const REGISTERED_LABEL = /^(?!(?:[^0-9]*[0-9]){4})[a-z0-9-]{1,24}$/;
const PLAIN_SCHEME = /^[a-z][a-z0-9+.-]{0,19}$/;

const methodsOf = new WeakMap<Policy, ReadonlySet<string>>();

/** The method where Node.js or the policy knows it, else `other`: any token can be sent as one. */
export function methodToLog(method: string, policy: Policy): string {
  let known = methodsOf.get(policy);
  if (known === undefined) {
    const named = policy.document.rules.flatMap(({ check, allowed = [], methods = [] }) => [
      ...(check === 'method' ? allowed : []),
      ...methods,
    ]);
    known = new Set([...http.METHODS, ...named.map(String)]);
    methodsOf.set(policy, known);
  }
  return known.has(method) ? method : 'other';
}

/** The scheme where it looks like one in use. */
export function maskScheme(scheme: string): string {
  return PLAIN_SCHEME.test(scheme) ? scheme : MASK;
}

/** The path with every segment masked that is not plain words. */
export function maskPath(path: string): string {
  // Segments beyond the limit are cut off anyway.
  const masked = path
    .slice(0, 2 * PATH_MAX_LENGTH)
    .replaceAll(/[^/]+/g, (segment) => (PLAIN_SEGMENT.test(segment) ? segment : MASK));
  return masked.length > PATH_MAX_LENGTH ? `${masked.slice(0, PATH_MAX_LENGTH)}…` : masked;
}

/** The path with every segment masked. */
export function maskWholePath(path: string): string {
  return maskPath(path.replaceAll(/[^/]+/g, MASK));
}

/**
 * The host with every label masked that is not a plain name.
 *
 * @param known a name that is in the index and so no secret: it is kept. Empty where there is none.
 * @param carriesData the policy found data in the labels: all below the registrable domain are masked.
 */
export function maskHost(host: string, known: string, carriesData: boolean): string {
  if (host === known || host === '' || /^(?:\[[0-9a-f:.]+\]|[0-9.]+)$/.test(host)) return host;
  const isBelow = known !== '' && host.endsWith(`.${known}`);
  const domain = isBelow ? known : (registrableDomain(host) ?? '');
  const below = host.slice(0, host.length - domain.length);
  const first = domain.split('.', 1)[0] ?? '';
  const kept = isBelow || REGISTERED_LABEL.test(first) ? domain : domain.replace(/^[^.]+/, MASK);
  return below.replaceAll(/[^.]+/g, (label) => (!carriesData && PLAIN_LABEL.test(label) ? label : MASK)) + kept;
}
