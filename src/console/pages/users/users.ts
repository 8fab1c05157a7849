/** The pages of users and sessions for operators: who can sign in, who is signed in from where, and every change of a user. */
import { PagegateError } from '../../../errors.ts';
import { LIMITS } from '../../../limits.ts';
import { isCurrent, sessionActor, withPresentPassword } from '../../sign-in.ts';
import { ROLES, type UserRole } from '../../store/roles.ts';
import type { Session } from '../../store/sessions.ts';
import type { User } from '../../store/users.ts';
import { ADDRESS_FACT, linkAt } from '../../users.ts';
import { type Html, html } from '../../web/html.ts';
import { form } from '../../web/layout.ts';
import { findForm, PAGE_SIZE, pager } from '../../web/pager.ts';
import { HttpRefusal } from '../../web/request.ts';
import {
  type Notice,
  OPERATOR,
  type Page,
  pathSegment,
  type Redirect,
  type Reply,
  type Route,
  type SignedVisit,
} from '../../web/route.ts';
import { count, emptyState, facts, mark, moment, table } from '../../web/widgets.ts';
import { redirectWithNotice } from '../accounts.ts';
import { endSession, presentField, sessionTable } from './parts.ts';
import { invited, USER_ACTIONS, type UserAction } from './user-actions.ts';

const SHOWN = LIMITS.consoleSessionsShown.value;

const roleMark = (role: UserRole): Html => mark(role === 'operator' ? 'good' : 'plain', role);

/** Returns the sessions that are still valid. A session of an account ends with its key; this is checked here at the latest. */
async function currentOf({ app }: SignedVisit, sessions: readonly Session[]): Promise<Session[]> {
  const current: Session[] = [];
  for (const one of sessions) if (one.role !== 'account' || (await isCurrent(app, one))) current.push(one);
  return current;
}

function userTable({ app, base, query }: SignedVisit, sessions: readonly Session[]): Html {
  const address = `${base}users`;
  const all = app.store.users.list();
  const found = all.filter(({ name }) => name.includes(query.get('q').toLowerCase()));
  const following = found.filter(({ name }) => name > query.get('after'));
  const users = following.slice(0, PAGE_SIZE);
  const open = new Map<string, number>();
  for (const { role, name } of sessions) if (role !== 'account') open.set(name, (open.get(name) ?? 0) + 1);
  const rows = users.map(({ name, role, hasPassword, signedInAt, createdAt }) => [
    html`<a href="${base}users/${pathSegment(name)}">${name}</a>`,
    roleMark(role),
    hasPassword ? 'yes' : 'no, links only',
    signedInAt === null ? 'never' : moment(signedInAt),
    count(open.get(name) ?? 0),
    moment(createdAt),
  ]);
  const columns = ['User', 'Role', 'Password', 'Last sign-in', { numbers: 'Open sessions' }, 'Added'];
  const place = { last: users.at(-1)?.name, total: found.length, isLast: following.length <= PAGE_SIZE };
  return html`${all.length > PAGE_SIZE && findForm(address, query)}
${rows.length === 0 ? emptyState('No user name contains this, or there are no further users.') : table('Users', columns, rows)}
${pager(address, query, 'users', place)}`;
}

function addForm(visit: SignedVisit): Html {
  const { base, csrf, form: fields } = visit;
  const chosen = fields.get('role') || 'viewer';
  const options = ROLES.map(
    (role) => html`<option value="${role}"${role === chosen && html` selected`}>${role}</option>`,
  );
  return html`<section aria-labelledby="new"><h2 id="new">New user</h2>
${form(
  `${base}users`,
  csrf,
  html`<label>Name <input name="name" value="${fields.get('name')}" maxlength="64" autocapitalize="none" autocomplete="off" spellcheck="false" required></label>
<label>Role <select name="role">${options}</select></label>${presentField(visit)}<button>Add</button>`,
  'row',
)}<p class="hint">Operators change things, viewers only look. You get a link that signs the new user in once; the user may then set a password. On the server: <code>pagegate console user add NAME --role viewer</code>.</p></section>`;
}

