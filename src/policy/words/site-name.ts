/** Finds the name of a site, as its host has it, in the last segment of a path: `my-example-login`, `ExampleLogon`, `myexample` on `example.org`. */

/** Shorter names are parts of other words. */
const SITE_MIN_LENGTH = 3;
/** Longer segments are titles. */
const SEGMENT_MAX_LENGTH = 32;
/** Length of the longest word for “my”, with a separator. */
const OWN_WORD_MAX_LENGTH = 7;

/**
 * Returns the text from `first` to `stop` without the site's own name; undefined if the name is not there, or is all of the text. The name
 * may be at the end, at the beginning, or after a short word for “my”, which begins with an m in most languages.
 */
export function withoutSiteName(path: string, first: number, stop: number, host: string): string | undefined {
  if (stop - first > SEGMENT_MAX_LENGTH) return undefined;
  const end = siteEnd(host);
  const start = siteStart(host, end);
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
 * Returns the end offset of the label by which people know the site: the last one before the public suffix, which is recognized by the
 * length of its labels. 0 if there is none.
 */
function siteEnd(host: string): number {
  for (let end = host.lastIndexOf('.'); end > 0; ) {
    const start = siteStart(host, end);
    if (end - start > SITE_MIN_LENGTH || start === 0) return end;
    end = start - 1;
  }
  return 0;
}

function siteStart(host: string, end: number): number {
  return host.lastIndexOf('.', end - 1) + 1;
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
