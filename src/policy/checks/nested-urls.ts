/** URLs inside a URL: in a parameter, in the path, or encoded in either, and where they lead. */
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
// With or without slashes: clients take both for an absolute URL.
const STARTS_AS_URL = /^https?:/i;
/** What begins the next parameter, to whoever reads parameters from a path: those of a segment begin at a `;`. */
const NEXT_PARAMETER = /[&;?#]/;
const SCHEME = /^[a-z][a-z0-9-]{1,15}:[^ ]/i;

/** How a host that a nested URL names is judged. */
export interface InternalPlaces {
  /** `isBare`: the value has no scheme, so that its last label may be the extension of a file. */
  isInternal(url: CanonicalUrl, isBare: boolean): boolean;
  readonly schemes: ReadonlySet<string>;
  readonly maxUrls: number;
  readonly tokens: TokenIndex;
  /** Token list of the parameters whose value is a place even without a scheme. */
  readonly names: number;
  /** Token list of those where a bare number is an address. */
  readonly addressNames: number;
  /** Token list of names that servers have inside a network, where they stand for a host alone (`?url=redis`); undefined for none. */
  readonly insideNames: number | undefined;
  /** Token list of segments before a host that the server fetches or leads to. */
  readonly relays: number;
}

/** Whether the URL carries another one that leads to an internal place, or more of them than are looked at. */
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
  const behind = hostBehindRelay(subject, places.tokens, places.relays);
  if (behind !== undefined && isPlace(behind) && isInternalText(`http://${behind}`, places, true)) return true;
  return allParameters(subject).some((parameter) => {
    // Each by itself: what stands in one cannot change where another one leads.
    if (parameter.hasPlaceSign && hasInternalUrl(parameter.text, places, budget)) return true;
    if (!parameter.mayBePlace(places.names, places.addressNames)) return false;
    const { name, value: text, lists } = parameter;
    const whole = wholeTarget(name);
    if (whole !== undefined && isInternalTarget(whole, places)) return true;
    const value = asRead(text);
    if (value.length < 3) return false;
    const isInternal = (target: string): boolean =>
      isInternalTarget(target, places) || isInternalPlace(target, places, lists);
    const bare = withoutTail(value);
    if (isInternal(value) || (bare.length < value.length && isInternal(bare))) return true;
    // A parameter that is encoded into the value.
    const mark = value.search(NEXT_PARAMETER);
    return mark > 0 && isInternal(withoutTail(value.slice(0, mark)));
  });
}

/** Those of the query, and those of a route in the fragment, which the page's own code reads. */
function allParameters({ parameters, routeParameters }: Subject): readonly Parameter[] {
  return routeParameters.length === 0 ? parameters : [...parameters, ...routeParameters];
}

/** A parameter without a name, as relays take a whole URL, whose own `=` splits it in two; undefined where a name is not one. */
function wholeTarget(name: string): string | undefined {
  if (!name.includes(':') && !name.includes('/') && !name.includes('\\')) return undefined;
  const text = asRead(name.replace(/^\?+/, ''));
  return startsLikeHost(text) || STARTS_AS_URL.test(text) ? text : undefined;
}

/** Whether a text may be a target and nothing else: it begins like a host, or with something like a scheme. */
function mayBeTarget(text: string): boolean {
  return startsLikeHost(text) || SCHEME.test(text);
}

/** A value without the signs at its end; the bracket that closes an address is not one. */
function withoutTail(value: string): string {
  const bare = withoutSigns(value);
  return value.charCodeAt(bare.length) === 0x5d && bare.includes('[') ? `${bare}]` : bare;
}

/** Whether a text that names a scheme or a host is an internal one. */
function isInternalTarget(value: string, places: InternalPlaces): boolean {
  if (startsLikeHost(value)) return isInternalText(`http:${value}`, places, false);
  if (STARTS_AS_URL.test(value)) return isInternalText(value, places, false);
  const colon = value.indexOf(':');
  return colon > 0 && places.schemes.has(value.slice(0, colon).toLowerCase()) && SCHEME.test(value);
}

