/** The pages before anybody is signed in, and what signed-in people do with their own sign-in. */
import { counted } from '../../counted.ts';
import { PagegateError } from '../../errors.ts';
import { signInWithKey, signInWithLink, signInWithPassword, WRONG } from '../sign-in.ts';
import { type Html, html } from '../web/html.ts';
import { form } from '../web/layout.ts';
import { signedOut, tooManyTries } from '../web/request.ts';
import { EVERY_ROLE, type Page, type Reply, type Route, type SignedVisit, STAFF, type Visit } from '../web/route.ts';
import { moment, table } from '../web/widgets.ts';

/** Where somebody was going who had to sign in first; the first page, where that may lead out of the console. */
function nextOf({ app, query, form: fields }: Visit): string {
  const [, path = '', rest = ''] = /^([^?]*)\??(.*)$/s.exec(fields.get('next') || query.get('next')) ?? [];
  const full = app.config.console.base_path + path.slice(1);
  // A path below ours that browsers and proxies take as it is: whatever they would read as another one may lead out of the console.
  const isOurs = /^\/(?!\/|.*%(?:2f|5c))/i.test(path) && new URL(`http://console${full}`).pathname === full;
  if (!isOurs) return '/';
  return rest === '' ? path : `${path}?${new URLSearchParams(rest)}`;
}

function signInPage(visit: Visit, problem?: string): Page {
  const base = visit.app.config.console.base_path;
  const next = html`<input type="hidden" name="next" value="${visit.query.get('next') || visit.form.get('next')}">`;
  const body = html`${problem !== undefined && html`<div class="notice bad" role="alert"><p>${problem}</p></div>`}
<div class="columns"><section aria-labelledby="staff"><h2 id="staff">Operators and viewers</h2>
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
  return { kind: 'page', title: 'Sign in', body, status: problem === undefined ? 200 : 403 };
}

/** Signs in and goes on, or says that it did not work. */
async function enter(visit: Visit, attempt: Promise<string | undefined>): Promise<Reply> {
  const session = await attempt;
  return session === undefined ? signInPage(visit, WRONG) : { kind: 'redirect', to: nextOf(visit), session };
}

function linkPage(visit: Visit): Page {
  const base = visit.app.config.console.base_path;
  const token = html`<input type="hidden" name="token" value="${visit.query.get('token')}">`;
  const body = html`<p>This link signs you in once. Programs that open links ahead of you do not use it up; the button does.</p>
${form(`${base}sign-in/link`, visit.csrf, html`${token}<button>Sign in</button>`)}`;
  return { kind: 'page', title: 'Sign in', body };
}

function sessionsOf({ app, session }: SignedVisit): Html {
  const rows = app.store.sessions
    .list(session)
    .map((one) => [
      moment(one.createdAt),
      moment(one.seenAt),
      one.address,
      one.hash === session.hash ? 'this one' : '',
    ]);
  return table(
    'Your sessions',
    [{ title: 'Since' }, { title: 'Last used' }, { title: 'From' }, { title: 'Which' }],
    rows,
  );
}

function youPage(visit: SignedVisit): Page {
  const { session, csrf, app } = visit;
  const base = app.config.console.base_path;
  const user = session.role === 'account' ? undefined : app.store.users.find(session.name);
  const password = html`<section aria-labelledby="password"><h2 id="password">Password</h2>
<p>${user?.hasPassword ? 'You have a password.' : 'You have no password: you sign in with links from the server.'}</p>
${form(
  `${base}you/password`,
  csrf,
  html`<input type="hidden" name="name" autocomplete="username" value="${session.name}">${
    user?.hasPassword &&
    html`<label>Present password <input name="present" type="password" autocomplete="current-password" maxlength="256" required></label>`
  }<label>New password, 12 characters or more <input name="password" type="password" autocomplete="new-password" minlength="12" maxlength="256" required></label>
<label>The same again <input name="again" type="password" autocomplete="new-password" minlength="12" maxlength="256" required></label>
<button>Set the password</button>`,
  'stack',
)}</section>`;
  const body = html`<p>Signed in as <strong>${session.name}</strong>, role ${session.role}.</p>
${user !== undefined && password}
<section aria-labelledby="sessions"><h2 id="sessions">Sessions</h2>${sessionsOf(visit)}
${form(`${base}you/sign-out-others`, csrf, html`<button>Sign out everywhere else</button>`)}</section>`;
  return { kind: 'page', title: 'You', body };
}

async function setPassword({ app, session, form: fields, address }: SignedVisit): Promise<Reply> {
  const bad = (text: string): Reply => ({ kind: 'redirect', to: '/you', notice: { tone: 'bad', text } });
  if (fields.get('password') !== fields.get('again')) return bad('The two new passwords differ. Nothing was changed.');
  const { users, events } = app.store;
  if (users.find(session.name)?.hasPassword) {
    const wait = app.limits.name.wait(session.name);
    if (wait > 0) return bad(tooManyTries('Too many failures.', wait).message);
    app.limits.name.note(session.name);
    if ((await users.authenticate(session.name, fields.get('present'), () => true)) === undefined) {
      events.note(session.name, 'user.password_refused', `from ${address}`);
      return bad('The present password is another one. Nothing was changed.');
    }
    app.limits.name.forget(session.name);
  }
  try {
    if (!(await users.setPassword(session, fields.get('password')))) throw signedOut();
  } catch (error) {
    if (error instanceof PagegateError) return bad(error.message);
    throw error;
  }
  return {
    kind: 'redirect',
    to: '/you',
    notice: { tone: 'good', text: 'The password is set. Other sessions have ended.' },
  };
}

function signOut({ app, session }: SignedVisit): Reply {
  app.store.sessions.end(session.hash);
  app.store.events.note(sessionActor(session), 'sign_out', '');
  return { kind: 'redirect', to: '/sign-in', session: '' };
}

function signOutOthers({ app, session }: SignedVisit): Reply {
  const ended = app.store.sessions.endOthers(session);
  app.store.events.note(sessionActor(session), 'sign_out.others', counted(ended, 'session'));
  const text = `${counted(ended, 'other session')} ended.`;
  return { kind: 'redirect', to: '/you', notice: { tone: 'good', text } };
}

/** Who is named in the audit: an account by its name, so that nobody takes it for a user of that name. */
export const sessionActor = ({ role, name }: SignedVisit['session']): string =>
  role === 'account' ? `account:${name}` : name;

export const SIGN_IN_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/sign-in',
    roles: 'anybody',
    handle: (visit) => (visit.session === undefined ? signInPage(visit) : { kind: 'redirect', to: nextOf(visit) }),
  },
  // The address that stands there after a failure.
  { method: 'GET', path: '/sign-in/key', roles: 'anybody', handle: () => ({ kind: 'redirect', to: '/sign-in' }) },
  {
    method: 'POST',
    path: '/sign-in',
    roles: 'anybody',
    handle: (visit) =>
      enter(visit, signInWithPassword(visit.app, visit.form.get('name'), visit.form.get('password'), visit.address)),
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
  { method: 'GET', path: '/you', roles: EVERY_ROLE, handle: youPage },
  { method: 'POST', path: '/you/password', roles: STAFF, handle: setPassword },
  { method: 'POST', path: '/you/sign-out-others', roles: EVERY_ROLE, handle: signOutOthers },
];
