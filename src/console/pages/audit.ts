/** The audit: who changed what, in the ledger and in the console. */
import { auditStateJson, readAudit } from '../../ledger/audit.ts';
import { LIMITS } from '../../limits.ts';
import { rfc3339 } from '../../times.ts';
import type { ConsoleContext } from '../context.ts';
import { csvLine, oneChunk } from '../web/csv.ts';
import { html } from '../web/html.ts';
import { type Download, type Page, type Route, type SignedVisit, STAFF, segment } from '../web/route.ts';
import { empty, moment, table } from '../web/widgets.ts';

const SHOWN = LIMITS.consoleAudit.value;
const EXPORTED = LIMITS.consoleAuditExport.value;

interface Line {
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly account: string | null;
  readonly before: string | null;
  readonly after: string | null;
}

/** Lines of both tables, newest first. */
async function lines(app: ConsoleContext, countWanted: number): Promise<Line[]> {
  const ledger = (await app.accounts.readIfAny((open) => readAudit(open, undefined, countWanted))) ?? [];
  const events = app.store.events.latest(countWanted).map(({ at, actor, action, detail }) => ({
    at,
    actor,
    action: `console ${action} ${detail}`.trim(),
    account: null,
    before: null,
    after: null,
  }));
  return [...ledger, ...events].sort((a, b) => b.at - a.at).slice(0, countWanted);
}

const stateText = (kept: string | null): string => (kept === null ? 'nothing' : JSON.stringify(auditStateJson(kept)));

async function audit({ app }: SignedVisit): Promise<Page> {
  const base = app.config.console.base_path;
  const rows = (await lines(app, SHOWN)).map(({ at, actor, action, account, before, after }) => [
    moment(at),
    actor,
    action,
    account === null ? '' : html`<a href="${base}accounts/${segment(account)}">${account}</a>`,
    (before !== null || after !== null) &&
      html`<details><summary>show</summary><pre>before ${stateText(before)}
after  ${stateText(after)}</pre></details>`,
  ]);
  const columns = [
    { title: 'When' },
    { title: 'Who' },
    { title: 'What' },
    { title: 'Account' },
    { title: 'Before and after' },
  ];
  const body = html`<p>The latest ${SHOWN} changes and sign-ins, newest first. <a href="${base}audit.csv">As CSV, up to ${EXPORTED.toLocaleString('en-US')}</a></p>
${rows.length === 0 ? empty('Nothing was changed yet.') : table('Audit', columns, rows)}`;
  return { kind: 'page', title: 'Audit', body };
}

async function download({ app }: SignedVisit): Promise<Download> {
  const rows = (await lines(app, EXPORTED)).map(({ at, actor, action, account }) =>
    csvLine([rfc3339(at), actor, action, account ?? '']),
  );
  const text = csvLine(['at', 'actor', 'action', 'account']) + rows.join('');
  return { kind: 'download', name: 'audit.csv', type: 'text/csv; charset=utf-8', body: oneChunk(text) };
}

export const AUDIT_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/audit', roles: STAFF, handle: audit },
  { method: 'GET', path: '/audit.csv', roles: STAFF, handle: download },
];