/** Whether the value of a parameter for places is an internal one without a scheme. */
function isInternalPlace(value: string, places: InternalPlaces, lists: readonly number[]): boolean {
  if (lists.includes(places.addressNames)) {
    if (isAddressNumber(value) && isInternalText(`http://${value}`, places, true)) return true;
    if (/^[a-z0-9_-]+:[0-9]{2,5}(?:[/?#]|$)/i.test(value) || isInsideName(value, places)) return true;
  }
  return lists.includes(places.names) && isPlace(value) && isInternalText(`http://${value}`, places, true);
}

/** Whether a value starts with the name of a server inside a network, and nothing but a path or a query follows. */
function isInsideName(value: string, { insideNames, tokens }: InternalPlaces): boolean {
  const name = insideNames === undefined ? undefined : /^[a-z][a-z0-9_-]{0,62}(?=[/?#:]|$)/i.exec(value)?.[0];
  return name !== undefined && tokens.find(name, 0, name.length).includes(insideNames!);
}

/** A value as clients read a URL: blanks, control characters and quotes in front do not count, nor do line ends and tabs anywhere. */
function asRead(value: string): string {
  // Nearly none has any of them, and the second expression takes several times as long.
  return /^[^!-~]|^["'<(]|[\t\n\r]/.test(value) ? value.replace(/^[\s\p{Cc}"'<(]+|[\t\n\r]/gu, '') : value;
}

function startsLikeHost(value: string): boolean {
  return isSlash(value.charCodeAt(0)) && isSlash(value.charCodeAt(1));
}

function isSlash(code: number): boolean {
  return code === 0x2f || code === 0x5c;
}

/** Whether a value without a scheme names a host so that nobody can take it for a number or a word. */
function isPlace(value: string): boolean {
  const authority = value.slice(0, 260).split(/[/\\?#]/, 1)[0]!;
  const host = authority.slice(authority.lastIndexOf('@') + 1).replace(/\.?(:[0-9]*)?$/, '');
  const name = /[^\0-\x7f]/.test(host) ? domainToASCII(host) : host.toLowerCase();
  if (name === 'localhost' || name.startsWith('[')) return true;
  if (/^(0x[0-9a-f]+|0[0-7]+|[0-9]+)(\.(0x[0-9a-f]+|0[0-7]+|[0-9]+)){3}$/.test(name)) return true;
  if (/^(127|0x7f|0+177)(\.(0x[0-9a-f]+|[0-9]+)){1,2}$/.test(name)) return true;
  return /^0x[0-9a-f]{8}$/.test(name) || /[a-z].*\.[a-z]/.test(name);
}

/** Whether a value starts with a whole IPv4 address as one number, decimal or octal. Small ones are counts and ids. */
function isAddressNumber(value: string): boolean {
  return /^(?:[1-9][0-9]{7,9}|0[0-7]{9,12})(?:[:/\\?#]|$)/.test(value) && Number.parseInt(value, 10) >= 2 ** 24;
}

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
    if (isInternalBehindUser(text, colon + 1, places)) return true;
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

/** From `start` up to what ends a URL in running text; a host is never longer than what is kept. */
function untilSpace(text: string, start: number): string {
  return text.slice(start, start + 300).split(/[\s"'<>|,]/, 1)[0]!;
}

function isInternalText(text: string, places: InternalPlaces, isBare: boolean): boolean {
  // Signs behind it in running text are no part of the host, nor is the zone of an address (`[fe80::1%eth0]`).
  const whole = withoutTail(text.slice(0, 600));
  const start = whole.includes('[') ? whole.replace(/(\[[0-9a-f:.]{2,45})%[^\]/]*\]/i, '$1]') : whole;
  const isInternal = (url: CanonicalUrl | undefined): boolean =>
    url !== undefined && url.host !== '' && places.isInternal(url, isBare);
  if (isInternal(parseUrl(start) ?? parseUrl(percentDecodeOnce(start)))) return true;
  const mark = start.search(NEXT_PARAMETER);
  if (mark > 0 && isInternal(parseUrl(withoutTail(start.slice(0, mark))))) return true;
  return isInternalBehindUser(text, text.indexOf(':') + 1, places);
}

/**
 * Whether the `@` before a path, behind the slashes at `start`, is followed by an internal place. What is before it is a user's name, however
 * long it is; to some clients also where a backslash, `?` or `#` stands in it.
 */
function isInternalBehindUser(text: string, start: number, places: InternalPlaces): boolean {
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

/** Token lists that tell where a host of another site stands without a scheme. */
export interface TargetLists {
  readonly tokens: TokenIndex;
  /** Of parameters whose value is where the caller is led to. */
  readonly names: number;
  /** Of segments before a host that the server fetches or leads to. */
  readonly relays: number;
}

/** Whether a parameter's whole value is a URL or a host on another site, or the path holds one, or either one encoded. */
export function hasOpenRedirect(subject: Subject, { tokens, names, relays }: TargetLists): boolean {
  if (!subject.mayLead && !hasSegment(subject.segments, relays)) return false;
  const { url, plainPath, encodedTexts } = subject;
  const own = { site: undefined };
  let left = 16;
  const isAway = (text: string): boolean => {
    const target = startsLikeHost(text) ? `http:${text}` : text;
    return STARTS_AS_URL.test(target) && (left-- <= 0 || leadsAway(target, url, own));
  };
  const paths = plainPath === url.decodedPath ? [plainPath] : [plainPath, url.decodedPath];
  if (paths.some((path) => path.includes(':') && leadsAway(urlInPath(path), url, own))) return true;
  if (encodedTexts.length > 0 && encodedTexts.some((text) => isAway(asRead(text)))) return true;
  const behind = hostBehindRelay(subject, tokens, relays);
  if (behind !== undefined && isForeignHost(behind, url, own)) return true;
  return allParameters(subject).some((parameter) => {
    if (!parameter.mayBePlace(names)) return false;
    const { name, value: text, lists } = parameter;
    const value = asRead(text);
    return isAway(wholeTarget(name) ?? value) || (lists.includes(names) && isForeignHost(value, url, own));
  });
}

interface OwnSite {
  site: string | undefined;
}

/** Whether a text is a URL on another site than the one it stands in; `own` remembers that. */
function leadsAway(text: string | undefined, url: CanonicalUrl, own: OwnSite): boolean {
  if (text === undefined) return false;
  // Signs behind a URL are no part of its host.
  const start = text.slice(0, 600);
  const other = parseUrl(withoutTail(start)) ?? parseUrl(withoutTail(start.split(NEXT_PARAMETER, 1)[0]!));
  if (other === undefined) return false;
  own.site ??= registrableDomain(url.host) ?? url.host;
  return (registrableDomain(other.host) ?? other.host) !== own.site;
}

/** Whether a text begins with a host of another site, without a scheme. The name of a file is not one. */
function isForeignHost(text: string, url: CanonicalUrl, own: OwnSite): boolean {
  const host = /^(?:[a-z0-9](?:[a-z0-9-]{0,62})\.){1,8}[a-z]{2,24}(?![a-z0-9]|[._-]+[a-z0-9])/i.exec(text)?.[0];
  if (host === undefined || !hasKnownSuffix(host.toLowerCase())) return false;
  if (host.length === text.length && isFileName(host)) return false;
  return leadsAway(`http://${host}/`, url, own);
}

/** Whether a name without a path may be one of a file, whose extension is a top-level domain as well. */
function isFileName(name: string): boolean {
  return staticDot(name) >= 0 || /\.(?:app|cc|mov|pl|ps|py|sh|so|zip)$/i.test(name);
}

/** What stands in the path behind a word for a relay (`/proxy/evil.org/x`), from there on; undefined where nothing like a host does. */
function hostBehindRelay({ segments }: Subject, tokens: TokenIndex, relays: number): string | undefined {
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

/** A web address in a path, from its scheme on; undefined where there is none, or it names a copy by its time (`/2020/https://…`), as archives do. */
function urlInPath(path: string): string | undefined {
  const found = /(?<![a-z0-9+.-])https?:(?:\/+(?=[^/])|(?=[a-z0-9-]{1,63}\.[a-z0-9-]))/i.exec(path);
  if (found === null || /\/[12][0-9]{3,13}[a-z_*]{0,4}\/$/.test(path.slice(0, found.index))) return undefined;
  return path.slice(found.index, found.index + 600);
}
