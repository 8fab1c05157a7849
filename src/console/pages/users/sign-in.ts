/** The pages for signing in, and the sign-out. */
import { sessionActor, signInWithKey, signInWithLink, signInWithPassword, WRONG_CREDENTIALS } from '../../sign-in.ts';
import { html } from '../../web/html.ts';
import { form } from '../../web/layout.ts';
import type { Fields } from '../../web/request.ts';
import { EVERY_ROLE, type Page, type Reply, type Route, type SignedVisit, type Visit } from '../../web/route.ts';

/** Returns the path to which the sign-in leads back; the first page if the given path may lead out of the console. */
function nextOf({ base, query, form: fields }: Visit): string {
  const [, path = '', rest = ''] = /^([^?]*)\??(.*)$/s.exec(fields.get('next') || query.get('next')) ?? [];
  const full = base + path.slice(1);
  // Accept only a path that browsers and proxies leave unchanged: one that they normalize may lead out of the console.
  const isInside = /^\/(?!\/|.*%(?:2f|5c))/i.test(path) && new URL(`http://console${full}`).pathname === full;
  if (!isInside) return '/';
  return rest === '' ? path : `${path}?${new URLSearchParams(rest)}`;
}

function signInPage(visit: Visit, problem?: string): Page {
  const { base } = visit;
  const next = html`<input type="hidden" name="next" value="${visit.query.get('next') || visit.form.get('next')}">`;
  const body = html`<div class="columns"><section aria-labelledby="staff"><h2 id="staff">Operators and viewers</h2>
${form(
  `${base}sign-in`,
  visit.csrf,
  html`${next}<label>Name <input name="name" value="${visit.form.get('name')}" autocomplete="username" autocapitalize="none" maxlength="64" required></label>
<label>Password <input name="password" type="password" autocomplete="current-password" maxlength="256" required></label>
<button>Sign in</button>`,
  'stack',
)}
<p class="hint">Without a password: <code>pagegate console link NAME</code> on the server prints a link that signs in once.</p></section>
<section aria-labelledby="licensee"><h2 id="licensee">Your account</h2>
${form(
  `${base}sign-in/key`,
  visit.csrf,
  html`<label>API key <input name="key" type="password" autocomplete="off" maxlength="64" required></label><button>Sign in with the key</button>`,
  'stack',
)}
<p class="hint">Shows the account that the key belongs to: its plan, its usage, its keys.</p></section></div>`;
  return { kind: 'page', title: 'Sign in', body, ...(problem !== undefined && { problem, status: 403 }) };
}

/** Returns the user's name without the spaces and capitals that phones or habits add. */
const nameOf = (fields: Fields): string => fields.get('name').trim().toLowerCase();

/** Redirects after a successful sign-in, or shows the form again with an error. */
async function enter(visit: Visit, attempt: Promise<string | undefined>): Promise<Reply> {
  const session = await attempt;
  return session === undefined
    ? signInPage(visit, WRONG_CREDENTIALS)
    : { kind: 'redirect', to: nextOf(visit), session };
}

function linkPage(visit: Visit): Page {
  const { base } = visit;
  const token = html`<input type="hidden" name="token" value="${visit.query.get('token')}">`;
  const body = html`<p>This link signs you in once. Programs that open links in advance do not use it up; only the button does.</p>
${form(`${base}sign-in/link`, visit.csrf, html`${token}<button>Sign in</button>`)}`;
  return { kind: 'page', title: 'Sign in', body };
}

function signOut({ app, session }: SignedVisit): Reply {
  app.store.sessions.end(session.hash);
  app.store.events.note(sessionActor(session), 'sign_out', '');
  return { kind: 'redirect', to: '/sign-in', session: '' };
}

export const SIGN_IN_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/sign-in',
    roles: 'anybody',
    handle: (visit) => (visit.session === undefined ? signInPage(visit) : { kind: 'redirect', to: nextOf(visit) }),
  },
  // The URL that the browser shows after a failed sign-in.
  { method: 'GET', path: '/sign-in/key', roles: 'anybody', handle: () => ({ kind: 'redirect', to: '/sign-in' }) },
  {
    method: 'POST',
    path: '/sign-in',
    roles: 'anybody',
    handle: (visit) =>
      enter(visit, signInWithPassword(visit.app, nameOf(visit.form), visit.form.get('password'), visit.address)),
  },
  {
    method: 'POST',
    path: '/sign-in/key',
    roles: 'anybody',
    handle: (visit) => enter(visit, signInWithKey(visit.app, visit.form.get('key').trim(), visit.address)),
  },
  { method: 'GET', path: '/sign-in/link', roles: 'anybody', handle: linkPage },
  {
    method: 'POST',
    path: '/sign-in/link',
    roles: 'anybody',
    handle: (visit) => enter(visit, signInWithLink(visit.app, visit.form.get('token'), visit.address)),
  },
  { method: 'POST', path: '/sign-out', roles: EVERY_ROLE, handle: signOut },
];
