/**
 * Which test shows that a cell of the table of proxies in docs/integrations.md is judged: file and words of it. One object for each
 * point, under the point's name in the table. What a browser does is tried by its tour, under the column's own name.
 */
export type Cells = Readonly<Record<string, readonly [file: string, words: string]>>;

const TOUR = 'test/integrations/network/tour.ts';
const PYTHON = 'test/integrations/python/guard_test.py';

const BROWSER: Cells = {
  page: [TOUR, "page: ['GET /tour']"],
  'redirect hop': [TOUR, "'redirect hop': STATUSES"],
  subresource: [TOUR, 'subresource: ['],
  'fetch/XHR': [TOUR, "'fetch/XHR': ["],
  popup: [TOUR, 'popup: ['],
  download: [TOUR, 'download: ['],
  'method of a POST': [TOUR, "'method of a POST': ["],
};
const SECURE: Cells = { ...BROWSER, 'service worker': [TOUR, "'service worker': ["] };

const proxy = (file: string, rebinding: string, other: string): Cells => ({
  'rebinding name': [file, rebinding],
  'other program on the host': [file, other],
});

export const PROXY_CELLS: Readonly<Record<string, Cells>> = {
  mitmproxy: {
    ...SECURE,
    WebSocket: ['test/integrations/mitmproxy.integration.ts', 'WebSocket: judged as a write, before it is opened'],
    ...proxy(
      'test/integrations/mitmproxy.integration.ts',
      'a name that leads outside first and inside then (rebinding)',
      'another program on the host',
    ),
  },
  'Squid, TLS opened': {
    ...SECURE,
    ...proxy(
      'test/integrations/squid-bump.integration.ts',
      'a name that leads outside first and inside then (rebinding)',
      'another program on the host is judged by URL and method',
    ),
  },
  'Squid, plain': {
    ...BROWSER,
    ...proxy(
      'test/integrations/squid-browser.integration.ts',
      'or does so later (rebinding), is refused',
      'other programs on the host are judged',
    ),
  },
  nginx: {
    ...BROWSER,
    'other program on the host': [
      'test/integrations/nginx.integration.ts',
      'allow passes, and the full URL and method',
    ],
  },
  'guard for Python': {
    page: [PYTHON, 'def test_cell_page'],
    'redirect hop': [PYTHON, 'def test_cell_redirect_hop'],
    'fetch/XHR': [PYTHON, 'def test_cell_page'],
    download: [PYTHON, 'def test_cell_download'],
    'method of a POST': [PYTHON, 'def test_cell_method'],
    'rebinding name': [PYTHON, 'def test_cell_rebinding_name'],
  },
};

/** The files that send a browser on its tour, for each proxy that the tour's cells are claimed for. */
export const TOURS: Readonly<Record<string, string>> = {
  mitmproxy: 'test/integrations/mitmproxy.integration.ts',
  'Squid, TLS opened': 'test/integrations/squid-bump.integration.ts',
  'Squid, plain': 'test/integrations/squid-browser.integration.ts',
  nginx: 'test/integrations/nginx-browser.integration.ts',
};
