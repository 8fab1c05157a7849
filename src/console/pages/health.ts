/** The page of health: readiness, the results of doctor, warnings and metrics. */
import { LOG_EVENTS } from '../../server/log-events.ts';
import { METRICS } from '../../server/metric-definitions.ts';
import type { ServerStatus } from '../../server/status.ts';
import type { ConsoleContext } from '../context.ts';
import { type Html, html } from '../web/html.ts';
import { type Page, type Route, type SignedVisit, STAFF } from '../web/route.ts';
import { count, emptyState, facts, mark, moment, table } from '../web/widgets.ts';
import { doctorReport } from './doctor-report.ts';

const RENEW_SECONDS = 10;
const WARNINGS_SHOWN = 50;

function readiness(status: ServerStatus): Html {
  const lines = [
    ...status.reasons.map((text) => html`<li>${mark('bad', 'problem')} ${text}</li>`),
    ...status.warnings.map((text) => html`<li>${mark('warn', 'warning')} ${text}</li>`),
  ];
  return html`<div data-live id="readiness"><p>${
    status.ready ? mark('good', 'ready') : mark('bad', 'not ready')
  } ${status.ready ? 'Every lookup can be answered.' : 'Some lookups cannot be answered:'}</p>
${lines.length > 0 && html`<ul>${lines}</ul>`}
${facts([
  ['Address', status.address],
  ['Version', status.version],
  ['Running since', moment(status.started_at)],
  ['Replaced workers', count(status.worker_restarts)],
])}
${table(
  'Workers',
  ['Worker', 'Process', 'Data', { numbers: 'Connections' }, { numbers: 'Waiting' }],
  [
    ...status.workers.map((one) => [
      one.worker,
      one.pid,
      one.data ?? 'no index',
      count(one.connections),
      count(one.in_flight),
    ]),
    ...status.missing.map(({ worker, pid, reason }) => [worker, pid ?? '–', reason, '–', '–']),
  ],
)}</div>`;
}

async function warnings({ ask }: ConsoleContext): Promise<Html> {
  const lines = (await ask('warnings')).slice(-WARNINGS_SHOWN).reverse();
  if (lines.length === 0)
    return html`<div data-live id="warnings">${emptyState('The primary process has logged no warning since it started.')}</div>`;
  const rows = lines.map(({ time, event, fields }) => {
    const { level, meaning, action } = LOG_EVENTS[event];
    const facts = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
    return [
      moment(time),
      mark(level === 'error' ? 'bad' : 'warn', level),
      html`<code>${event}</code>`,
      html`${meaning}<div>${facts.join(', ')}</div>${action !== '' && html`<div class="advice">${action}</div>`}`,
    ];
  });
  const columns = ['When', 'Level', 'Event', 'What, and what to do'];
  return html`<div data-live id="warnings">${table('Warnings', columns, rows)}</div>`;
}

/** Parses the values of each metric from Prometheus text. Of a histogram only sum and count: the overview plots its buckets. */
export function readValues(text: string): ReadonlyMap<string, readonly (readonly [labels: string, value: string])[]> {
  const values = new Map<string, [string, string][]>();
  for (const line of text.split('\n')) {
    const [, full, labels = '', value] = /^pagegate_([a-z_]+)(\{.*\})? (\S+)$/.exec(line) ?? [];
    if (full === undefined || value === undefined || full.endsWith('_bucket')) continue;
    const part = /_(?:sum|count)$/.exec(full)?.[0] ?? '';
    const base = full.slice(0, full.length - part.length);
    const isPart = part !== '' && base in METRICS;
    const name = isPart ? base : full;
    const label = [isPart ? part.slice(1) : '', labels].filter((one) => one !== '').join(' ');
    values.set(name, [...(values.get(name) ?? []), [label, value]]);
  }
  return values;
}

async function metrics({ ask }: ConsoleContext): Promise<Html> {
  const values = readValues(await ask('metrics'));
  const rows = Object.entries(METRICS).map(([name, { meaning, worry }]) => [
    html`<code>pagegate_${name}</code>`,
    html`${meaning}${worry !== '' && html`<div class="advice">${worry}</div>`}`,
    (values.get(name) ?? []).map(
      ([labels, value]) =>
        html`<div>${labels !== '' && html`<code>${labels}</code> `}${Number.isInteger(Number(value)) ? count(Number(value)) : value}</div>`,
    ),
  ]);
  const columns = ['Name', 'What it means, and when to look', { numbers: 'Now' }];
  return table('Every metric', columns, rows, 'metric-values');
}

async function health({ app }: SignedVisit): Promise<Page> {
  const part = (task: Promise<Html>): Promise<Html> =>
    task.catch(() => emptyState('The primary process does not answer.'));
  // In parallel: if the primary hangs, the page waits for one timeout instead of three.
  const [status, warned, counted] = await Promise.all([
    app.ask('status').catch(() => undefined),
    part(warnings(app)),
    part(metrics(app)),
  ]);
  const body = html`<section aria-labelledby="server"><h2 id="server">The server</h2>
${status === undefined ? html`<p data-live id="readiness">${mark('bad', 'no answer')} The primary process does not answer.</p>` : readiness(status)}</section>
<section aria-labelledby="doctor"><h2 id="doctor">Results of pagegate doctor</h2>${doctorReport(app.doctor, app.jobs)}</section>
<section aria-labelledby="log"><h2 id="log">Warnings</h2>
<p class="hint">The latest of the primary process, newest first. Workers write theirs to the log of the service.</p>${warned}</section>
<section aria-labelledby="metrics"><h2 id="metrics">Metrics</h2>
<p class="hint">The same as <code>/metrics</code> of the admin listener.</p>${counted}</section>`;
  return { kind: 'page', title: 'Health', body, renewSeconds: RENEW_SECONDS };
}

export const HEALTH_ROUTES: readonly Route[] = [{ method: 'GET', path: '/health', roles: STAFF, handle: health }];