/** @param problem why no user was added; the form keeps its values */
async function list(visit: SignedVisit, problem?: HttpRefusal): Promise<Page> {
  const { app, base } = visit;
  const all = app.store.sessions.all();
  const sessions = sessionTable(visit, await currentOf(visit, all.slice(0, SHOWN)), {
    label: 'Signed in now',
    action: `${base}users/end-session`,
    who: ({ role, name, keyId }) =>
      role === 'account'
        ? html`<a href="${base}accounts/${pathSegment(name)}">${name}</a> <span class="role">account, key ${keyId}</span>`
        : html`<a href="${base}users/${pathSegment(name)}">${name}</a> <span class="role">${role}</span>`,
  });
  const body = html`${userTable(visit, all)}
${addForm(visit)}
<section aria-labelledby="sessions"><h2 id="sessions">Open sessions</h2>${sessions}${
    all.length > SHOWN &&
    html`<p class="hint">${count(SHOWN)} of ${count(all.length)}: the most recently used. The page of a user lists all sessions of that user.</p>`
  }</section>`;
  return { kind: 'page', title: 'Users', body, ...(problem && { problem: problem.message, status: problem.status }) };
}

/** Returns the URL of a link by the address at which this browser reaches the console, perhaps through a proxy. */
const linkOf =
  ({ app, base, origin }: SignedVisit) =>
  (token: string): string => {
    const address = origin === undefined ? app.store.fact(ADDRESS_FACT) : origin + base;
    return linkAt(String(address), token);
  };

async function add(visit: SignedVisit): Promise<Reply> {
  const { app, session, form: fields } = visit;
  const { users } = app.store;
  const [name, role] = [fields.get('name').trim(), fields.get('role')];
  try {
    const notice = await confirmed(visit, () => {
      // An unknown role is refused with `bad_console_user`.
      users.add(name, role as UserRole, session.name);
      return invited(`${name} is added.`, linkOf(visit)(users.createLink(name, session.name)));
    });
    return { kind: 'redirect', to: `/users/${pathSegment(name)}`, notice };
  } catch (error) {
    if (error instanceof PagegateError) return list(visit, new HttpRefusal(400, error.message));
    if (error instanceof HttpRefusal && error.status !== 401) return list(visit, error);
    throw error;
  }
}

/** Makes changes of users, all or nothing, after the operator has entered their own password. @throws HttpRefusal 401, 403 and 429, PagegateError console_last_operator, console_busy */
const confirmed = ({ app, session, form: fields, address }: SignedVisit, change: () => Notice): Promise<Notice> =>
  withPresentPassword(app, session, { password: fields.get('present'), address }, () =>
    app.store.users.asOperator(session, change),
  );

function show(visit: SignedVisit): Page {
  const { app, base, params, session } = visit;
  const user = app.store.users.get(params['name']!);
  const { name, role, hasPassword, signedInAt, createdAt } = user;
  const here = `${base}users/${pathSegment(name)}`;
  const isOwn = name === session.name;
  const offered = USER_ACTIONS.filter(({ applies }) => applies(user, isOwn));
  const buttons = offered.map(({ id, title }) => html`<a class="button plain" href="${here}/${id}">${title}</a>`);
  const own = html`<p>This is you: <a href="${base}you">your password and your sessions</a>.</p>`;
  const body = html`${facts([
    ['Role', roleMark(role)],
    ['Password', hasPassword ? 'yes' : 'no, links only'],
    ['Last sign-in', signedInAt === null ? 'never' : moment(signedInAt)],
    ['Added', moment(createdAt)],
  ])}${isOwn && own}<p class="actions">${buttons}</p>
<section aria-labelledby="sessions"><h2 id="sessions">Open sessions</h2>${sessionTable(
    visit,
    app.store.sessions.list({ role, name }),
    { label: 'Signed in now', action: `${here}/end-session` },
  )}</section>
<p><a href="${base}audit?${new URLSearchParams({ who: name }).toString()}">What ${name} did</a></p>`;
  return { kind: 'page', title: `User ${name}`, body };
}

