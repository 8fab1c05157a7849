/** What the sample drop's page URLs look like: hosts, schemes, endings, and for each page type its commonest paths and host names. */
import { Counter } from './counter.ts';

interface PageModel {
  readonly schemes: [number, number];
  /** URLs on the domain itself, on `www.` before it, on another host below it. */
  readonly hosts: [number, number, number];
  readonly endings: [string, number][];
  readonly locales: [string, number][];
  readonly local: [number, number];
  /** For each type: paths without locale and ending, and first labels of other hosts. */
  readonly types: Record<string, { urls: number; paths: [string, number][]; hosts: [string, number][] }>;
  readonly words: string[];
}

const ENDING = /(\/|\.html?|\.php|\.aspx?|\.jsp)$/;
const LOCALE = /^\/((en|de|fr|es|it|pt|nl|pl|ru|ja|zh|ko|sv|da|cs)([-_][a-z]{2})?)(?=\/|$)/i;

export function learnPages(entries: readonly { domain: string; page_types: Record<string, string> }[]): PageModel {
  const schemes: [number, number] = [0, 0];
  const hosts: [number, number, number] = [0, 0, 0];
  const endings = new Counter();
  const locales = new Counter();
  const words = new Counter();
  const types = new Map<string, { urls: number; paths: Counter; hosts: Counter }>();
  let urls = 0;
  for (const { domain, page_types: pages } of entries) {
    for (const [type, text] of Object.entries(pages)) {
      const url = new URL(text);
      urls += 1;
      schemes[url.protocol === 'https:' ? 0 : 1] += 1;
      const place = url.hostname === domain ? 0 : url.hostname === `www.${domain}` ? 1 : 2;
      hosts[place] += 1;
      const learned = types.get(type) ?? { urls: 0, paths: new Counter(), hosts: new Counter() };
      types.set(type, learned);
      learned.urls += 1;
      if (place === 2) learned.hosts.add(url.hostname.slice(0, url.hostname.indexOf('.')).toLowerCase());
      let path = url.pathname;
      const locale = LOCALE.exec(path)?.[1];
      if (locale !== undefined) {
        locales.add(locale);
        path = path.slice(locale.length + 1);
      }
      endings.add(ENDING.exec(path)?.[0] ?? '');
      path = path.replace(ENDING, '');
      if (url.search === '' && path !== '') learned.paths.add(path.toLowerCase());
      for (const word of new Set(path.toLowerCase().split(/[^a-z]+/))) if (/^[a-z]{3,12}$/.test(word)) words.add(word);
    }
  }
  // What only one site has is that site's own: it is left out.
  const shared = (counter: Counter, limit: number): [string, number][] =>
    counter.top(limit).filter(([, count]) => count >= 3);
  return {
    schemes,
    hosts,
    endings: endings.top(6),
    locales: locales.top(16),
    local: [locales.total, urls],
    types: Object.fromEntries(
      [...types]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([type, learned]) => [
          type,
          { urls: learned.urls, paths: shared(learned.paths, 24), hosts: shared(learned.hosts, 8) },
        ]),
    ),
    words: words
      .top(400)
      .filter(([, count]) => count >= 5)
      .map(([word]) => word),
  };
}
