/** The layer of the licensee's allow entries: host, path prefix and methods. */
import { percentDecodeOnce } from '../../domain/percent-decode.ts';
import { type AllowEntry, invalidPolicy } from '../documents.ts';
import type { Verdict } from '../types.ts';
import { HOST_FORM, type HostFilter, HostMap, readAllowedHost } from '../url/host-map.ts';
import { isBelow, withoutLastSlash } from '../url/paths.ts';
import { type Ask, verdictOf } from './layer.ts';

/** An allow entry, compiled. */
export interface AllowPolicy {
  readonly verdict: Verdict;
  readonly methods: ReadonlySet<string>;
  /** Path prefix without a trailing slash; empty for the whole host. */
  readonly path: string;
}

/** Compiles the allow entries into a map by host. @throws PagegateError policy_invalid */
export function compileAllow(entries: readonly AllowEntry[], filter: HostFilter): HostMap<AllowPolicy[]> {
  const map = new HostMap<AllowPolicy[]>(filter);
  for (const { id, host, path, methods, note } of entries) {
    const read = readAllowedHost(host);
    if (read === undefined) throw invalidPolicy(id, `The host "${host}" of "${id}" is not a host: ${HOST_FORM}.`);
    if (!path.startsWith('/')) throw invalidPolicy(id, `The path of "${id}" must start with a slash.`);
    const compiled = {
      verdict: verdictOf('allow', 'rules', id, note ?? 'Your own policy allows this place by name.'),
      methods: new Set(methods.map((method) => method.toUpperCase())),
      path: withoutLastSlash(path),
    };
    const earlier = map.add(read.host, read.reach, []) ?? [];
    map.add(read.host, read.reach, [...earlier, compiled]);
  }
  return map;
}

/** Returns the verdict of the matching entry with the longest path. */
export const allowVerdict: Ask<{ readonly allow: HostMap<AllowPolicy[]> }> = (
  { allow },
  { url, host, method },
  all,
) => {
  if (allow.isEmpty) return undefined;
  let best: AllowPolicy | undefined;
  for (const entries of allow.all(host)) {
    for (const entry of entries) {
      if (!entry.methods.has(method) || !isBelow(url.decodedPath, entry.path)) continue;
      if (url.decodedPath !== url.path && !hasOwnSlashes(url.path, entry.path)) continue;
      if (best === undefined || entry.path.length > best.path.length) best = entry;
    }
  }
  if (best !== undefined) all?.push(best.verdict);
  return best?.verdict;
};

/**
 * Whether the slashes of a prefix are literal slashes in the encoded path. For a server that does not decode `%2f` into a slash,
 * `/v1%2fx` is not below `/v1`.
 */
function hasOwnSlashes(path: string, prefix: string): boolean {
  let end = path.indexOf('/');
  for (let at = prefix.indexOf('/'); at >= 0; at = prefix.indexOf('/', at + 1)) {
    if (end < 0) return false;
    end = path.indexOf('/', end + 1);
  }
  return percentDecodeOnce(end < 0 ? path : path.slice(0, end)) === prefix;
}
