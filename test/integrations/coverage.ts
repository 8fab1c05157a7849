/**
 * For each judged cell of the table in docs/integrations.md, the test that shows it: the file and a part of its title. There is one object for each
 * enforcement point, by its name in the table.
 */
export type Column =
  | 'page'
  | 'redirect hop'
  | 'subresource'
  | 'fetch/XHR'
  | 'WebSocket'
  | 'popup'
  | 'service worker'
  | 'download'
  | 'method of a POST'
  | 'rebinding name'
  | 'other program on the host';

export type Cells = Readonly<Partial<Record<Column, readonly [file: string, title: string]>>>;

const FETCH = 'test/guard/fetch.test.ts';
const EVASION = 'test/guard/evasion.test.ts';
const PLAYWRIGHT = 'test/integrations/playwright.integration.ts';
const PUPPETEER = 'test/integrations/puppeteer.integration.ts';
const BROWSER = 'test/integrations/browser-tests.ts';
const MCP = 'test/guard/mcp.test.ts';
const HOOK = 'test/guard/hook.test.ts';
const PYTHON = 'test/integrations/python/guard_test.py';
const TOUR = 'test/integrations/network/tour.ts';
const TOUR_TESTS = 'test/integrations/network/tour-tests.ts';

/** What holds for every controlled browser, with any driver. */
const DRIVEN: Cells = {
  page: [BROWSER, 'page: an allowed one is shown, a refused one is a page that says why'],
  'redirect hop': [BROWSER, 'redirect hop: %i to a refused page is not followed'],
  subresource: [BROWSER, 'subresource: images, scripts, styles, fonts, frames, prefetches of a page'],
  'fetch/XHR': [BROWSER, 'fetch/XHR: a refused one gets 403, an allowed one its answer'],
  popup: [BROWSER, 'popup: by a link, by a script, and with no opener'],
  download: [BROWSER, 'download: an allowed one arrives, a refused one does not'],
  'method of a POST': [BROWSER, 'method of a POST: forms, fetch, beacons and overriding headers'],
};
const WEBSOCKET: Cells = { WebSocket: [PLAYWRIGHT, 'WebSocket: an allowed one speaks, a refused one is closed'] };
const REBINDING: Cells = {
  'rebinding name': [BROWSER, 'rebinding name: one that is public first and loopback later'],
};

/** A browser behind a proxy is tested by its tour, under the column's name. */
const TOURED: Cells = {
  page: [TOUR, "page: ['GET /tour']"],
  'redirect hop': [TOUR, "'redirect hop': STATUSES"],
  subresource: [TOUR, 'subresource: ['],
  'fetch/XHR': [TOUR, "'fetch/XHR': ["],
  popup: [TOUR, 'popup: ['],
  download: [TOUR, 'download: ['],
  'method of a POST': [TOUR, "'method of a POST': ["],
};
const SECURE: Cells = { ...TOURED, 'service worker': [TOUR, "'service worker': ["] };

const OPENED_TLS: Cells = {
  'other program on the host': [TOUR_TESTS, 'another program on the host is judged by URL and method'],
};

export const CELLS: Readonly<Record<string, Cells>> = {
  'guard library': {
    page: [FETCH, 'rejects with the refusal itself, and nothing is sent'],
    'redirect hop': [FETCH, '%i to a refused page is not'],
    'fetch/XHR': [FETCH, 'fetches what is allowed, and looks up exactly that'],
    WebSocket: [FETCH, 'a WebSocket is judged as a write'],
    download: [FETCH, 'fetches what is allowed, and looks up exactly that'],
    'method of a POST': [FETCH, 'judges the method %s'],
    'rebinding name': [EVASION, 'a name that first has a public address and then loopback reaches nothing internal'],
  },
  Playwright: { ...DRIVEN, ...WEBSOCKET },
  'Playwright with its proxy': { ...DRIVEN, ...WEBSOCKET, ...REBINDING },
  'Puppeteer with its proxy': { ...DRIVEN, ...REBINDING },
  'MCP server': {
    page: [MCP, 'fetch_page refuses what is denied, flagged or internal, with the reason'],
    'redirect hop': [MCP, 'follows a redirect to an allowed page, but not to a refused one'],
    download: [MCP, 'truncates long pages, and accepts no images'],
    'method of a POST': [MCP, 'check_url returns the verdict for the URL and the method'],
    'rebinding name': [MCP, 'fetch_page refuses what is denied, flagged or internal, with the reason'],
  },
  'coding-agent hook': {
    page: [HOOK, '%s: the call %s'],
    download: [HOOK, '%s: the call %s'],
    'method of a POST': [HOOK, 'is for the method that the tool names'],
  },
  'guard for Python': {
    page: [PYTHON, 'def test_cell_page'],
    'redirect hop': [PYTHON, 'def test_cell_redirect_hop'],
    'fetch/XHR': [PYTHON, 'def test_cell_page'],
    download: [PYTHON, 'def test_cell_download'],
    'method of a POST': [PYTHON, 'def test_cell_method'],
    'rebinding name': [PYTHON, 'def test_cell_rebinding_name'],
  },
  mitmproxy: {
    ...SECURE,
    WebSocket: ['test/integrations/mitmproxy.integration.ts', 'WebSocket: judged as a write, before it is opened'],
    'rebinding name': [
      'test/integrations/mitmproxy.integration.ts',
      'a name that is public first and internal later (rebinding)',
    ],
    ...OPENED_TLS,
  },
  'Squid, TLS opened': {
    ...SECURE,
    'rebinding name': [
      'test/integrations/squid-bump.integration.ts',
      'a name that is public first and internal later (rebinding)',
    ],
    ...OPENED_TLS,
  },
  'Squid, plain': {
    ...TOURED,
    'rebinding name': ['test/integrations/squid-browser.integration.ts', 'at first or later (rebinding), is refused'],
    'other program on the host': [
      'test/integrations/squid-browser.integration.ts',
      'other programs on the host are judged',
    ],
  },
  nginx: {
    ...TOURED,
    'other program on the host': [
      'test/integrations/nginx.integration.ts',
      'allow passes, and the full URL and method',
    ],
  },
};

/** The files that start the tour of a browser, for each proxy with cells of the tour. */
export const TOURS: Readonly<Record<string, string>> = {
  mitmproxy: 'test/integrations/mitmproxy.integration.ts',
  'Squid, TLS opened': 'test/integrations/squid-bump.integration.ts',
  'Squid, plain': 'test/integrations/squid-browser.integration.ts',
  nginx: 'test/integrations/nginx-browser.integration.ts',
};

/** The files that run the common tests of controlled browsers. */
export const DRIVERS: Readonly<Record<string, string>> = {
  Playwright: PLAYWRIGHT,
  'Playwright with its proxy': PLAYWRIGHT,
  'Puppeteer with its proxy': PUPPETEER,
};
