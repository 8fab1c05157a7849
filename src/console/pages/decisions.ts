/** The page of decisions: the decision log, newest first. Lines are filtered while they are read, and sent as they are found. */
import { parseTarget } from '../../domain/target.ts';
import { LIMITS } from '../../limits.ts';
import type { DecisionFilter, LoggedDecision } from '../decisions/filter.ts';
import { type LogPosition, SearchProgress } from '../decisions/logs.ts';
import { csvLine } from '../web/csv.ts';
import { field, filterText, filterTimes, timeFields, wrongFilter } from '../web/filter-fields.ts';
import { type Html, html, type Value } from '../web/html.ts';
import { HttpRefusal } from '../web/request.ts';
import { type Download, type Page, type Route, type SignedVisit, STAFF } from '../web/route.ts';
import { bytes, duration, emptyState, moment, verdictMark } from '../web/widgets.ts';

const SHOWN = LIMITS.consoleDecisions.value;
/** Time for one search of a live page, which is requested repeatedly. */
const LIVE_BUDGET_MS = 500;
/** While nothing is found, the page shows the progress of the search at this interval. */
const PROGRESS_EVERY_MS = 400;
const LIVE_SECONDS = 2;
/** Cache time of a live page: all users with the same filter share it. */
const LIVE_KEPT_MS = 1_000;
const VERDICTS = ['allow', 'flag', 'deny'];
const UUID = /^[0-9a-f-]{36}$/;
/** The prefix for "every host below", as in a policy (`*.`) or in a cookie (`.`). */
const BELOW = /^\*?\./;

/**
 * Converts what a user typed (a host, a URL or an international name) into a host in the form of the log; with a leading dot if only the
 * hosts below it are meant.
 *
 * @throws HttpRefusal 400
 */
function domainOf(text: string): string {
  const name = text.replace(BELOW, '');
  const target = parseTarget(name);
  // In a URL, a star after the host is part of the URL and does no harm.
  const host = 'problem' in target ? name.toLowerCase() : target.url.host;
  if (host.includes('*')) {
    const what =
      'expected a host such as example.com, which includes the hosts below it, or *.example.com for only those';
    throw new HttpRefusal(400, `domain: ${what}; a * is not possible anywhere else. Got "${text}".`);
  }
  return name === text ? host : `.${host}`;
}

/** @throws HttpRefusal 400 */
function filterOf({ query }: SignedVisit): DecisionFilter {
  const verdict = filterText(query, 'verdict');
  if (verdict !== undefined && !VERDICTS.includes(verdict))
    throw new HttpRefusal(400, `verdict: expected one of ${VERDICTS.join(', ')}.`);
  const domain = filterText(query, 'domain');
  return {
    verdict,
    // Account names have no capital letters.
    account: filterText(query, 'account')?.toLowerCase(),
    domain: domain === undefined ? undefined : domainOf(domain),
    rule: filterText(query, 'rule'),
    ...filterTimes(query),
  };
}

/** @throws HttpRefusal 400 */
function placeOf({ query }: SignedVisit): LogPosition | undefined {
  const text = query.get('behind');
  if (text === '') return undefined;
  const [time = '', id = ''] = text.split('_', 2);
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/.test(time) || (id !== '' && !UUID.test(id)))
    throw new HttpRefusal(400, 'behind: expected a position from a link on a page of decisions.');
  return { time, id };
}

interface Wanted {
  readonly filter: DecisionFilter;
  readonly place: LogPosition | undefined;
}

/** Parses what a page or file should contain, before anything is sent. @throws HttpRefusal 400, PagegateError console_busy */
function wantedOf(visit: SignedVisit): Wanted {
  visit.app.decisions.assertFree();
  return { filter: filterOf(visit), place: placeOf(visit) };
}

/** Returns the URL of a page with changed query parameters; empty ones are removed. */
function address(visit: SignedVisit, page: string, changes: Readonly<Record<string, string>>): string {
  const fields = new URLSearchParams();
  for (const [name, value] of [...visit.query, ...Object.entries(changes)]) fields.set(name, value);
  for (const [name, value] of [...fields]) if (value === '') fields.delete(name);
  return `${visit.base}${page}?${fields}`;
}

const urlOf = ({ url, scheme, host, path }: LoggedDecision): string => url ?? `${scheme}://${host}${path}`;