function actionOf({ params }: SignedVisit): UserAction {
  const action = USER_ACTIONS.find(({ id }) => id === params['action']);
  if (action === undefined) throw new HttpRefusal(404, 'There is nothing here.');
  return action;
}

const isOnlyOperator = ({ app }: SignedVisit, { name, role }: User): boolean =>
  role === 'operator' && app.store.users.list().every((one) => one.role !== 'operator' || one.name === name);

/** Asks for confirmation, and describes what will happen. */
function confirm(visit: SignedVisit): Page {
  const { app, base, params, csrf, session } = visit;
  const action = actionOf(visit);
  const user = app.store.users.get(params['name']!);
  const isOwn = user.name === session.name;
  const here = `${base}users/${pathSegment(user.name)}`;
  const buttons = html`<div class="actions"><button${action.isDangerous === true && html` class="danger"`}>${action.title}</button> <a class="button plain" href="${here}">Cancel</a></div>`;
  const why = action.applies(user, isOwn)
    ? action.endsOperator === true && isOnlyOperator(visit, user) && new PagegateError('console_last_operator').message
    : `${user.name} is ${isOwn ? 'you' : user.role}; there is nothing to do here.`;
  const body =
    why === false
      ? html`<p>${action.says(user, isOwn)}</p>
${form(`${here}/${action.id}`, csrf, html`${action.needsPassword && presentField(visit)}${buttons}`, 'stack')}`
      : html`<p>${why}</p><p><a href="${here}">Back to ${user.name}</a></p>`;
  return { kind: 'page', title: `${action.title}: ${user.name}`, body };
}

async function act(visit: SignedVisit): Promise<Redirect> {
  const { app, params, session } = visit;
  const { users, sessions } = app.store;
  const action = actionOf(visit);
  const user = users.get(params['name']!);
  const here = `/users/${pathSegment(user.name)}`;
  const change = (): Notice => action.run({ users, user, session, linkOf: linkOf(visit) });
  const done = action.needsPassword ? confirmed(visit, change) : (async () => change())();
  const reply = await redirectWithNotice(here, done, `${here}/${action.id}`);
  // If the change ended the operator's own session, no page can show the notice.
  if (!sessions.has(session.hash)) return { kind: 'redirect', to: '/sign-in', session: '' };
  return users.find(user.name) === undefined ? { ...reply, to: '/users' } : reply;
}

/** Ends a session of a user or an account, and redirects to the page that listed it. */
function endListed(visit: SignedVisit): Redirect {
  const { app, params, form: fields } = visit;
  const to = params['name'] === undefined ? '/users' : `/users/${pathSegment(params['name'])}`;
  const one = app.store.sessions.get(fields.get('session'));
  return {
    kind: 'redirect',
    to,
    notice: endSession(visit, one, (its) => `of ${sessionActor(its)} from ${its.address}`),
  };
}

export const USER_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/users', roles: OPERATOR, handle: (visit) => list(visit) },
  { method: 'POST', path: '/users', roles: OPERATOR, handle: add },
  { method: 'POST', path: '/users/end-session', roles: OPERATOR, handle: endListed },
  { method: 'GET', path: '/users/:name', roles: OPERATOR, handle: show },
  { method: 'POST', path: '/users/:name/end-session', roles: OPERATOR, handle: endListed },
  { method: 'GET', path: '/users/:name/:action', roles: OPERATOR, handle: confirm },
  { method: 'POST', path: '/users/:name/:action', roles: OPERATOR, handle: act },
];
