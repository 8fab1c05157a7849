/** The layout around every page: head, navigation, notices, footer. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { PROGRAM_VERSION } from '../../version.ts';
import type { Session } from '../store/sessions.ts';
import { type Html, html, type Value } from './html.ts';
import type { Notice, Page } from './route.ts';

export interface Asset {
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
  /** Part of its URL, so that browsers may cache it forever. */
  readonly version: string;
}

const ASSET_TYPES: readonly (readonly [name: string, type: string])[] = [
  ['console.css', 'text/css; charset=utf-8'],
  ['console.js', 'text/javascript; charset=utf-8'],
  ['icon.svg', 'image/svg+xml'],
];

export const ASSETS: readonly Asset[] = ASSET_TYPES.map(([name, type]) => {
  const bytes = readFileSync(new URL(`../assets/${name}`, import.meta.url));
  return { name, type, bytes, version: createHash('sha256').update(bytes).digest('hex').slice(0, 16) };
});

const assetPath = (base: string, name: string): string =>
  `${base}assets/${name}?v=${ASSETS.find((asset) => asset.name === name)?.version ?? ''}`;

const STAFF_LINKS: readonly (readonly [path: string, text: string])[] = [
  ['', 'Overview'],
  ['decisions', 'Decisions'],
  ['try', 'Try a URL'],
  ['accounts', 'Accounts'],
  ['generations', 'Generations'],
  ['health', 'Health'],
  ['audit', 'Audit'],
];
const OPERATOR_LINKS: typeof STAFF_LINKS = [...STAFF_LINKS, ['users', 'Users']];
const ACCOUNT_LINKS: readonly (readonly [path: string, text: string])[] = [['account', 'Your account']];

export interface Frame {
  /** The base path. */
  readonly base: string;
  /** The path of the page, below the base path. */
  readonly path: string;
  readonly session: Session | undefined;
  readonly csrf: string;
  readonly notices: readonly Notice[];
}

/** Returns a page up to the end of `page.body`; `page.more` may follow. */
export function pageHead(page: Page, frame: Frame): Html {
  const { base, session } = frame;
  const { problem } = page;
  const notices: readonly Notice[] =
    problem === undefined ? frame.notices : [{ tone: 'bad', text: problem }, ...frame.notices];
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">${page.isOpenedAgain === true && html`<meta http-equiv="refresh" content="0">`}
<title>${notices.some(({ tone }) => tone === 'bad') && 'Error: '}${page.title} · pagegate</title>
<link rel="icon" href="${assetPath(base, 'icon.svg')}">
<link rel="stylesheet" href="${assetPath(base, 'console.css')}">
<script src="${assetPath(base, 'console.js')}" defer></script>
</head>
<body${page.renewSeconds === undefined ? null : html` data-renew="${page.renewSeconds}"`}>
<a class="skip" href="#main">Skip to the content</a>
<header>
<a class="brand" href="${base}">pagegate</a>
${session && navigation(frame, session)}
</header>
<main id="main" tabindex="-1">
<h1>${page.title}</h1>
${notices.map(notice)}
${page.body}`;
}

export const pageTail = (): Html => html`
</main>
<footer>pagegate ${PROGRAM_VERSION} · times are UTC<span data-zone></span></footer>
</body>
</html>
`;

function navigation({ base, path, csrf }: Frame, session: Session): Html {
  const links = { operator: OPERATOR_LINKS, viewer: STAFF_LINKS, account: ACCOUNT_LINKS }[session.role];
  const here = path.split('/')[1] ?? '';
  return html`<nav aria-label="Pages"><ul>
${links.map(([to, text]) => html`<li><a href="${base}${to}"${here === to && html` aria-current="page"`}>${text}</a></li>`)}
</ul></nav>
<div class="who"><a href="${base}you">${session.name} <span class="role">${session.role}</span></a>
<form method="post" action="${base}sign-out"><input type="hidden" name="csrf" value="${csrf}"><button class="plain">Sign out</button></form></div>`;
}

/** Gives a notice the focus, so that users of a screen reader or keyboard start at the outcome of their form. */
const FIRST = html` tabindex="-1" autofocus`;
const KEEP = 'It is shown only once. Keep it where you keep passwords.';

function notice({ tone, text, secret, advice = KEEP }: Notice): Html {
  return html`<div class="notice ${tone}"${FIRST} role="${tone === 'good' ? 'status' : 'alert'}"><p>${text}</p>${
    secret !== undefined && html`<p><code class="secret">${secret}</code></p><p>${advice}</p>`
  }</div>`;
}

/** Returns a form with the CSRF token that every form needs. */
export function form(action: string, csrf: string, content: Value, className = ''): Html {
  return html`<form method="post" action="${action}" class="${className}"><input type="hidden" name="csrf" value="${csrf}">${content}</form>`;
}
