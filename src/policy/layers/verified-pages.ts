/** The layer of verified pages: compares a URL with the verified pages of its domain. */
import { type CanonicalUrl, parseUrl, queryStartIn } from '../../domain/canonical-url.ts';
import type { PageFilter } from '../../record/types.ts';
import type { PolicyDocument } from '../documents.ts';
import type { Subject } from '../subject.ts';
import type { PageEvidence, Verdict } from '../types.ts';
import { fragmentRoute, looseRoute } from '../url/hidden-parts.ts';
import { comparableHost } from '../url/host-map.ts';
import { type Parameter, parametersOf } from '../url/parameters.ts';
import { dropExtension, foldedPaths, foldIndex, foldPath, isBelow, withoutLastSlash } from '../url/paths.ts';
import { nameEnd, withoutSigns } from '../url/segments.ts';
import type { TokenIndex } from '../words/tokens.ts';
import { type Ask, verdictOf } from './layer.ts';
import { RequestPlace } from './page-filter.ts';

/** A verified page that the request is on. */
interface PageMatch {
  readonly verdict: Verdict;
  readonly url: string;
  /** The length of the page's path. */
  readonly length: number;
  /** Position of the type in the policy. */
  readonly order: number;
}

const RANK = { deny: 2, flag: 1, allow: 0 } as const;

/** Whether a URL is on a page. `maybe`: the URL has an additional parameter that may lead to another page. */
type OnPage = 'yes' | 'maybe' | 'no';

interface PageType {
  readonly verdict: Verdict;
  /** The verdict for a URL that is only maybe on such a page. */
  readonly uncertain: Verdict;
  /** Position of the type in the policy. */
  readonly order: number;
}

/** The compiled layer: the verdict of each page type, and the words and parameters that identify a page. */
export class PageLayer {
  readonly #types: ReadonlyMap<string, PageType>;
  readonly #tokens: TokenIndex;
  /** For each token list: 1 if its words identify a page's purpose. */
  readonly #identifying: Uint8Array;
  /** Token list of the query names that do not identify a page. */
  readonly #ignoredNames: number;

