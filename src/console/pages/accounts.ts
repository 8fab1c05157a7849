/** The pages of accounts for operators and viewers: plans, usage, keys, and every change of an account. */
import { PagegateError } from '../../errors.ts';
import { readAudit } from '../../ledger/audit.ts';
import type { AccountView, Ledger } from '../../ledger/ledger.ts';
import { type Html, html } from '../web/html.ts';
import { form } from '../web/layout.ts';
import { findForm, PAGE_SIZE, pager } from '../web/pager.ts';
import { type Fields, HttpRefusal } from '../web/request.ts';
import {
  type Notice,
  OPERATOR,
  type Page,
  pathSegment,
  type Redirect,
  type Route,
  type SignedVisit,
  STAFF,
} from '../web/route.ts';
import { count, emptyState, mark, moment, table } from '../web/widgets.ts';
import { ACCOUNT_ACTIONS, type AccountAction } from './account-actions.ts';
import { keyTable, planFacts } from './account-parts.ts';
import { quotaMark, STATE_TONES, USAGE_RANGES, usageCsv, usageCsvOfAll, usagePart } from './usage.ts';

const AUDIT_LINES = 20;

/** Redirects to the page at `to` with the outcome of a change; if the change is refused, to `onFailure` with the reason. */
export async function redirectWithNotice(to: string, change: Promise<Notice>, onFailure = to): Promise<Redirect> {
  try {
    return { kind: 'redirect', to, notice: await change };
  } catch (error) {
    // After a 401 there is no session that could show a notice.
    const isExpected = error instanceof PagegateError || (error instanceof HttpRefusal && error.status !== 401);
    if (!isExpected) throw error;
    return { kind: 'redirect', to: onFailure, notice: { tone: 'bad', text: error.message } };
  }
}

/** Adds to the notice of a change that some servers do not apply it yet, if so. */
export function withLag(notice: Notice, { lag }: Ledger): Notice {
  return lag === undefined ? notice : { ...notice, text: `${notice.text} ${lag}` };
}

async function list({ app, base, session, csrf, query }: SignedVisit): Promise<Page> {
  const contains = query.get('q').toLowerCase();
  const found = await app.accounts.readIfAny((ledger) =>
    ledger.page({ contains, after: query.get('after'), count: PAGE_SIZE }),
  );
  const { views, total, isLast } = found ?? { views: [], total: 0, isLast: true };
  const rows = views.map((view) => {
    const { account, quota } = view;
    return [
      html`<a href="${base}accounts/${pathSegment(account.name)}">${account.name}</a>`,
      mark(STATE_TONES[account.state] ?? 'plain', account.state),
      quota.plan ?? '–',
      quota.quota_limit === null ? '–' : `${count(quota.quota_used)} of ${count(quota.quota_limit)}`,
      quotaMark(view),
      moment(quota.quota_resets_at),
    ];
  });
  const columns = ['Account', 'State', 'Plan', { numbers: 'Used' }, 'Share', 'Resets'];
  const address = `${base}accounts`;
  const body = html`${findForm(address, query)}
${rows.length === 0 ? emptyState(nothing(query)) : table('Accounts', columns, rows)}
${pager(address, query, 'accounts', { last: views.at(-1)?.account.name, total, isLast })}
${total > 0 && html`<p><a href="${base}usage.csv">Usage of all accounts by day, as CSV</a></p>`}
${session.role === 'operator' && createForm(base, csrf)}`;
  return { kind: 'page', title: 'Accounts', body };
}

function nothing(query: Fields): string {
  if (query.get('after') !== '') return 'There are no further accounts.';
  return query.get('q') === ''
    ? 'There are no accounts yet. Create the first below, then subscribe a plan: that issues its key.'
    : 'No account name contains this.';
}

const createForm = (base: string, csrf: string): Html =>
  html`<section aria-labelledby="new"><h2 id="new">New account</h2>
${form(
  `${base}accounts`,
  csrf,
  html`<label>Name <input name="name" maxlength="64" autocapitalize="none" autocomplete="off" required></label><button>Create</button>`,
  'row',
)}<p class="hint">It is not activated until a plan is subscribed.</p></section>`;

function create({ app, session, form: fields }: SignedVisit): Promise<Redirect> {
  const name = fields.get('name');
  const made = app.accounts.change(
    session.name,
    async (ledger): Promise<Notice> => {
      await ledger.createAccount(name);
      return withLag({ tone: 'good', text: `${name} is created. Subscribe a plan to activate it.` }, ledger);
    },
    { create: true },
  );
  return redirectWithNotice(`/accounts/${pathSegment(name)}`, made, '/accounts');
}

