/** Page URLs: selects the table rows that may be redistributed, and determines the domain and page type of each. */
import { keyFromHost } from '../../src/domain/host-key.ts';
import { registrableDomain } from '../../src/domain/public-suffix.ts';
import type { PageRule, SourceMapping } from './mapping.ts';
import { sourceLines } from './sources.ts';

export interface PageFact {
  readonly source: string;
  readonly domain: string;
  readonly type: string;
  readonly url: string;
  readonly evidence: string;
  readonly second: boolean;
}

const EVIDENCE = ['field', 'list', 'label', 'path'];
const URL_MAX_LENGTH = 1024;
/** A domain with more hosts than this for one page type hosts many sites, so none of these pages is the domain's own. */
const HOSTS_MAX = 3;

/** Returns the key of a host name or URL. Undefined if it has none, or if it is an address or a public suffix, which no site owns. */
function hostOf(name: string): string | undefined {
  const parsed = URL.parse(name.includes('://') ? name : `https://${name}`);
  const result = parsed === null ? undefined : keyFromHost(parsed.hostname);
  if (result === undefined || !('key' in result)) return undefined;
  return registrableDomain(result.key) === undefined ? undefined : result.key;
}

function fits(rule: PageRule, evidence: string, url: URL): boolean {
  if (rule.evidence !== undefined && rule.evidence !== evidence) return false;
  const path = (url.pathname + url.search).toLowerCase();
  if (rule.host !== undefined && !new RegExp(rule.host).test(url.hostname.replace(/^www\./, ''))) return false;
  if (rule.path !== undefined && !new RegExp(rule.path).test(path)) return false;
  return rule.not === undefined || !new RegExp(rule.not).test(path);
}

/** Returns the domain that a page belongs to: the one its source names if the page is on it or a subdomain; otherwise the registrable domain. */
function domainOf(named: string, url: URL, many: ReadonlySet<string>): string | undefined {
  const host = hostOf(url.href);
  if (host === undefined) return undefined;
  if (named !== '') {
    const domain = hostOf(named);
    return domain !== undefined && (host === domain || host.endsWith(`.${domain}`)) ? domain : undefined;
  }
  const domain = registrableDomain(host);
  return domain === undefined || many.has(domain) ? undefined : domain;
}

/** Returns the rows of the page table that the mapping accepts. Only rows of a listed source are considered. */
export function pageFacts(root: string, mapping: SourceMapping): PageFact[] {
  const many = new Set(mapping.pages.hosts_of_many);
  const facts: PageFact[] = [];
  const hosts = new Map<string, Set<string>>();
  for (const line of sourceLines(root, 'page-sources/page-urls.tsv.gz').slice(1)) {
    const [source = '', kind = '', evidence = '', , named = '', text = ''] = line.split('\t');
    if (mapping.sources[source] === undefined || text.length > URL_MAX_LENGTH) continue;
    const url = URL.parse(text);
    // A link to an empty fragment ("#") runs a script and is not a page.
    if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || /[\s<>"`{}|\\^]|#$/.test(text))
      continue;
    const rule = mapping.pages.rules.find(
      ({ from, ...rest }) => from === `${source}:${kind}` && fits({ from, ...rest }, evidence, url),
    );
    const domain = rule === undefined ? undefined : domainOf(named, url, many);
    if (rule === undefined || domain === undefined) continue;
    facts.push({ source, domain, type: rule.type, url: text, evidence, second: rule.second === true });
    if (named === '') {
      const key = `${domain} ${rule.type}`;
      hosts.set(key, (hosts.get(key) ?? new Set()).add(url.hostname));
    }
  }
  return facts.filter(({ domain, type }) => (hosts.get(`${domain} ${type}`)?.size ?? 0) <= HOSTS_MAX);
}

/** Orders candidates for one page: better evidence first, then https, then the shorter URL, then by bytes. */
export function comparePages(a: PageFact, b: PageFact): number {
  return (
    Number(a.second) - Number(b.second) ||
    EVIDENCE.indexOf(a.evidence) - EVIDENCE.indexOf(b.evidence) ||
    Number(b.url.startsWith('https:')) - Number(a.url.startsWith('https:')) ||
    a.url.length - b.url.length ||
    (a.url < b.url ? -1 : Number(a.url > b.url))
  );
}
