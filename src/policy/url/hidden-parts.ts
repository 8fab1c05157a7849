/** Paths and queries that only some readers see: in the fragment, which a page's own code reads, and percent-encoded in the path. */
import type { CanonicalUrl } from '../../domain/canonical-url.ts';
import { percentDecodeOnce } from '../../domain/percent-decode.ts';
import { withoutNameless } from './segments.ts';

/** Returns the fragment as a path, if it is a route that a page's own code follows (`#/login`, `#!login`); otherwise undefined. */
export function fragmentRoute(url: CanonicalUrl): string | undefined {
  if (url.fragment === '') return undefined;
  const text = fragmentText(url);
  if (text.startsWith('!')) return withLeadingSlash(text.slice(1));
  return text.startsWith('/') ? text : undefined;
}

/** Like {@link fragmentRoute}, for a fragment that may also be an anchor: most routers add the slash that is missing. */
export function looseRoute(url: CanonicalUrl): string {
  return fragmentRoute(url) ?? withLeadingSlash(fragmentText(url));
}

/** Returns a fragment up to its own query, decoded once. */
function fragmentText({ fragment }: CanonicalUrl): string {
  const query = fragment.indexOf('?');
  return percentDecodeOnce(query < 0 ? fragment : fragment.slice(0, query));
}

function withLeadingSlash(text: string): string {
  return text.startsWith('/') ? text : `/${text}`;
}

/**
 * Returns the query of a route in the fragment (`#/?page=login`, `#!x?a=b`, `#?a=b`); empty if there is none. Its `id` is removed, because
 * viewers of documentation put the name of a heading there.
 */
export function fragmentQuery({ fragment }: CanonicalUrl): string {
  const first = fragment[0];
  if (first !== '/' && first !== '!' && first !== '?') return '';
  const mark = fragment.indexOf('?');
  return mark < 0 ? '' : fragment.slice(mark + 1).replaceAll(/(?<=^|&)id=[^&]*/g, '');
}

/**
 * Returns what some servers read as a query in the path (`/a%3Fpage=login`, `/a&page=login`), followed by the same without what servers
 * ignore, if that differs. Empty if there is no query.
 */
export function queryInPath({ decodedPath, queryMark }: CanonicalUrl): string {
  // Without an equals sign it may be the rest of a title: `What_is_a_login?_Login`.
  if (queryMark < 0 || !decodedPath.includes('=', queryMark)) return '';
  const query = decodedPath.slice(queryMark + 1);
  const named = withoutNameless(query);
  return named === query ? query : `${query}&${named}`;
}
