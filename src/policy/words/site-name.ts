/** Finds the name of a site, as its host has it, in the last segment of a path: `my-example-login`, `ExampleLogon`, `myexample` on `example.org`. */
import type { HostFilter } from '../url/host-map.ts';

/** Shorter names are parts of other words. */
const SITE_MIN_LENGTH = 3;
/** Longer segments are titles. */
const SEGMENT_MAX_LENGTH = 32;
/** Length of the longest word for “my”, with a separator. */
const OWN_WORD_MAX_LENGTH = 7;

/**
 * Returns the text from `first` to `stop` without the site's own name; undefined if the name is not there, or is all of the text. The name
 * may be at the end, at the beginning, or after a short word for “my”, which begins with an m in most languages.
 * @param host empty if its name does not count
 * @param hosts reads the host
 */
export function withoutSiteName(
  path: string,
  first: number,
  stop: number,
  host: string,
  hosts: HostFilter,
): string | undefined {
  if (stop - first > SEGMENT_MAX_LENGTH || host === '') return undefined;
  const { starts, count } = hosts.read(host);
  const site = siteIndex(starts, count);
  if (site < 0) return undefined;
  const start = starts[site]!;
  const end = starts[site - 1]! - 1;
  const size = end - start;
  const last = stop - size;
  if (size < SITE_MIN_LENGTH || last <= first) return undefined;
  let at = last;
  if (!isPartAt(path, at, host, start, end)) {
    const beginsWithM = (path.charCodeAt(first) | 0x20) === 0x6d;
    const furthest = Math.min(last - 1, beginsWithM ? first + OWN_WORD_MAX_LENGTH : first);
    for (at = first; at <= furthest && !isPartAt(path, at, host, start, end); ) at++;
    if (at > furthest) return undefined;
  }
  return path.slice(first, at) + path.slice(at + size, stop);
}

/**
 * Returns the index of the label by which people know the site, counted from the last one: the nearest to the end that is not part of the
 * public suffix, which is recognized by the length of its labels. -1 if there is none.
 * @param starts offsets of the labels, the last one first
 */
function siteIndex(starts: readonly number[], count: number): number {
  for (let at = 1; at < count; at++) {
    const start = starts[at]!;
    if (starts[at - 1]! - 1 - start > SITE_MIN_LENGTH || start === 0) return at;
  }
  return -1;
}

/** Whether the part of a host from `start` to `end` is in the path at offset `at`, in any case. */
function isPartAt(path: string, at: number, host: string, start: number, end: number): boolean {
  for (let hostAt = start; hostAt < end; hostAt++) {
    const code = path.charCodeAt(at + hostAt - start);
    const lower = code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
    if (lower !== host.charCodeAt(hostAt)) return false;
  }
  return true;
}