function row(visit: SignedVisit, line: LoggedDecision): Html {
  const { base } = visit;
  const { account, matched, domain, verdict } = line;
  const only = (name: string, value: string): Html =>
    html`<a href="${address(visit, 'decisions', { [name]: value, behind: '' })}">${value}</a>`;
  const tried = `${base}try?${new URLSearchParams({ url: urlOf(line), method: line.method })}`;
  const cells: readonly Value[] = [
    moment(line.time),
    html`<a href="${address(visit, 'decisions', { verdict, behind: '' })}">${verdictMark(verdict)}</a>`,
    html`<code>${line.method}</code>`,
    html`<code>${urlOf(line)}</code><div class="detail">${only('domain', domain)}${!line.found && ', not classified'} · <a href="${tried}">try it</a></div>`,
    html`${matched.layer}<div>${only('rule', matched.id)}</div>`,
    matched.note,
    only('account', account),
    duration(line.latency_ms / 1000),
  ];
  return html`<tr>${cells.map((cell, i) => html`<td${i === 3 && html` class="url"`}>${cell}</td>`)}</tr>
`;
}

const COLUMNS = ['When', 'Verdict', 'Method', 'Where', 'By', 'Why', 'Account', 'Took'];

const searched = ({ backTo, doneBytes, allBytes }: SearchProgress): Html =>
  html`Searched back to ${moment(backTo)}; ${bytes(doneBytes)} of ${bytes(allBytes)} read.`;

/** Yields the rows as they are found, then a link to continue. */
async function* rows(visit: SignedVisit, { filter, place: start }: Wanted, isLive: boolean): AsyncGenerator<Html> {
  const { app, signal } = visit;
  const until = performance.now() + (isLive ? LIVE_BUDGET_MS : LIMITS.consoleSearchMs.value);
  let shown = 0;
  let place: string | undefined;
  let progress: SearchProgress | undefined;
  let isOver = true;
  let sentMs = performance.now();
  yield html`<div class="wide" role="region" aria-label="Decisions" tabindex="0"><table><thead><tr>${COLUMNS.map(
    (title) => html`<th scope="col">${title}</th>`,
  )}</tr></thead><tbody>`;
  for await (const found of app.decisions.read(filter, start)) {
    if (signal.aborted) return;
    const isProgress = found instanceof SearchProgress;
    const now = performance.now();
    if (isProgress) {
      progress = found;
      // Continue there: the last match may be much newer than this position.
      if (place === undefined || !place.startsWith(found.backTo)) place = `${found.backTo}_`;
    }
    if (now > until || (!isProgress && shown >= SHOWN)) {
      isOver = false;
      break;
    }
    if (isProgress && now - sentMs < PROGRESS_EVERY_MS) continue;
    sentMs = now;
    // The style sheet shows such a row only while it is the last one.
    if (isProgress) yield html`<tr class="searched"><td colspan="${COLUMNS.length}">${searched(found)}</td></tr>`;
    else {
      shown += 1;
      place = `${found.time}_${found.id}`;
      yield row(visit, found);
    }
  }
  yield html`</tbody></table></div>`;
  if (isOver) yield shown > 0 ? html`<p class="hint">That is all.</p>` : nothing(visit);
  else yield ended(visit, shown, place, progress);
}

const nothing = ({ app, query }: SignedVisit): Html =>
  emptyState(
    app.config.decision_log.enabled
      ? `No decision matches.${query.get('account') + query.get('rule') === '' ? '' : ' Accounts and rules are found only by their full names.'}`
      : 'The decision log is off: decision_log.enabled switches it on. Lines of older files would appear here.',
  );

/** Returns the link to further lines, and the progress if the search ran out of time. */
function ended(
  visit: SignedVisit,
  shown: number,
  place: string | undefined,
  progress: SearchProgress | undefined,
): Html {
  const isTimeOver = shown < SHOWN;
  const more =
    place !== undefined &&
    html`<p class="actions"><a class="button plain" href="${address(visit, 'decisions', { behind: place, live: '' })}">${isTimeOver ? 'Continue the search' : 'Older'}</a></p>`;
  return html`${isTimeOver && progress !== undefined && html`<p class="hint">${searched(progress)} Narrow it down by time, or save it as a file: that searches everything.</p>`}${more}`;
}

