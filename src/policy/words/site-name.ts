/** The name of a site, as its host has it, in the last segment of a path: `my-example-login`, `ExampleLogon`, `myexample` of `example.org`. */

/** Shorter names stand in other words. */
const SITE_MIN_LENGTH = 3;
/** Longer segments are titles. */
const SEGMENT_MAX_LENGTH = 32;
/** So long is a word for what is one's own, and a sign behind it. */
const OWN_WORD_MAX_LENGTH = 7;

/**
 * What stands between two places of a path without the site's own name; undefined where that is not there, or all of it. The name stands at
 * the end, at the beginning, or behind a short word for what is one's own: with an m in most languages.
 */
export function withoutSiteName(path: string, first: number, stop: number, host: string): string | undefined {
  if (stop - first > SEGMENT_MAX_LENGTH) return undefined;
  const end = siteEnd(host);
  const start = siteStart(host, end);
  const size = end - start;
  const last = stop - size;
  if (size < SITE_MIN_LENGTH || last <= first) return undefined;
  let at = last;
  if (!standsAt(path, at, host, start, end)) {
    const isOwn = (path.charCodeAt(first) | 0x20) === 0x6d;
    const furthest = Math.min(last - 1, isOwn ? first + OWN_WORD_MAX_LENGTH : first);
    for (at = first; at <= furthest && !standsAt(path, at, host, start, end); ) at++;
    if (at > furthest) return undefined;
  }
  return path.slice(first, at) + path.slice(at + size, stop);
}

/**
 * Where the label of a host ends by which people know the site: the last one before the suffix that is no part of that, told by its length;
 * 0 where there is none.
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

/** Whether what stands in a host from `start` to `end` stands at a place of the path, in any case. */
function standsAt(path: string, at: number, host: string, start: number, end: number): boolean {
  for (let own = start; own < end; own++) {
    const code = path.charCodeAt(at + own - start);
    const lower = code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
    if (lower !== host.charCodeAt(own)) return false;
  }
  return true;
}
