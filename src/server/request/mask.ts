/**
 * Masks URLs for logs: only plain lower-case words are kept. Everything else may be a secret or name a person, and becomes `***`. An allow-list
 * also covers secrets of unknown forms.
 */
import { registrableDomain } from '../../domain/public-suffix.ts';
import { LIMITS } from '../../limits.ts';
import { http } from '../../platform/http.ts';
import type { Policy } from '../../policy/policy.ts';

const MASK = '***';
/** Longer paths are truncated. */
const PATH_MAX_LENGTH = LIMITS.loggedPathCharacters.value;
/** Up to four words of up to twelve letters, and an extension: `/docs/getting-started`, `/index.html`. */
const PLAIN_SEGMENT = /^(?:[a-z]{1,12}(?:-[a-z]{1,12}){0,3}(?:\.[a-z]{2,5})?)?$/;
/** The same followed by a short number, as in host names: `docs`, `api-eu`, `web12`. */
const PLAIN_LABEL = /^[a-z]{1,12}(?:-[a-z]{1,12}){0,3}-?[0-9]{0,2}$/;
/** The first label of a registrable domain: as long as a memorable name, with at most three digits. */
const REGISTERED_LABEL = /^(?!(?:[^0-9]*[0-9]){4})[a-z0-9-]{1,24}$/;
const PLAIN_SCHEME = /^[a-z][a-z0-9+.-]{0,19}$/;

const methodsOf = new WeakMap<Policy, ReadonlySet<string>>();

/** The method if Node.js or the policy knows it, otherwise `other`, because any token can be sent as a method. */
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

/** The scheme, if it looks like one in use. */
export function maskScheme(scheme: string): string {
  return PLAIN_SCHEME.test(scheme) ? scheme : MASK;
}

/** The path with every segment masked that does not consist of plain words. */
export function maskPath(path: string): string {
  // Segments beyond the limit are truncated anyway.
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
 * @param known a name that is in the index and therefore not a secret; it is kept. Empty if there is none.
 * @param carriesData whether the policy found data in the labels. Then all labels below the registrable domain are masked.
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
