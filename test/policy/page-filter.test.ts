/** The filter that looks at a page's text, compared with the full comparison: what the filter rejects must not match. */
import { describe, expect, it } from 'vitest';
import { parseUrl } from '../../src/domain/canonical-url.ts';
import { RequestPlace } from '../../src/policy/layers/page-filter.ts';
import { Subject } from '../../src/policy/subject.ts';
import { NO_EVIDENCE } from '../../src/policy/types.ts';
import { comparableHost } from '../../src/policy/url/host-map.ts';
import { foldedPaths } from '../../src/policy/url/paths.ts';
import { Random } from '../../tools/random.ts';
import { shipped } from './support.ts';

const HOSTS = (
  'example.org www.example.org www.www.example.org a.example.org example.orga www.com a-b.example.org xn--bcher-kva.example ' +
  '127.0.0.1 0x7f.1 a.0x7f example.org. a..example.org -a.example.org _a.example.org'
).split(' ');
const PIECES = (
  'login Login docs docs- a index index.html Index.php default.aspx default defaults in de d i .. . ... a. %2e %61 %2F %3b %20 ; ;v=1 a;b ' +
  'login-- amp am login- login.html login%20 \\ é ~ : @ // login%3Fx login&x=1 docs%23/a tu%CC%88r t%C3%BCr tu lo%C2%ADgin docs%E2%80%8B login.json login.css %26 l%u006fgin l%c1%afgin'
).split(' ');
const TAILS = [
  '',
  '',
  '',
  '/',
  '//',
  '/.',
  '?',
  '?a=1',
  '?page=login',
  '#',
  '#/login',
  '#!/a',
  '#login',
  '#%2Flogin',
  '?a=1#/login',
  '/?a=1',
];

const randomPath = (random: Random): string => {
  let path = random.chance(80) ? '' : '/';
  for (let left = random.below(4); left > 0; left--) path += `/${random.pick(PIECES)}`;
  return path + random.pick(TAILS);
};
const randomPage = (random: Random): string =>
  `${random.chance(80) ? 'https' : 'http'}://${random.pick(HOSTS)}${random.chance(5) ? ':8080' : ''}${randomPath(random)}`;

/** Scheme and host; empty if no path follows, which never happens in the URL standard's own spelling. */
const originOf = (url: string): string => /^https?:\/\/[^/?#]*(?=\/)/.exec(url)?.[0] ?? '';

describe('the cheap look at a page', () => {
  it('never says no to a page that the request is on', () => {
    const random = new Random(7);
    let matches = 0;
    let noes = 0;
    for (let round = 0; round < 60_000; round++) {
      const own = parseUrl(randomPage(random));
      const page = parseUrl(
        random.chance(30) && own !== undefined ? `${own.href}${randomPath(random)}` : randomPage(random),
      );
      if (own === undefined || page === undefined) continue;
      const host = comparableHost(own.host);
      const type = random.pick(['login', 'pricing', 'docs', 'download']);
      const subject = new Subject({ url: own, method: 'GET' }, NO_EVIDENCE, shipped.tokens);
      const match = shipped.pages.matchPage(subject, { type, url: page.href });
      // Between other texts, which are not part of it.
      const text = `/x"${page.href}"/a`;
      const place = new RequestPlace({ host, paths: foldedPaths(own.decodedPath, own.queryMark) });
      const may = place.mayBeOn(Buffer.from(text), 3, text.length - 3);
      expect([own.href, page.href, may || match === undefined]).toEqual([own.href, page.href, true]);
      expect(place.mayBeOnText(page.href)).toBe(may);
      if (match !== undefined) matches++;
      if (!may) noes++;
    }
    expect(matches).toBeGreaterThan(1_000);
    expect(noes).toBeGreaterThan(10_000);
  });

  it('says the same of a page alone and among others, in any order', () => {
    const random = new Random(8);
    for (let round = 0; round < 500; round++) {
      const urls = Array.from({ length: 8 }, () => randomPage(random));
      const own = parseUrl(randomPage(random));
      if (own === undefined) continue;
      const host = comparableHost(own.host);
      const among = new RequestPlace({ host, paths: foldedPaths(own.decodedPath, own.queryMark) });
      const text = urls.map((url) => `"${url}"`).join(',');
      let originBefore = '';
      for (let look = 0; look < 16; look++) {
        const at = random.below(urls.length);
        const start = urls.slice(0, at).reduce((sum, url) => sum + url.length + 3, 1);
        const url = urls[at]!;
        expect(text.slice(start, start + url.length)).toBe(url);
        const place = new RequestPlace({ host, paths: foldedPaths(own.decodedPath, own.queryMark) });
        const alone = place.mayBeOn(Buffer.from(url, 'latin1'), 0, url.length);
        const isHostOfBefore = originOf(url) !== '' && originOf(url) === originBefore;
        expect(among.mayBeOn(Buffer.from(text, 'latin1'), start, start + url.length, isHostOfBefore)).toBe(alone);
        originBefore = originOf(url);
      }
    }
  });
});
