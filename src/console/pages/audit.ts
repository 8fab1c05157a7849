/** The page of the audit: who changed what in the ledger and in the console. */
import { PagegateError } from '../../errors.ts';
import { type AuditEntry, type AuditFilter, auditStateJson, readAudit } from '../../ledger/audit.ts';
import { LIMITS } from '../../limits.ts';
import { rfc3339 } from '../../times.ts';
import type { ConsoleContext } from '../context.ts';
import { csvLine, oneChunk } from '../web/csv.ts';
import { field, filterText, filterTimes, timeFields, wrongFilter } from '../web/filter-fields.ts';
import { type Html, html, type Value } from '../web/html.ts';
import { HttpRefusal } from '../web/request.ts';
import { type Download, type Page, pathSegment, type Route, type SignedVisit, STAFF } from '../web/route.ts';
import { count, emptyState, moment, table } from '../web/widgets.ts';

const SHOWN = LIMITS.consoleAudit.value;
const EXPORTED = LIMITS.consoleAuditExport.value;

type Line = Omit<AuditEntry, 'id'>;

interface Wanted extends AuditFilter {
  readonly account: string | undefined;
}

/** @throws HttpRefusal 400 */
function wantedOf({ query }: SignedVisit): Wanted {
  const { from, to } = filterTimes(query);
  const seconds = (time: string | undefined): number | undefined =>
    time === undefined ? undefined : Math.floor(Date.parse(time) / 1000);
  const [account, actor, action] = ['account', 'who', 'what'].map((name) => filterText(query, name));
  return { account: account?.toLowerCase(), actor, action, from: seconds(from), to: seconds(to) };
}

/** Returns matching events of the console. If the filter names an account, only those that this account caused. */
function eventLines({ store }: ConsoleContext, wanted: Wanted): Line[] {
  const { account, actor = '', action = '', from = 0, to = Number.POSITIVE_INFINITY } = wanted;
  return store.events
    .latest(LIMITS.consoleEvents.value)
    .map((event) => ({ ...event, action: `console ${event.action} ${event.detail}`.trim() }))
    .filter(
      (event) =>
        (account === undefined || event.actor === `account:${account}`) &&
        event.actor.toLowerCase().includes(actor.toLowerCase()) &&
        event.action.toLowerCase().includes(action.toLowerCase()) &&
        event.at >= from &&
        event.at <= to,
    )
    .map((event) => ({ ...event, account: null, before: null, after: null }));
}

/** Returns matching lines of the ledger's audit and of the console's events, newest first. @throws PagegateError account_not_found */
async function lines(app: ConsoleContext, wanted: Wanted, most: number): Promise<Line[]> {
  const ledger = (await app.accounts.readIfAny((open) => readAudit(open, wanted.account, most, wanted))) ?? [];
  return merged(ledger, eventLines(app, wanted), most);
}

/**
 * Merges two lists, newest first. Each keeps its order even if a clock was set back: the first lines are the same whatever `most` is, so
 * that no line moves between pages or is skipped.
 */
function merged(left: readonly Line[], right: readonly Line[], most: number): Line[] {
  const found: Line[] = [];
  for (let [i, j] = [0, 0]; found.length < most; ) {
    const [a, b] = [left[i], right[j]];
    const next = a !== undefined && (b === undefined || a.at >= b.at) ? a : b;
    if (next === undefined) break;
    if (next === a) i += 1;
    else j += 1;
    found.push(next);
  }
  return found;
}

const stateText = (kept: string | null): string => (kept === null ? 'nothing' : JSON.stringify(auditStateJson(kept)));

function filterForm({ base, query }: SignedVisit): Html {
  const fields = [field(query, 'account', 'Account'), field(query, 'who', 'Who'), field(query, 'what', 'What')];
  return html`<form class="row" action="${base}audit">${fields}${timeFields(query)}<button>Show</button></form>`;
}

/** Returns the URL of the same filter at another position, or as a file. */
function address({ base, query }: SignedVisit, page: string, skip: number): string {
  const fields = new URLSearchParams([...query].filter(([name, value]) => name !== 'skip' && value !== ''));
  if (skip > 0) fields.set('skip', String(skip));
  return `${base}${page}?${fields}`;
}

function rowOf({ base }: SignedVisit, { at, actor, action, account, before, after }: Line): readonly Value[] {
  const link = account !== null && html`<a href="${base}accounts/${pathSegment(account)}">${account}</a>`;
  const states =
    (before !== null || after !== null) &&
    html`<details><summary>show</summary><pre>before ${stateText(before)}
after  ${stateText(after)}</pre></details>`;
  return [moment(at), actor, action, link, states];
}

async function audit(visit: SignedVisit): Promise<Page> {
  const filter = filterForm(visit);
  try {
    const wanted = wantedOf(visit);
    const skip = Math.min(visit.query.whole('skip') ?? 0, EXPORTED - SHOWN);
    const found = await lines(visit.app, wanted, skip + SHOWN + 1);
    const rows = found.slice(skip, skip + SHOWN).map((line) => rowOf(visit, line));
    const titles = ['When', 'Who', 'What', 'Account', 'Before and after'];
    const isMore = found.length > skip + SHOWN && skip + 2 * SHOWN <= EXPORTED;
    const older = isMore && html`<a class="button plain" href="${address(visit, 'audit', skip + SHOWN)}">Older</a>`;
    const latest = skip > 0 && html`<a class="button plain" href="${address(visit, 'audit', 0)}">Latest</a>`;
    const body = html`${filter}
<p>Changes and sign-ins, newest first, ${SHOWN} on a page. <a href="${address(visit, 'audit.csv', 0)}">As CSV, up to ${count(EXPORTED)}</a></p>
${rows.length === 0 ? emptyState(nothing(visit)) : table('Audit', titles, rows)}
<p class="actions">${latest} ${older}</p>`;
    return { kind: 'page', title: 'Audit', body };
  } catch (error) {
    if (error instanceof HttpRefusal) return wrongFilter('Audit', filter, error);
    if (!(error instanceof PagegateError) || error.code !== 'account_not_found') throw error;
    return wrongFilter('Audit', filter, new HttpRefusal(404, error.message));
  }
}

const nothing = ({ query }: SignedVisit): string =>
  query.isEmpty ? 'Nothing has been changed yet.' : 'No change matches.';

async function download(visit: SignedVisit): Promise<Download> {
  const rows = (await lines(visit.app, wantedOf(visit), EXPORTED)).map(({ at, actor, action, account }) =>
    csvLine([rfc3339(at), actor, action, account ?? '']),
  );
  const text = csvLine(['at', 'actor', 'action', 'account']) + rows.join('');
  return { kind: 'download', name: 'audit.csv', type: 'text/csv; charset=utf-8', body: oneChunk(text) };
}

export const AUDIT_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/audit', roles: STAFF, handle: audit },
  { method: 'GET', path: '/audit.csv', roles: STAFF, handle: download },
];
