/** The domains and rules with most denials among the latest decisions. */
import { PagegateError } from '../../errors.ts';
import type { ConsoleContext } from '../context.ts';
import { SearchProgress } from '../decisions/logs.ts';
import { type Html, html } from '../web/html.ts';
import { count, emptyState, moment, table } from '../web/widgets.ts';

const LINES = 4_000;
const BUDGET_MS = 500;
const KEPT_MS = 10_000;
const SHOWN = 8;

interface Top {
  readonly lines: number;
  readonly since: string;
  readonly domains: readonly (readonly [name: string, count: number])[];
  readonly rules: readonly (readonly [name: string, count: number])[];
}

async function gather({ decisions }: ConsoleContext): Promise<Top> {
  const until = performance.now() + BUDGET_MS;
  const domains = new Map<string, number>();
  const rules = new Map<string, number>();
  const add = (map: Map<string, number>, name: string): void => void map.set(name, (map.get(name) ?? 0) + 1);
  let [lines, since] = [0, ''];
  for await (const line of decisions.read({})) {
    if (!(line instanceof SearchProgress)) {
      lines += 1;
      since = line.time;
      if (line.verdict === 'deny') {
        add(domains, line.domain);
        add(rules, line.matched.id);
      }
    }
    // Checked after a line, so that at least one is read even on a busy host.
    if (performance.now() > until || lines >= LINES) break;
  }
  const most = (map: Map<string, number>): [string, number][] => [...map].sort((a, b) => b[1] - a[1]).slice(0, SHOWN);
  return { lines, since, domains: most(domains), rules: most(rules) };
}

/** Returns two tables, of domains and of rules. Each row links to its decisions. */
export async function topDenied(app: ConsoleContext): Promise<Html> {
  const base = app.config.console.base_path;
  const section = (what: Html): Html =>
    html`<section aria-labelledby="denied" data-live id="denied-most"><h2 id="denied">Most denied</h2>${what}</section>`;
  let top: Top;
  try {
    top = await app.kept.get('denied most', KEPT_MS, () => gather(app));
  } catch (error) {
    // The rest of the page is shown nevertheless.
    if (!(error instanceof PagegateError)) throw error;
    return section(emptyState(error.message));
  }
  const { lines, since, domains, rules } = top;
  const link = (name: string, value: string): string =>
    `${base}decisions?${new URLSearchParams({ verdict: 'deny', [name]: value })}`;
  const list = (label: string, name: string, rows: Top['domains']): Html =>
    table(
      label,
      [label, { numbers: 'Denials' }],
      rows.map(([value, times]) => [html`<a href="${link(name, value)}">${value}</a>`, count(times)]),
    );
  const what =
    lines === 0
      ? emptyState(
          app.config.decision_log.enabled
            ? 'No decision has been logged yet.'
            : 'The decision log is off, so nothing is known about single decisions. decision_log.enabled switches it on.',
        )
      : html`<p class="hint">Among the latest ${count(lines)} decisions, since ${moment(since)}.</p>
<div class="columns">${list('Domain', 'domain', domains)}${list('Rule', 'rule', rules)}</div>`;
  return section(what);
}
