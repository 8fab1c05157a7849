/** A request, and what is read of its URL: each part once, when a layer first asks for it. */
import type { CanonicalUrl } from '../domain/canonical-url.ts';
import { percentDecodeOnce } from '../domain/percent-decode.ts';
import { plainText } from '../domain/plain-text.ts';
import { type HostAddress, readAddress } from './ip-ranges.ts';
import type { Evidence, Request } from './types.ts';
import { encodedTexts } from './url/encoded-texts.ts';
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
  /** GET and HEAD read; OPTIONS reads too, but is flagged by a rule of its own; everything else writes. */
  readonly isRead: boolean;
  /** The host, without `www.` labels. */
  readonly host: string;
  readonly evidence: Evidence;
  /** Whether the request is on a page verified as good to read, so that its path says no more; set by the layer that finds out. */
  isOnReadablePage = false;
  readonly #tokens: TokenIndex;
  #paths: readonly string[] | undefined;
  #parameters: readonly Parameter[] | undefined;
  #ownParameters: readonly Parameter[] | undefined;
  #listedParameters: readonly Parameter[] | undefined;
  #encodedTexts: readonly string[] | undefined;
  #plainPath: string | undefined;
  #decodedQuery: string | undefined;
  #mayLead: boolean | undefined;

  /** @param tokens of the policy that is asked; what they remember of a path is used again */
  constructor({ url, method }: Request, evidence: Evidence, tokens: TokenIndex) {
    this.url = url;
    this.method = method;
    this.isRead = method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
    this.host = comparableHost(url.host);
    this.evidence = evidence;
    this.#tokens = tokens;
  }

  /** The address of the host; undefined for a domain. */
  get address(): HostAddress | undefined {
    return this.url.hostKind === 'domain' ? undefined : readAddress(this.url.host);
  }

  /** The decoded path, taken apart. What is answered holds until another path is. */
  get segments(): PathSegments {
    return this.#tokens.segments(this.url.decodedPath);
  }

  /** The folded forms of the path, see {@link foldedPaths}. */
  get paths(): readonly string[] {
    this.#paths ??= foldedPaths(this.url.decodedPath, this.url.queryMark);
    return this.#paths;
  }

  /** Parameters of the query. */
  get ownParameters(): readonly Parameter[] {
    this.#ownParameters ??= parametersOf(this.url.query, this.#tokens);
    return this.#ownParameters;
  }

  /** The same, and before them what stands in the path as a query. */
  get parameters(): readonly Parameter[] {
    if (this.#parameters === undefined) {
      const inPath = parametersOf(queryInPath(this.url), this.#tokens);
      this.#parameters = inPath.length === 0 ? this.ownParameters : [...inPath, ...this.ownParameters];
    }
    return this.#parameters;
  }

  /** Those of {@link parameters} whose names are in a token list. */
  get listedParameters(): readonly Parameter[] {
    const { parameters } = this;
    this.#listedParameters ??=
      parameters.length === 0 ? NO_PARAMETERS : parameters.filter(({ lists }) => lists.length > 0);
    return this.#listedParameters;
  }

  /** The decoded path in plain letters, see {@link plainText}. */
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

  /** What stands in base64 or hexadecimal in path or query, decoded. */
  get encodedTexts(): readonly string[] {
    if (this.#encodedTexts === undefined) {
      const { decodedPath, isPlain } = this.url;
      const inPath = encodedTexts(decodedPath, !isPlain);
      const inQuery = encodedTexts(this.decodedQuery, !isPlain);
      this.#encodedTexts = inQuery.length === 0 ? inPath : [...inPath, ...inQuery];
    }
    return this.#encodedTexts;
  }

  /** Whether a parameter, a colon in the path or an encoded text may name another place. Words for relays in the path are not looked at. */
  get mayLead(): boolean {
    if (this.#mayLead === undefined) {
      const { signs, isCut } = this.segments;
      const hasColon = (signs & SEGMENT_HAS.colon) !== 0 || isCut || this.plainPath !== this.url.decodedPath;
      const { length } = this.url.fragment === '' ? this.parameters : [...this.parameters, ...this.routeParameters];
      this.#mayLead = hasColon || length > 0 || this.encodedTexts.length > 0;
    }
    return this.#mayLead;
  }

  /** Parameters of a route in the fragment. */
  get routeParameters(): readonly Parameter[] {
    return this.url.fragment === '' ? NO_PARAMETERS : parametersOf(fragmentQuery(this.url), this.#tokens);
  }
}