function filterForm(visit: SignedVisit): Html {
  const { query, base } = visit;
  const option = (value: string, text: string): Html =>
    html`<option value="${value}"${query.get('verdict') === value && html` selected`}>${text}</option>`;
  return html`<form class="row" action="${base}decisions"><label>Verdict <select name="verdict">${option('', 'any')}${VERDICTS.map((one) => option(one, one))}</select></label>
${field(query, 'account', 'Account')}${field(query, 'domain', 'Domain, and below')}${field(query, 'rule', 'Rule')}${timeFields(query)}<button>Show</button></form>`;
}

function decisions(visit: SignedVisit): Page {
  let wanted: Wanted;
  try {
    wanted = wantedOf(visit);
  } catch (error) {
    if (!(error instanceof HttpRefusal)) throw error;
    return wrongFilter('Decisions', filterForm(visit), error);
  }
  const isLive = visit.query.get('live') === '1' && visit.query.get('behind') === '';
  const live = isLive
    ? html`<a class="button" aria-current="true" href="${address(visit, 'decisions', { live: '' })}">Stop following</a>`
    : html`<a class="button plain" href="${address(visit, 'decisions', { live: '1', behind: '' })}">Follow live</a>`;
  const save = (type: string): string => address(visit, `decisions.${type}`, { behind: '', live: '' });
  const body = html`${filterForm(visit)}
<p class="actions">${live} <a class="button plain" href="${save('csv')}">Save as CSV</a> <a class="button plain" href="${save('ndjson')}">Save as NDJSON</a></p>
<p class="hint">Newest first. Unless <code>decision_log.full_url</code> is set, what may be a secret in an address is written as ***.</p>`;
  const page = { kind: 'page', title: 'Decisions', body } as const;
  if (!isLive) return { ...page, more: rows(visit, wanted, false) };
  return { ...page, renewSeconds: LIVE_SECONDS, more: followed(visit, wanted) };
}

async function* followed(visit: SignedVisit, wanted: Wanted): AsyncGenerator<Html> {
  const { app } = visit;
  yield await app.kept.get(`live ${address(visit, 'decisions', {})}`, LIVE_KEPT_MS, async () => {
    // Other browsers may wait for the same search, so it does not end when this one disconnects.
    const shared = { ...visit, signal: new AbortController().signal };
    const parts: Html[] = [];
    for await (const part of rows(shared, wanted, true)) parts.push(part);
    return html`<div data-live id="decisions">${parts}</div>`;
  });
}

/** Yields all matching lines, however many, with back-pressure from the browser. */
async function* exported(
  visit: SignedVisit,
  { filter }: Wanted,
  first: string,
  line: (decision: LoggedDecision) => string,
): AsyncGenerator<string> {
  yield first;
  let text = '';
  for await (const found of visit.app.decisions.read(filter)) {
    if (visit.signal.aborted) return;
    const isProgress = found instanceof SearchProgress;
    if (!isProgress) text += line(found);
    if (text.length < 32_768 && !isProgress) continue;
    yield text;
    text = '';
  }
  yield text;
}

const CSV_COLUMNS = [
  'time',
  'account',
  'method',
  'url',
  'domain',
  'found',
  'verdict',
  'layer',
  'id',
  'note',
  'data',
  'latency_ms',
  'decision',
];

const csvOf = (line: LoggedDecision): string =>
  csvLine([
    line.time,
    line.account,
    line.method,
    urlOf(line),
    line.domain,
    String(line.found),
    line.verdict,
    line.matched.layer,
    line.matched.id,
    line.matched.note,
    line.data,
    line.latency_ms,
    line.id,
  ]);

function csv(visit: SignedVisit): Download {
  const wanted = wantedOf(visit);
  return {
    kind: 'download',
    name: 'decisions.csv',
    type: 'text/csv; charset=utf-8',
    body: exported(visit, wanted, csvLine(CSV_COLUMNS), csvOf),
  };
}

function ndjson(visit: SignedVisit): Download {
  const wanted = wantedOf(visit);
  const line = (decision: LoggedDecision): string => `${JSON.stringify(decision)}\n`;
  return {
    kind: 'download',
    name: 'decisions.ndjson',
    type: 'application/x-ndjson',
    body: exported(visit, wanted, '', line),
  };
}

export const DECISION_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/decisions', roles: STAFF, handle: decisions },
  { method: 'GET', path: '/decisions.csv', roles: STAFF, handle: csv },
  { method: 'GET', path: '/decisions.ndjson', roles: STAFF, handle: ndjson },
];
