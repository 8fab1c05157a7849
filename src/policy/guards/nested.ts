/** URLs inside a URL: in a parameter or in the path, once decoded. */
import { domainToASCII } from 'node:url';
import { type CanonicalUrl, decodeOnce, parseUrl } from '../../domain/canonical-url.ts';
import { registrableDomain } from '../../domain/public-suffix.ts';
import { decodeForm } from '../url/parameters.ts';
import type { Subject } from '../url/subject.ts';

const SCHEME_MAX_LENGTH = 16;
/** No URL is shorter in base64. */
const ENCODED_MIN_LENGTH = 12;
// With or without slashes: clients take both for an absolute URL.
const STARTS_AS_URL = /^https?:/i;

/** How a host that a nested URL names is judged. */
export interface InternalPlaces {
  isInternal(url: CanonicalUrl): boolean;
  readonly schemes: ReadonlySet<string>;
  readonly maxUrls: number;
  /** Token list of the parameters whose value is a place even without a scheme. */
  readonly names: number;
  /** Token list of those where a bare number is an address. */
  readonly addressNames: number;
}

/** Whether the URL carries another one that leads to an internal place, or more of them than are looked at. */
export function hasNestedInternal({ url, parameters }: Subject, places: InternalPlaces): boolean {
  const budget = { left: places.maxUrls };
  if (url.decodedPath.includes(':/') && hasInternalUrl(url.decodedPath, places, budget)) return true;
  if (parameters.length === 0) return false;
  if (mayHoldUrl(url.query) && hasInternalUrl(decodeForm(url.query), places, budget)) return true;
  return parameters.some(({ value: text, lists }) => {
    const value = asRead(text);
    if (value.length < 3) return false;
    if (startsLikeHost(value)) return isInternalText(`http:${value}`, places);
    if (STARTS_AS_URL.test(value)) return isInternalText(value, places);
    return isInternalPlace(value, places, lists);
  });
}

/** Whether the value of a parameter for places is an internal one: by its scheme alone, or by its host without a scheme. */
function isInternalPlace(value: string, places: InternalPlaces, lists: readonly number[]): boolean {
  if (lists.includes(places.addressNames) && isAddressNumber(value) && isInternalText(`http://${value}`, places))
    return true;
  if (!lists.includes(places.names)) return false;
  const colon = value.indexOf(':');
  if (colon > 0 && places.schemes.has(value.slice(0, colon).toLowerCase())) return true;
  return isPlace(value) && isInternalText(`http://${value}`, places);
}

/** Whether a colon stands in a query, once decoded. */
function mayHoldUrl(query: string): boolean {
  return /:|%(?:u00)?3a/i.test(query);
}

/** A value as clients read a URL: blanks and control characters in front do not count, nor do line ends and tabs anywhere. */
function asRead(value: string): string {
  // Nearly none has any of them, and the second expression takes several times as long.
  return /^[^!-~]|[\t\n\r]/.test(value) ? value.replace(/^[\s\p{Cc}]+|[\t\n\r]/gu, '') : value;
}

function startsLikeHost(value: string): boolean {
  const first = value.charCodeAt(0);
  const second = value.charCodeAt(1);
  return (first === 0x2f || first === 0x5c) && (second === 0x2f || second === 0x5c);
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
  for (let colon = text.indexOf(':'); colon >= 0; colon = text.indexOf(':', colon + 1)) {
    let start = colon;
    while (start > 0 && colon - start < SCHEME_MAX_LENGTH && isSchemeCode(text.charCodeAt(start - 1))) start--;
    const scheme = text.slice(start, colon).toLowerCase();
    const next = text.charCodeAt(colon + 1);
    const isWeb = scheme === 'http' || scheme === 'https';
    const isUrl = next === 0x2f || next === 0x5c;
    if (isUrl && places.schemes.has(scheme)) return true;
    if (!isUrl || !(isWeb || text.charCodeAt(colon + 2) === 0x2f)) continue;
    if (budget.left-- <= 0) return true;
    if (isInternalText(`${isWeb ? scheme : 'http'}:${untilSpace(text, colon + 1)}`, places)) return true;
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

function isInternalText(text: string, places: InternalPlaces): boolean {
  const start = text.slice(0, 600);
  if (isInternalUrl(parseUrl(start) ?? parseUrl(decodeOnce(start)), places)) return true;
  // Clients to whom a backslash is no slash take what is before the `@` for a user's name.
  return start.includes('\\') && start.includes('@') && isInternalUrl(parseUrl(start.replaceAll('\\', '%5C')), places);
}

function isInternalUrl(url: CanonicalUrl | undefined, places: InternalPlaces): boolean {
  return url !== undefined && url.host !== '' && places.isInternal(url);
}

/** Whether a parameter's whole value is a URL on another site, or the path holds one, or either one in base64. */
export function hasOpenRedirect({ url, parameters }: Subject): boolean {
  const own = { site: undefined };
  if (url.decodedPath.includes(':/') && leadsAway(urlInPath(url.decodedPath), url, own)) return true;
  if (holdsEncodedUrl(url.path) || holdsEncodedUrl(url.query)) return true;
  let left = 16;
  return parameters.some(({ name, value: text }) => {
    const value = asRead(text);
    // A parameter without a name, as relays take the whole URL: its own `=` parts it in two.
    const whole = name.includes(':') ? asRead(name) : '';
    const target = startsLikeHost(value) ? `http:${value}` : STARTS_AS_URL.test(whole) ? whole : value;
    return STARTS_AS_URL.test(target) && (left-- <= 0 || leadsAway(target, url, own));
  });
}

/** Whether a text is a URL on another site than the one it stands in; `own` remembers that. */
function leadsAway(text: string | undefined, url: CanonicalUrl, own: { site: string | undefined }): boolean {
  const other = text === undefined ? undefined : parseUrl(text);
  if (other === undefined) return false;
  own.site ??= registrableDomain(url.host) ?? url.host;
  return (registrableDomain(other.host) ?? other.host) !== own.site;
}

/** A web address in a path, from its scheme on; undefined where there is none, or it names a copy by its time (`/2020/https://…`), as archives do. */
function urlInPath(path: string): string | undefined {
  const found = /(?<![a-z0-9+.-])https?:\/+(?=[^/])/i.exec(path);
  if (found === null || /\/[12][0-9]{3,13}[a-z_*]{0,4}\/$/.test(path.slice(0, found.index))) return undefined;
  return path.slice(found.index, found.index + 600);
}

/** Whether a text holds a word that is `http:/…` or `https:/…` in base64, behind a mark of two letters at most. */
function holdsEncodedUrl(text: string): boolean {
  return (
    text.length > ENCODED_MIN_LENGTH &&
    text.includes('aHR0c') &&
    /(?<![A-Za-z0-9])[a-z0-9]{0,2}aHR0c(?:Dov|HM6L)/.test(text)
  );
}
