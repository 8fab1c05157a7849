/** Paths and queries that only some readers see: in the fragment, where a page's own code looks, and escaped in the path. */
import type { CanonicalUrl } from '../../domain/canonical-url.ts';
import { percentDecodeOnce } from '../../domain/percent-decode.ts';
import { withoutNameless } from './segments.ts';

/** The fragment as a path, where it is a route that a page's own code follows (`#/login`, `#!login`); otherwise undefined. */
export function fragmentRoute(url: CanonicalUrl): string | undefined {
  if (url.fragment === '') return undefined;
  const text = fragmentText(url);
  if (text.startsWith('!')) return slashed(text.slice(1));
  return text.startsWith('/') ? text : undefined;
}

/** The same for a fragment that may be an anchor as well: most routers put in the slash that is missing. */
export function looseRoute(url: CanonicalUrl): string {
  return fragmentRoute(url) ?? slashed(fragmentText(url));
}

/** A fragment, decoded once, up to the query of its own. */
function fragmentText({ fragment }: CanonicalUrl): string {
  const query = fragment.indexOf('?');
  return percentDecodeOnce(query < 0 ? fragment : fragment.slice(0, query));
}

function slashed(text: string): string {
  return text.startsWith('/') ? text : `/${text}`;
}

/**
 * The query of a route in the fragment (`#/?page=login`, `#!x?a=b`, `#?a=b`); empty where there is none. Its `id` is left out: viewers of
 * documentation write the name of a heading there.
 */
export function fragmentQuery({ fragment }: CanonicalUrl): string {
  const first = fragment[0];
  if (first !== '/' && first !== '!' && first !== '?') return '';
  const mark = fragment.indexOf('?');
  return mark < 0 ? '' : fragment.slice(mark + 1).replaceAll(/(?<=^|&)id=[^&]*/g, '');
}

/** What stands in the path as a query, as it stands and without what servers leave out: `/a%3Fpage=login`, `/a&page=login`; empty where nothing does. */
export function queryInPath({ decodedPath, queryMark }: CanonicalUrl): string {
  // Words alone may be the rest of a title: `What_is_a_login?_Login`.
  if (queryMark < 0 || !decodedPath.includes('=', queryMark)) return '';
  const query = decodedPath.slice(queryMark + 1);
  const named = withoutNameless(query);
  return named === query ? query : `${query}&${named}`;
}
