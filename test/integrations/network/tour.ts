/**
 * A page that tries every way out of a browser, and the stand-in that judges it: URLs with the word `denied` are denied, and so are writes whose path
 * does not contain `write`. At the end the page reports its result for each way.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createJudge, type Judge, verdict } from '../world.ts';
import type { Page } from './internet.ts';

export const HOME = 'https://good.example.com';
export const OTHER = 'denied.example.com';
/** The page's result for each way out. */
export type Report = Readonly<Record<string, string | number | boolean | null>>;
export const STATUSES = [301, 302, 303, 307, 308] as const;

const html =
  (text: string): Page =>
  (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><title>tour</title>${text}`);
  };
const script =
  (text: string): Page =>
  (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/javascript' }).end(text);
  };

const fileText = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');

/** The pages of the tour, for all hosts. `report` gets the results of the page. */
export const tourPages = (report: (seen: Report) => void): Readonly<Record<string, Page>> => ({
  '/tour': html('<body><script src="/tour.js"></script></body>'),
  '/tour.js': script(
    `const OTHER = '${OTHER}';\nconst STATUSES = ${JSON.stringify(STATUSES)};\n${fileText('tour-page.js')}`,
  ),
  '/sw.js': script(fileText('tour-worker.js')),
  '/ok.svg': (_request, response) => {
    response.writeHead(200, { 'content-type': 'image/svg+xml' }).end('<svg xmlns="http://www.w3.org/2000/svg"/>');
  },
  '/go': (request, response) => {
    const { searchParams } = new URL(request.url!, HOME);
    response.writeHead(Number(searchParams.get('status')), { location: searchParams.get('to')! }).end();
  },
  '/refresh': html('<meta http-equiv="refresh" content="0;url=/denied-refresh">'),
  '/script': html("<script>location.href = '/denied-script'</script>"),
  '/form': html(
    '<form method="post" action="/ok-form"><input name="a"></form><script>document.forms[0].submit()</script>',
  ),
  '/ok-popup': html(
    [
      "<a href='/denied-download' download></a>",
      // A click on a link may cancel pending fetches.
      "<script>Promise.allSettled([fetch('/ok-popup-loaded'), fetch('/denied-popup-fetch')])",
      ".then(() => document.querySelector('a').click())</script>",
    ].join(''),
  ),
  '/ok-download': (_request, response) => {
    response.writeHead(200, { 'content-disposition': 'attachment; filename="file"' }).end('file');
  },
  '/write-report': (request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      report(JSON.parse(text));
      response.end();
    });
  },
});

/** Requests that must have been judged, allowed or not. */
export const JUDGED: Readonly<Record<string, readonly string[]>> = {
  page: ['GET /tour'],
  'redirect hop': STATUSES.flatMap((status) => [`GET /denied-hop-${status}`, `GET /ok-hop-${status}`]),
  'redirect hop to another host': STATUSES.map((status) => `GET https://${OTHER}/hop-${status}`),
  'meta refresh and script': ['GET /denied-refresh', 'GET /denied-script'],
  subresource: ['GET /denied.svg', 'GET /ok.svg', 'GET /denied.js', 'GET /denied.css', 'GET /denied-frame'],
  'fetch/XHR': ['GET /denied-fetch', 'GET /ok-fetch', 'GET /denied-xhr'],
  'method of a POST': ['POST /ok-post', 'POST /write-post', 'PUT /ok-put', 'POST /ok-form', 'POST /ok-beacon'],
  'service worker': ['GET /sw.js', 'GET /denied-worker', 'GET /ok-worker'],
  popup: ['GET /denied-popup', 'GET /ok-popup', 'GET /ok-popup-loaded', 'GET /denied-popup-fetch'],
  download: ['GET /denied-download', 'GET /ok-download'],
};

export const atHome = (line: string): string => line.replace(' /', ` ${HOME}/`);

function isDenied(url: string, method: string): boolean {
  const parsed = URL.parse(url);
  // An invalid host: Squid escapes the brackets of an address.
  if (parsed === null) return true;
  const { hostname, pathname } = parsed;
  return `${hostname}${pathname}`.includes('denied') || (method !== 'GET' && !pathname.startsWith('/write'));
}

/** The judge of the tour. It accepts repeated lookups. */
export const createTourJudge = (): Promise<Judge> =>
  createJudge((url, method) => (isDenied(url, method) ? verdict('deny', 'by_tour') : verdict('allow')));

/** Returns the received requests that should not have reached a site. */
export const wronglyReached = (reached: readonly string[]): string[] =>
  reached.filter((line) => {
    const [method = '', url = ''] = line.split(' ');
    return isDenied(url, method === 'OPEN' ? 'POST' : method);
  });

/** Waits for an asynchronous action of a browser. If it does not happen, the following tests fail. */
export async function until(condition: () => boolean, seconds = 90): Promise<void> {
  for (let attempt = 0; attempt < seconds * 10 && !condition(); attempt += 1) await sleep(100);
}