  constructor(document: PolicyDocument, tokens: TokenIndex) {
    const {
      page_types: pageTypes,
      identifying_lists: identifyingLists,
      ignored_query_names: ignoredQueryNames,
    } = document;
    this.#types = new Map(
      pageTypes.map(({ type, verdict, note }, order) => [
        type,
        {
          verdict: verdictOf(verdict, 'page_type_db', type, note),
          uncertain: verdictOf('flag', 'page_type_db', type, note),
          order,
        },
      ]),
    );
    this.#tokens = tokens;
    this.#identifying = new Uint8Array(tokens.names.length);
    for (const name of identifyingLists) this.#identifying[tokens.ordinal(name)] = 1;
    this.#ignoredNames = tokens.ordinal(ignoredQueryNames);
  }

  /** Returns the verified page that decides: deny before flag before allow, then the longest path, then the order of the types. */
  match(subject: Subject): PageMatch | undefined {
    let place: RequestPlace | undefined;
    const mayMatter: PageFilter = (bytes, start, end, isHostOfBefore) => {
      place ??= new RequestPlace(subject);
      return place.mayBeOn(bytes, start, end, isHostOfBefore);
    };
    const pages = subject.evidence.pages(mayMatter);
    if (Array.isArray(pages)) {
      if (pages.length === 0) return undefined;
      // A single page has most likely passed the filter already.
      if (pages.length === 1) return this.matchPage(subject, pages[0] as PageEvidence);
    }
    let best: PageMatch | undefined;
    const visit = (page: PageEvidence): void => {
      place ??= new RequestPlace(subject);
      if (place.mayBeOnText(page.url)) best = better(best, this.matchPage(subject, page));
    };
    if (Array.isArray(pages)) for (let at = 0; at < pages.length; at++) visit(pages[at] as PageEvidence);
    else for (const page of pages) visit(page);
    return best;
  }

  /** Returns the match of a request with a verified page; undefined if the request is not on it. */
  matchPage(subject: Subject, { type: name, url: text }: PageEvidence): PageMatch | undefined {
    const type = this.#types.get(name);
    if (type === undefined) return undefined;
    const url = text === subject.url.href ? subject.url : parseUrl(text);
    if (url === undefined || comparableHost(url.host) !== subject.host) return undefined;
    const isReadable = type.verdict.verdict === 'allow';
    const onPage = isReadable ? this.#onExactPage(subject, url) : this.#onPageOrBelow(subject, url);
    if (onPage === 'no') return undefined;
    const verdict = onPage === 'maybe' ? type.uncertain : type.verdict;
    return { verdict, order: type.order, url: text, length: url.path.length };
  }

  /** Whether a URL is on or below a page whose type is denied or flagged. */
  #onPageOrBelow(subject: Subject, page: CanonicalUrl): OnPage {
    const pagePath = barePath(page.decodedPath);
    const folder = foldIndex(pagePath);
    const route = folder === '' ? barePath(fragmentRoute(page) ?? '') : '';
    if (route !== '' && !isOnRoute(subject.url, route)) return 'no';
    const isSame = subject.paths.some((path) => isSamePage(path, pagePath, folder));
    const identifying = this.#identifyingQuery(page);
    if (identifying !== undefined) return isSame && hasAll(subject.parameters, identifying, folded) ? 'yes' : 'no';
    if (pagePath !== '' && subject.paths.some((path) => isBelow(path, pagePath))) return 'yes';
    if (!isSame) return 'no';
    return folder === '' && route === '' && this.#identifiesPage(subject.parameters) ? 'maybe' : 'yes';
  }

  /** Whether there is an identifying parameter with a value. */
  #identifiesPage(parameters: readonly Parameter[]): boolean {
    return parameters.some(({ hasValue, lists }) => hasValue && !lists.includes(this.#ignoredNames));
  }

  /** Whether a read is on exactly this page, whose type is allowed. */
  #onExactPage({ isRead, url, queryParameters }: Subject, page: CanonicalUrl): OnPage {
    if (!isRead || withoutLastSlash(url.decodedPath) !== withoutLastSlash(page.decodedPath)) return 'no';
    const identifying = this.#identifyingQuery(page);
    return identifying === undefined || hasAll(queryParameters, identifying, asWritten) ? 'yes' : 'no';
  }

  /** Returns the identifying parameters of a page whose path does not name its purpose (`/index.php?page=login`); undefined if it has none. */
  #identifyingQuery(page: CanonicalUrl): Map<string, string> | undefined {
    if (page.query === '' || this.#namesPurpose(foldPath(page.decodedPath))) return undefined;
    const parameters = new Map<string, string>();
    for (const { name, value, lists } of parametersOf(page.query, this.#tokens)) {
      if (!lists.includes(this.#ignoredNames)) parameters.set(name, value);
    }
    return parameters.size === 0 ? undefined : parameters;
  }

  /** Whether a segment of the path is a word for the page's purpose. */
  #namesPurpose(path: string): boolean {
    for (let start = 1; start < path.length; ) {
      let end = path.indexOf('/', start);
      if (end < 0) end = path.length;
      const lists = this.#tokens.findName(path, start, nameEnd(path, start, end));
      if (lists.some((list) => this.#identifying[list] === 1)) return true;
      start = end + 1;
    }
    return false;
  }
}

export const pageVerdict: Ask<{ readonly pages: PageLayer }> = ({ pages }, subject, all) => {
  const verdict = pages.match(subject)?.verdict;
  subject.isOnReadablePage = verdict?.verdict === 'allow';
  if (verdict !== undefined) all?.push(verdict);
  return verdict;
};

function better(best: PageMatch | undefined, match: PageMatch | undefined): PageMatch | undefined {
  if (best === undefined || match === undefined) return best ?? match;
  const rank = RANK[match.verdict.verdict] - RANK[best.verdict.verdict];
  if (rank !== 0) return rank > 0 ? match : best;
  if (match.length !== best.length) return match.length > best.length ? match : best;
  return match.order < best.order ? match : best;
}

/** Returns a page's folded path without trailing signs. A path of nothing but signs keeps them: it is not the root. */
function barePath(decodedPath: string): string {
  const path = foldPath(decodedPath);
  return withoutSigns(path) || path;
}

/** Whether a form of a request's path is the page's path. `folder` is the page's path without its index file. */
function isSamePage(path: string, pagePath: string, folder: string): boolean {
  if (path === pagePath || path === folder) return true;
  return dropExtension(path) === pagePath || dropExtension(pagePath) === path;
}

/** Whether a URL's fragment is a folded route of a page, or a route below it. */
function isOnRoute(url: CanonicalUrl, route: string): boolean {
  const urlRoute = looseRoute(url);
  return foldedPaths(urlRoute, queryStartIn(urlRoute)).some((path) => isBelow(path, route));
}

type Form = (text: string) => string;
const asWritten: Form = (text) => text;
/** Lower case, without leading question marks, trailing signs, and anything from an encoded `&` or a `;` on. */
const folded: Form = (text) => withoutSigns(/^\?*([^&;]*)/.exec(text)![1]!).toLowerCase();

/** Whether the parameters include all wanted ones. Names and values are compared in the given form. Further parameters do not matter. */
function hasAll(parameters: readonly Parameter[], wanted: ReadonlyMap<string, string>, form: Form): boolean {
  for (const [name, value] of wanted) {
    const isWanted = (one: Parameter): boolean => form(one.name) === form(name) && form(one.value) === form(value);
    if (!parameters.some(isWanted)) return false;
  }
  return true;
}
