/** Page URLs: which of the table's rows may be passed on, which domain and which page type each belongs to. */
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
/** More hosts than this for one type of one domain: it is a host of many sites, and no one page is the domain's. */
const HOSTS_MAX = 3;

/** The key of a host name or URL, if it has one and could be anybody's: not an address, not a public suffix. */
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

/** The domain a page belongs to: the one its source names if the page lies on or below it; else the registrable domain. */
function domainOf(given: string, url: URL, many: ReadonlySet<string>): string | undefined {
  const host = hostOf(url.href);
  if (host === undefined) return undefined;
  if (given !== '') {
    const domain = hostOf(given);
    return domain !== undefined && (host === domain || host.endsWith(`.${domain}`)) ? domain : undefined;
  }
  const domain = registrableDomain(host);
  return domain === undefined || many.has(domain) ? undefined : domain;
}

/** The rows of the page table that the mapping admits. Only rows of a listed source are looked at. */
export function pageFacts(root: string, mapping: SourceMapping): PageFact[] {
  const many = new Set(mapping.pages.hosts_of_many);
  const facts: PageFact[] = [];
  const hosts = new Map<string, Set<string>>();
  for (const line of sourceLines(root, 'page-sources/page-urls.tsv.gz').slice(1)) {
    const [source = '', kind = '', evidence = '', , given = '', text = ''] = line.split('\t');
    if (mapping.sources[source] === undefined || text.length > URL_MAX_LENGTH) continue;
    const url = URL.parse(text);
    // A fragment alone ("#") is a script's link, not a page.
    if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || /[\s<>"`{}|\\^]|#$/.test(text))
      continue;
    const rule = mapping.pages.rules.find(
      ({ from, ...rest }) => from === `${source}:${kind}` && fits({ from, ...rest }, evidence, url),
    );
    const domain = rule === undefined ? undefined : domainOf(given, url, many);
    if (rule === undefined || domain === undefined) continue;
    facts.push({ source, domain, type: rule.type, url: text, evidence, second: rule.second === true });
    if (given === '') {
      const key = `${domain} ${rule.type}`;
      hosts.set(key, (hosts.get(key) ?? new Set()).add(url.hostname));
    }
  }
  return facts.filter(({ domain, type }) => (hosts.get(`${domain} ${type}`)?.size ?? 0) <= HOSTS_MAX);
}

/** Orders candidates for one page: the better evidence, then https, then the shorter, then by bytes. */
export function comparePages(a: PageFact, b: PageFact): number {
  return (
    Number(a.second) - Number(b.second) ||
    EVIDENCE.indexOf(a.evidence) - EVIDENCE.indexOf(b.evidence) ||
    Number(b.url.startsWith('https:')) - Number(a.url.startsWith('https:')) ||
    a.url.length - b.url.length ||
    (a.url < b.url ? -1 : Number(a.url > b.url))
  );
}
