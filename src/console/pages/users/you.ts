/** The page on which every signed-in user sees and changes their own sign-in: password and sessions. */
import { counted } from '../../../counted.ts';
import { sessionActor, withPresentPassword } from '../../sign-in.ts';
import { PASSWORD_MIN_LENGTH } from '../../store/password-rules.ts';
import { html } from '../../web/html.ts';
import { form } from '../../web/layout.ts';
import { HttpRefusal, signedOut } from '../../web/request.ts';
import {
  EVERY_ROLE,
  type Notice,
  type Page,
  type Redirect,
  type Reply,
  type Route,
  type SignedVisit,
  STAFF,
} from '../../web/route.ts';
import { redirectWithNotice } from '../accounts.ts';
import { endSession, presentField, sessionTable } from './parts.ts';

function youPage(visit: SignedVisit): Page {
  const { session, csrf, app, base } = visit;
  const user = session.role === 'account' ? undefined : app.store.users.find(session.name);
  const password = html`<section aria-labelledby="password"><h2 id="password">Password</h2>
<p>${user?.hasPassword ? 'You have a password.' : 'You have no password: you sign in with links from an operator or from the command line of the server.'}</p>
${form(
  `${base}you/password`,
  csrf,
  html`<input type="hidden" name="name" autocomplete="username" value="${session.name}">${presentField(visit, 'Current password')}<label>New password, ${PASSWORD_MIN_LENGTH} characters or more <input name="password" type="password" autocomplete="new-password" minlength="${PASSWORD_MIN_LENGTH}" maxlength="256" required></label>
<label>Repeat the password <input name="again" type="password" autocomplete="new-password" minlength="${PASSWORD_MIN_LENGTH}" maxlength="256" required></label>
<button>Set the password</button>`,
  'stack',
)}</section>`;
  const sessions = sessionTable(visit, app.store.sessions.list(session), {
    label: 'Your sessions',
    action: `${base}you/end-session`,
  });
  const body = html`<p>Signed in as <strong>${session.name}</strong>, role ${session.role}.</p>
${user !== undefined && password}
<section aria-labelledby="sessions"><h2 id="sessions">Sessions</h2>${sessions}
${form(`${base}you/sign-out-others`, csrf, html`<button>Sign out everywhere else</button>`)}</section>`;
  return { kind: 'page', title: 'You', body };
}

function setPassword({ app, session, form: fields, address }: SignedVisit): Promise<Redirect> {
  const set = async (): Promise<Notice> => {
    const password = fields.get('password');
    if (password !== fields.get('again'))
      throw new HttpRefusal(400, 'The two new passwords differ. Nothing was changed.');
    const { users } = app.store;
    await withPresentPassword(app, session, { password: fields.get('present'), address }, () => true);
    if (!(await users.setPassword(session, password))) throw signedOut();
    return { tone: 'good', text: 'The password is set. Other sessions have ended.' };
  };
  return redirectWithNotice('/you', set());
}

/** Ends a session of the same user or account, and no other, whatever the form contains. */
function endOwn(visit: SignedVisit): Redirect {
  const { app, session, form: fields } = visit;
  const one = app.store.sessions.list(session).find(({ hash }) => hash === fields.get('session'));
  return { kind: 'redirect', to: '/you', notice: endSession(visit, one, ({ address }) => `from ${address}`) };
}

function signOutOthers({ app, session }: SignedVisit): Reply {
  const ended = app.store.sessions.endOthers(session);
  app.store.events.note(sessionActor(session), 'sign_out.others', counted(ended, 'session'));
  const text = `${counted(ended, 'other session')} ended.`;
  return { kind: 'redirect', to: '/you', notice: { tone: 'good', text } };
}

export const YOU_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/you', roles: EVERY_ROLE, handle: youPage },
  { method: 'POST', path: '/you/password', roles: STAFF, handle: setPassword },
  { method: 'POST', path: '/you/end-session', roles: EVERY_ROLE, handle: endOwn },
  { method: 'POST', path: '/you/sign-out-others', roles: EVERY_ROLE, handle: signOutOthers },
];
