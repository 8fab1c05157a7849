/**
 * Which test shows that a cell of the table in docs/integrations.md is judged: file and the words of its title. One object for each
 * point, under the point's name in the table.
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
const MCP = 'test/guard/mcp.test.ts';
const HOOK = 'test/guard/hook.test.ts';
const NGINX = 'test/integrations/nginx.integration.ts';

const BROWSER: Cells = {
  page: [PLAYWRIGHT, 'page: an allowed one is shown, a refused one is a page that says why'],
  'redirect hop': [PLAYWRIGHT, 'redirect hop: %i to a refused page is not followed'],
  subresource: [PLAYWRIGHT, 'subresource: images, scripts, styles, fonts, frames, prefetches of a page'],
  'fetch/XHR': [PLAYWRIGHT, 'fetch/XHR: a refused one gets 403, an allowed one its answer'],
  WebSocket: [PLAYWRIGHT, 'WebSocket: an allowed one speaks, a refused one is closed'],
  popup: [PLAYWRIGHT, 'popup: by a link, by a script, and with no opener'],
  'service worker': [PLAYWRIGHT, 'service worker: its script, what it imports and what it fetches'],
  download: [PLAYWRIGHT, 'download: an allowed one arrives, a refused one does not'],
  'method of a POST': [PLAYWRIGHT, 'method of a POST: forms, fetch, beacons and overriding headers'],
};

const ANY_REQUEST = [NGINX, 'allow passes, and the full URL and method were judged'] as const;

export const CELLS: Readonly<Record<string, Cells>> = {
  'guard library': {
    page: [FETCH, 'rejects with the refusal itself, and nothing is sent'],
    'redirect hop': [FETCH, '%i to a refused page is not'],
    'fetch/XHR': [FETCH, 'fetches what is allowed, and asks about exactly that'],
    WebSocket: [FETCH, 'a WebSocket is judged as the read that opens it'],
    download: [FETCH, 'fetches what is allowed, and asks about exactly that'],
    'method of a POST': [FETCH, 'judges the method %s'],
    'rebinding name': [EVASION, 'a name that leads outside first and to loopback then reaches nothing inside'],
  },
  Playwright: BROWSER,
  'Playwright with its proxy': {
    ...BROWSER,
    'rebinding name': [PLAYWRIGHT, 'rebinding name: one that leads outside first and to loopback then'],
  },
  'MCP server': {
    page: [MCP, 'fetch_page refuses what is denied, flagged or leads inside, with the reason'],
    'redirect hop': [MCP, 'follows a redirect to an allowed page, and none to a refused one'],
    download: [MCP, 'cuts what is long, and takes no pictures'],
    'method of a POST': [MCP, 'check_url tells the verdict for the URL and the method'],
    'rebinding name': [MCP, 'fetch_page refuses what is denied, flagged or leads inside, with the reason'],
  },
  'coding-agent hook': {
    page: [HOOK, '%s: the call %s'],
    download: [HOOK, '%s: the call %s'],
    'method of a POST': [HOOK, 'is for the method that the tool names'],
  },
  nginx: {
    page: ANY_REQUEST,
    'redirect hop': [NGINX, 'a redirect is handed to the agent, whose next request is judged like any other'],
    subresource: ANY_REQUEST,
    'fetch/XHR': ANY_REQUEST,
    popup: ANY_REQUEST,
    'service worker': ANY_REQUEST,
    download: ANY_REQUEST,
    'method of a POST': [NGINX, '%s does not reach the origin, and the agent is told why'],
    'other program on the host': ANY_REQUEST,
  },
};