function actions({ base, session }: SignedVisit, view: AccountView): Html | null {
  if (session.role !== 'operator') return null;
  const offered = ACCOUNT_ACTIONS.filter(({ id, applies }) => id !== 'revoke-key' && applies(view));
  return html`<p class="actions">${offered.map(
    ({ id, title }) =>
      html`<a class="button plain" href="${base}accounts/${pathSegment(view.account.name)}/${id}">${title}</a>`,
  )}</p>`;
}

export const daysOf = ({ query }: SignedVisit): number => {
  const wanted = Number(query.get('days'));
  return USAGE_RANGES.find((range) => range === wanted) ?? 90;
};

async function show(visit: SignedVisit): Promise<Page> {
  const { app, base, params, session } = visit;
  const name = params['name']!;
  const here = `${base}accounts/${pathSegment(name)}`;
  const body = await app.accounts.read(async (ledger) => {
    const view = await ledger.view(name);
    const usage = await usagePart(ledger, view, daysOf(visit), {
      range: (days) => `${here}?days=${days}`,
      csv: `${here}/usage.csv`,
    });
    const audit = (await readAudit(ledger, name, AUDIT_LINES)).map(({ at, actor, action }) => [
      moment(at),
      actor,
      action,
    ]);
    const keys = keyTable(
      view,
      (id) =>
        session.role === 'operator' &&
        html`<a href="${here}/revoke-key?key=${id}" aria-label="Revoke key ${id}">Revoke</a>`,
    );
    const filter = new URLSearchParams({ account: name });
    const [decisions, changes] = [`${base}decisions?${filter}`, `${base}audit?${filter}`];
    return html`${planFacts(view)}${actions(visit, view)}<p><a href="${decisions}">Decisions of this account</a></p>
<section aria-labelledby="usage"><h2 id="usage">Usage</h2>${usage}</section>
<section aria-labelledby="keys"><h2 id="keys">Keys</h2>${
      view.keys.length === 0 ? emptyState('No key yet: subscribing a plan issues one.') : keys
    }</section>
<section aria-labelledby="audit"><h2 id="audit">Latest changes</h2>${table('Changes', ['When', 'Who', 'What'], audit)}<p><a href="${changes}">All changes of this account</a></p></section>`;
  });
  return { kind: 'page', title: `Account ${name}`, body };
}

function actionOf({ params }: SignedVisit): AccountAction {
  const action = ACCOUNT_ACTIONS.find(({ id }) => id === params['action']);
  if (action === undefined) throw new HttpRefusal(404, 'There is nothing here.');
  return action;
}

/** Asks for confirmation, and describes what will happen to the account in its current state. */
async function confirm(visit: SignedVisit): Promise<Page> {
  const { app, base, params, csrf, query } = visit;
  const action = actionOf(visit);
  const name = params['name']!;
  const here = `${base}accounts/${pathSegment(name)}`;
  // Read the state first: if the account changes between the two reads, the form is refused instead of missing the change.
  const [state, view] = await app.accounts.read(
    async (ledger) => [await ledger.stateOf(name), await ledger.view(name)] as const,
  );
  const content = action.applies(view)
    ? html`<p>${action.says(view, query)}</p>
${form(`${here}/${action.id}`, csrf, html`<input type="hidden" name="state" value="${state}">${action.fields?.(() => app.accounts.plans(), query)}<div class="actions"><button${action.isDangerous === true && html` class="danger"`}>${action.title}</button> <a class="button plain" href="${here}">Cancel</a></div>`, 'stack')}`
    : html`<p>The account is ${view.account.state}; there is nothing to do here.</p><p><a href="${here}">Back to ${name}</a></p>`;
  return { kind: 'page', title: `${action.title}: ${name}`, body: content };
}

function act(visit: SignedVisit): Promise<Redirect> {
  const { app, params, session, form: fields } = visit;
  const action = actionOf(visit);
  const name = params['name']!;
  const { ledgerFile } = app.paths;
  const done = app.accounts.change(
    session.name,
    async (ledger) => withLag(await action.run({ ledger, ledgerFile, name, form: fields }), ledger),
    fields.get('state') === '' ? {} : { expectedState: fields.get('state') },
  );
  return redirectWithNotice(`/accounts/${pathSegment(name)}`, done);
}

export const ACCOUNT_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/accounts', roles: STAFF, handle: list },
  { method: 'POST', path: '/accounts', roles: OPERATOR, handle: create },
  { method: 'GET', path: '/usage.csv', roles: STAFF, handle: ({ app }) => usageCsvOfAll(app) },
  { method: 'GET', path: '/accounts/:name', roles: STAFF, handle: show },
  {
    method: 'GET',
    path: '/accounts/:name/usage.csv',
    roles: STAFF,
    handle: ({ app, params }) => usageCsv(app, params['name']!),
  },
  { method: 'GET', path: '/accounts/:name/:action', roles: OPERATOR, handle: confirm },
  { method: 'POST', path: '/accounts/:name/:action', roles: OPERATOR, handle: act },
];
