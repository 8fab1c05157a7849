/** A request and the parsed parts of its URL. Most parts are computed once, when a layer first needs them. */
import type { CanonicalUrl } from '../domain/canonical-url.ts';
import { percentDecodeOnce } from '../domain/percent-decode.ts';
import { plainText } from '../domain/plain-text.ts';
import { type EncodedLabel, encodedLabels } from './checks/host-names.ts';
import { type HostAddress, readAddress } from './ip-ranges.ts';
import type { Evidence, Request } from './types.ts';
import { encodedTexts, NO_TEXTS } from './url/encoded-texts.ts';
import { fragmentQuery, queryInPath } from './url/hidden-parts.ts';
import { comparableHost } from './url/host-map.ts';
import { NO_PARAMETERS, type Parameter, parametersOf } from './url/parameters.ts';
import { type PathSegments, SEGMENT_HAS } from './url/path-segments.ts';
import { foldedPaths } from './url/paths.ts';
import type { TokenIndex } from './words/tokens.ts';

/** One request for a verdict. */
export class Subject implements Request {
  readonly url: CanonicalUrl;
  readonly method: string;
  /** True for GET, HEAD and OPTIONS, which a separate rule flags. Every other method is a write. */
  readonly isRead: boolean;
  /** The host without leading `www.` labels. */
  readonly host: string;
  readonly evidence: Evidence;
  /** Whether the request is on a verified page whose type is allowed, so that its path needs no further rules. Set by the verified-page layer. */
  isOnReadablePage = false;
  readonly #tokens: TokenIndex;
  #paths: readonly string[] | undefined;
  #parameters: readonly Parameter[] | undefined;
  #queryParameters: readonly Parameter[] | undefined;
  #listedParameters: readonly Parameter[] | undefined;
  #encodedTexts: readonly string[] | undefined;
  #encodedLabels: readonly EncodedLabel[] | undefined;
  #plainPath: string | undefined;
  #decodedQuery: string | undefined;
  #mayLead: boolean | undefined;

  /** @param tokens token index of the policy; it caches the segments of the last path */
  constructor({ url, method }: Request, evidence: Evidence, tokens: TokenIndex) {
    this.url = url;
    this.method = method;
    this.isRead = method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
    this.host = comparableHost(url.host);
    this.evidence = evidence;
    this.#tokens = tokens;
  }

  /** Whether the URL has anything after its host but the slash of the root. */
  get isBeyondHost(): boolean {
    const { decodedPath, query, fragment } = this.url;
    return decodedPath.length > 1 || query !== '' || fragment !== '';
  }

  /** The IP address of the host; undefined for a domain. */
  get address(): HostAddress | undefined {
    return this.url.hostKind === 'domain' ? undefined : readAddress(this.url.host);
  }

  /** The labels of the host that are in another script. */
  get encodedLabels(): readonly EncodedLabel[] {
    this.#encodedLabels ??= encodedLabels(this.host);
    return this.#encodedLabels;
  }

  /** The segments of the decoded path. Valid until the token index parses another path. */
  get segments(): PathSegments {
    return this.#tokens.segments(this.url.decodedPath);
  }

  /** The folded forms of the path; see {@link foldedPaths}. */
  get paths(): readonly string[] {
    this.#paths ??= foldedPaths(this.url.decodedPath, this.url.queryMark);
    return this.#paths;
  }

  /** The parameters of the query. */
  get queryParameters(): readonly Parameter[] {
    if (this.url.query === '') return NO_PARAMETERS;
    this.#queryParameters ??= parametersOf(this.url.query, this.#tokens);
    return this.#queryParameters;
  }

  /** The parameters of a query inside the path (`/a%3Fpage=login`), then those of the query. */
  get parameters(): readonly Parameter[] {
    if (this.url.queryMark < 0) return this.queryParameters;
    if (this.#parameters === undefined) {
      const inPath = parametersOf(queryInPath(this.url), this.#tokens);
      this.#parameters = inPath.length === 0 ? this.queryParameters : [...inPath, ...this.queryParameters];
    }
    return this.#parameters;
  }

  /** The {@link parameters} whose names are in a token list. */
  get listedParameters(): readonly Parameter[] {
    const { parameters } = this;
    if (parameters.length === 0) return NO_PARAMETERS;
    this.#listedParameters ??= parameters.filter(({ lists }) => lists.length > 0);
    return this.#listedParameters;
  }

  /** The decoded path in plain letters; see {@link plainText}. */
  get plainPath(): string {
    const { decodedPath, isPlain } = this.url;
    this.#plainPath ??= isPlain ? decodedPath : plainText(decodedPath);
    return this.#plainPath;
  }

  /** The query with its percent escapes decoded once. */
  get decodedQuery(): string {
    this.#decodedQuery ??= percentDecodeOnce(this.url.query);
    return this.#decodedQuery;
  }

  /** The decoded base64 and hexadecimal texts in path and query. */
  get encodedTexts(): readonly string[] {
    if (this.#encodedTexts === undefined) {
      const { decodedPath, isPlain } = this.url;
      const inPath = isPlain && !this.segments.hasEncoded ? NO_TEXTS : encodedTexts(decodedPath, !isPlain);
      const inQuery = this.url.query === '' ? NO_TEXTS : encodedTexts(this.decodedQuery, !isPlain);
      this.#encodedTexts = inQuery.length === 0 ? inPath : [...inPath, ...inQuery];
    }
    return this.#encodedTexts;
  }

  /** Whether a parameter, a colon in the path or an encoded text may hold another URL. Ignores words for relays in the path. */
  get mayLead(): boolean {
    if (this.#mayLead === undefined) {
      const { signs, isCut } = this.segments;
      const hasColon = (signs & SEGMENT_HAS.colon) !== 0 || isCut || this.plainPath !== this.url.decodedPath;
      const { length } = this.url.fragment === '' ? this.parameters : [...this.parameters, ...this.routeParameters];
      this.#mayLead = hasColon || length > 0 || this.encodedTexts.length > 0;
    }
    return this.#mayLead;
  }

  /** The parameters of a route in the fragment (`#/?page=login`). */
  get routeParameters(): readonly Parameter[] {
    return this.url.fragment === '' ? NO_PARAMETERS : parametersOf(fragmentQuery(this.url), this.#tokens);
  }
}
