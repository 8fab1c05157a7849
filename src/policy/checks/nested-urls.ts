/** Finds URLs inside a URL (in a parameter, in the path, or encoded in either) and checks where they lead. */
import { domainToASCII } from 'node:url';
import { type CanonicalUrl, parseUrl } from '../../domain/canonical-url.ts';
import { percentDecodeOnce } from '../../domain/percent-decode.ts';
import { hasKnownSuffix, registrableDomain } from '../../domain/public-suffix.ts';
import type { Subject } from '../subject.ts';
import type { Parameter } from '../url/parameters.ts';
import type { PathSegments } from '../url/path-segments.ts';
import { nameEnd, staticDot, withoutSigns } from '../url/segments.ts';
import type { TokenIndex } from '../words/tokens.ts';

const SCHEME_MAX_LENGTH = 16;
// With or without slashes: clients treat both as an absolute URL.
const STARTS_AS_URL = /^https?:/i;
/** The start of the next parameter, for servers that read parameters from a path. `;` begins a parameter of a segment. */
const NEXT_PARAMETER = /[&;?#]/;
const SCHEME = /^[a-z][a-z0-9-]{1,15}:[^ ]/i;

/** How to decide whether a nested URL leads to an internal destination. */
export interface InternalPlaces {
  /** `isBare`: the value has no scheme, so its last label may be a file extension. */
  isInternal(url: CanonicalUrl, isBare: boolean): boolean;
  /** Schemes that always count as internal. */
  readonly schemes: ReadonlySet<string>;
  /** The maximum number of nested URLs to check; more count as internal. */
  readonly maxUrls: number;
  readonly tokens: TokenIndex;
  /** Token list of the parameters whose value is a destination even without a scheme. */
  readonly names: number;
  /** Token list of the parameters in which a bare number is an IP address. */
  readonly addressNames: number;
  /** Token list of names of servers in internal networks, which are hosts by themselves (`?url=redis`); undefined for none. */
  readonly insideNames: number | undefined;
  /** Token list of segments before a host that the server fetches or redirects to. */
  readonly relays: number;
}

/** Whether the URL contains a URL that leads to an internal destination, or more URLs than `maxUrls`. */
export function hasNestedInternal(subject: Subject, places: InternalPlaces): boolean {
  if (!subject.mayLead && !hasSegment(subject.segments, places.relays)) return false;
  const { plainPath, encodedTexts } = subject;
  const budget = { left: places.maxUrls };
  let left = places.maxUrls;
  if (plainPath.includes(':/') && hasInternalUrl(plainPath, places, budget)) return true;
  const isInternalWord = (text: string): boolean => {
    const word = asRead(text);
    if (hasInternalUrl(word, places, budget)) return true;
    return mayBeTarget(word) && (left-- <= 0 || isInternalTarget(word, places));
  };
  if (encodedTexts.length > 0 && encodedTexts.some(isInternalWord)) return true;
  const relayed = hostAfterRelay(subject, places.tokens, places.relays);
  if (relayed !== undefined && isPlace(relayed) && isInternalText(`http://${relayed}`, places, true)) return true;
  return allParameters(subject).some((parameter) => {
    // Each parameter is checked separately: its text cannot change where another one leads.
    if (parameter.hasPlaceSign && hasInternalUrl(parameter.text, places, budget)) return true;
    if (!parameter.mayBePlace(places.names, places.addressNames)) return false;
    const { name, value: text, lists } = parameter;
    const target = targetInName(name);
    if (target !== undefined && isInternalTarget(target, places)) return true;
    const value = asRead(text);
    if (value.length < 3) return false;
    const isInternal = (candidate: string): boolean =>
      isInternalTarget(candidate, places) || isInternalPlace(candidate, places, lists);
    const bare = withoutTail(value);
    if (isInternal(value) || (bare.length < value.length && isInternal(bare))) return true;
    // The value contains another, encoded parameter: check what comes before it.
    const mark = value.search(NEXT_PARAMETER);
    return mark > 0 && isInternal(withoutTail(value.slice(0, mark)));
  });
}

/** Returns the parameters of the query and those of a route in the fragment, which the page's own code reads. */
function allParameters({ parameters, routeParameters }: Subject): readonly Parameter[] {
  return routeParameters.length === 0 ? parameters : [...parameters, ...routeParameters];
}

/**
 * Returns the URL or host in the name of a parameter; undefined if there is none. Relays take a whole URL as the query, and the first `=` of
 * that URL splits it into name and value.
 */
function targetInName(name: string): string | undefined {
  if (!name.includes(':') && !name.includes('/') && !name.includes('\\')) return undefined;
  const text = asRead(name.replace(/^\?+/, ''));
  return startsLikeHost(text) || STARTS_AS_URL.test(text) ? text : undefined;
}

/** Whether a text may be a URL as a whole: it begins with two slashes or with something like a scheme. */
function mayBeTarget(text: string): boolean {
  return startsLikeHost(text) || SCHEME.test(text);
}

/** Removes trailing signs, except the bracket that closes an IPv6 address. */
function withoutTail(value: string): string {
  const bare = withoutSigns(value);
  return value.charCodeAt(bare.length) === 0x5d && bare.includes('[') ? `${bare}]` : bare;
}

/** Whether a value that begins with a scheme or two slashes leads to an internal destination. */
function isInternalTarget(value: string, places: InternalPlaces): boolean {
  if (startsLikeHost(value)) return isInternalText(`http:${value}`, places, false);
  if (STARTS_AS_URL.test(value)) return isInternalText(value, places, false);
  const colon = value.indexOf(':');
  return colon > 0 && places.schemes.has(value.slice(0, colon).toLowerCase()) && SCHEME.test(value);
}

/** Whether a parameter's value without a scheme names an internal destination. `lists`: token lists of the parameter's name. */
function isInternalPlace(value: string, places: InternalPlaces, lists: readonly number[]): boolean {
  if (lists.includes(places.addressNames)) {
    if (isAddressNumber(value) && isInternalText(`http://${value}`, places, true)) return true;
    if (/^[a-z0-9_-]+:[0-9]{2,5}(?:[/?#]|$)/i.test(value) || isInternalName(value, places)) return true;
  }
  return lists.includes(places.names) && isPlace(value) && isInternalText(`http://${value}`, places, true);
}

/** Whether a value starts with the name of a server in an internal network, optionally followed by a port, a path or a query. */
function isInternalName(value: string, { insideNames, tokens }: InternalPlaces): boolean {
  const name = insideNames === undefined ? undefined : /^[a-z][a-z0-9_-]{0,62}(?=[/?#:]|$)/i.exec(value)?.[0];
  return name !== undefined && tokens.find(name, 0, name.length).includes(insideNames!);
}

/** Removes what clients ignore in a URL: leading whitespace, control characters and quotes, and line ends and tabs anywhere. */
function asRead(value: string): string {
  // Hardly any value has such characters, and the second expression takes several times as long.
  return /^[^!-~]|^["'<(]|[\t\n\r]/.test(value) ? value.replace(/^[\s\p{Cc}"'<(]+|[\t\n\r]/gu, '') : value;
}

function startsLikeHost(value: string): boolean {
  return value.length > 1 && isSlash(value.charCodeAt(0)) && isSlash(value.charCodeAt(1));
}

function isSlash(code: number): boolean {
  return code === 0x2f || code === 0x5c;
}

/** Whether a value without a scheme is clearly a host, not a number or a word. */
function isPlace(value: string): boolean {
  const authority = value.slice(0, 260).split(/[/\\?#]/, 1)[0]!;
  const host = authority.slice(authority.lastIndexOf('@') + 1).replace(/\.?(:[0-9]*)?$/, '');
  const name = /[^\0-\x7f]/.test(host) ? domainToASCII(host) : host.toLowerCase();
  if (name === 'localhost' || name.startsWith('[')) return true;
  if (/^(0x[0-9a-f]+|0[0-7]+|[0-9]+)(\.(0x[0-9a-f]+|0[0-7]+|[0-9]+)){3}$/.test(name)) return true;
  if (/^(127|0x7f|0+177)(\.(0x[0-9a-f]+|[0-9]+)){1,2}$/.test(name)) return true;
  return /^0x[0-9a-f]{8}$/.test(name) || /[a-z].*\.[a-z]/.test(name);
}

/** Whether a value starts with an IPv4 address as a single decimal or octal number. Small numbers are counts and ids. */
function isAddressNumber(value: string): boolean {
  return /^(?:[1-9][0-9]{7,9}|0[0-7]{9,12})(?:[:/\\?#]|$)/.test(value) && Number.parseInt(value, 10) >= 2 ** 24;
}

/** Whether a text contains a URL that leads to an internal destination. Returns true as well if `budget`, the number of URLs to check, is spent. */
function hasInternalUrl(text: string, places: InternalPlaces, budget: { left: number }): boolean {
  if (/[\t\n\r]/.test(text) && hasInternalUrl(text.replace(/[\t\n\r]+/g, ''), places, budget)) return true;
  for (let colon = text.indexOf(':'); colon >= 0; colon = text.indexOf(':', colon + 1)) {
    let start = colon;
    while (start > 0 && colon - start < SCHEME_MAX_LENGTH && isSchemeCode(text.charCodeAt(start - 1))) start--;
    const scheme = text.slice(start, colon).toLowerCase();
    const next = text.charCodeAt(colon + 1);
    const isWeb = /https?$/.test(scheme);
    const isUrl = isSlash(next);
    if (isUrl && places.schemes.has(scheme)) return true;
    if (!isUrl || !(isWeb || text.charCodeAt(colon + 2) === 0x2f)) continue;
    if (budget.left-- <= 0) return true;
    if (isInternalText(`http:${untilSpace(text, colon + 1)}`, places, false)) return true;
    if (isInternalAfterUserinfo(text, colon + 1, places)) return true;
  }
  return false;
}

function isSchemeCode(code: number): boolean {
  const lower = code | 0x20;
  return (
    (lower >= 0x61 && lower <= 0x7a) ||
    (code >= 0x30 && code <= 0x39) ||
    code === 0x2b ||
    code === 0x2d ||
    code === 0x2e
  );
}

/** Returns the text from `start` to the end of a URL in running text, at most 300 characters: no host is longer. */
function untilSpace(text: string, start: number): string {
  return text.slice(start, start + 300).split(/[\s"'<>|,]/, 1)[0]!;
}

/** Whether a URL leads to an internal destination in any of the ways that clients may read it. */
function isInternalText(text: string, places: InternalPlaces, isBare: boolean): boolean {
  // Trailing signs in running text are not part of the host. Neither is the zone of an IPv6 address (`[fe80::1%eth0]`).
  const bare = withoutTail(text.slice(0, 600));
  const target = bare.includes('[') ? bare.replace(/(\[[0-9a-f:.]{2,45})%[^\]/]*\]/i, '$1]') : bare;
  const isInternal = (url: CanonicalUrl | undefined): boolean =>
    url !== undefined && url.host !== '' && places.isInternal(url, isBare);
  if (isInternal(parseUrl(target) ?? parseUrl(percentDecodeOnce(target)))) return true;
  const mark = target.search(NEXT_PARAMETER);
  if (mark > 0 && isInternal(parseUrl(withoutTail(target.slice(0, mark))))) return true;
  return isInternalAfterUserinfo(text, text.indexOf(':') + 1, places);
}

/**
 * Whether an internal host follows the userinfo of a URL. `start` is the offset after the scheme's colon. Everything before the last `@`
 * that precedes the path is userinfo, regardless of its length; for some clients even if it contains a backslash, `?` or `#`.
 */
function isInternalAfterUserinfo(text: string, start: number, places: InternalPlaces): boolean {
  let next = start;
  while (isSlash(text.charCodeAt(next))) next++;
  let user = -1;
  for (; next < text.length && text.charCodeAt(next) !== 0x2f && text.charCodeAt(next) > 0x20; next++) {
    if (text.charCodeAt(next) === 0x40) user = next;
  }
  if (user < 0) return false;
  const host = text.slice(user + 1, user + 301);
  const url = isPlace(host) ? parseUrl(`http://${untilSpace(host, 0)}`) : undefined;
  return url !== undefined && places.isInternal(url, false);
}

/** Token lists for finding a host of another site without a scheme. */
export interface TargetLists {
  readonly tokens: TokenIndex;
  /** Token list of parameters whose value is a redirect target. */
  readonly names: number;
  /** Token list of segments before a host that the server fetches or redirects to. */
  readonly relays: number;
}

/** Whether a parameter's whole value is a URL or host of another site, or the path contains one, or one is encoded in either. */
export function hasOpenRedirect(subject: Subject, { tokens, names, relays }: TargetLists): boolean {
  if (!subject.mayLead && !hasSegment(subject.segments, relays)) return false;
  const { url, plainPath, encodedTexts } = subject;
  const cache = { site: undefined };
  let left = 16;
  const isAway = (text: string): boolean => {
    const target = startsLikeHost(text) ? `http:${text}` : text;
    return STARTS_AS_URL.test(target) && (left-- <= 0 || leadsAway(target, url, cache));
  };
  const paths = plainPath === url.decodedPath ? [plainPath] : [plainPath, url.decodedPath];
  if (paths.some((path) => path.includes(':') && leadsAway(urlInPath(path), url, cache))) return true;
  if (encodedTexts.length > 0 && encodedTexts.some((text) => isAway(asRead(text)))) return true;
  const relayed = hostAfterRelay(subject, tokens, relays);
  if (relayed !== undefined && isForeignHost(relayed, url, cache)) return true;
  return allParameters(subject).some((parameter) => {
    if (!parameter.mayBePlace(names)) return false;
    const { name, value: text, lists } = parameter;
    const value = asRead(text);
    return isAway(targetInName(name) ?? value) || (lists.includes(names) && isForeignHost(value, url, cache));
  });
}

/** Caches the site of the outer URL: its registrable domain or its host. */
interface SiteCache {
  site: string | undefined;
}

/** Whether a text is a URL of another site than `url`, which contains it. */
function leadsAway(text: string | undefined, url: CanonicalUrl, cache: SiteCache): boolean {
  if (text === undefined) return false;
  // Trailing signs are not part of the host.
  const start = text.slice(0, 600);
  const nested = parseUrl(withoutTail(start)) ?? parseUrl(withoutTail(start.split(NEXT_PARAMETER, 1)[0]!));
  if (nested === undefined) return false;
  cache.site ??= registrableDomain(url.host) ?? url.host;
  return (registrableDomain(nested.host) ?? nested.host) !== cache.site;
}

/** Whether a text without a scheme begins with a host of another site. A file name is not a host. */
function isForeignHost(text: string, url: CanonicalUrl, cache: SiteCache): boolean {
  const host = /^(?:[a-z0-9](?:[a-z0-9-]{0,62})\.){1,8}[a-z]{2,24}(?![a-z0-9]|[._-]+[a-z0-9])/i.exec(text)?.[0];
  if (host === undefined || !hasKnownSuffix(host.toLowerCase())) return false;
  if (host.length === text.length && isFileName(host)) return false;
  return leadsAway(`http://${host}/`, url, cache);
}

/** Whether a name may be a file name, perhaps with an extension that is also a top-level domain. */
function isFileName(name: string): boolean {
  return staticDot(name) >= 0 || /\.(?:app|cc|mov|pl|ps|py|sh|so|zip)$/i.test(name);
}

/** Returns what follows a segment for a relay (`/proxy/evil.org/x`), at most 300 characters; undefined if no segment with a dot follows one. */
function hostAfterRelay({ segments }: Subject, tokens: TokenIndex, relays: number): string | undefined {
  if (!hasSegment(segments, relays)) return undefined;
  const { path } = segments;
  for (let slash = path.indexOf('/', 1), start = 1; slash > 0; ) {
    let next = slash + 1;
    while (path.charCodeAt(next) === 0x2f) next++;
    const end = path.indexOf('/', next);
    const dot = path.indexOf('.', next);
    if (dot < 0) return undefined;
    const isHere = (end < 0 || dot < end) && tokens.findName(path, start, nameEnd(path, start, slash)).includes(relays);
    if (isHere) return path.slice(next, next + 300);
    start = next;
    slash = end;
  }
  return undefined;
}

function hasSegment({ count, lists }: PathSegments, list: number): boolean {
  for (let at = 0; at < count; at++) if (lists[at]!.length > 0 && lists[at]!.includes(list)) return true;
  return false;
}

/**
 * Returns the http or https URL in a path, at most 600 characters from its scheme on. Returns undefined if there is none, or if it follows a
 * timestamp, as in the URLs of web archives (`/2020/https://…`).
 */
function urlInPath(path: string): string | undefined {
  const found = /(?<![a-z0-9+.-])https?:(?:\/+(?=[^/])|(?=[a-z0-9-]{1,63}\.[a-z0-9-]))/i.exec(path);
  if (found === null || /\/[12][0-9]{3,13}[a-z_*]{0,4}\/$/.test(path.slice(0, found.index))) return undefined;
  return path.slice(found.index, found.index + 600);
}
