/** The page of generations: which are served, kept or refused, and how they differ; actions to verify, compare and roll back. */
import { counted } from '../../counted.ts';
import { PagegateError } from '../../errors.ts';
import { type Progress, percentOf } from '../../progress.ts';
import { readProgress } from '../../refresh/progress.ts';
import { type Generation, listGenerations, listLitter, rejectsOf } from '../../refresh/store.ts';
import { isOlder, readWithdrawn } from '../../refresh/withdrawn-drops.ts';
import type { Difference } from '../jobs/messages.ts';
import type { Job } from '../jobs/runner.ts';
import { type Html, html, type Value } from '../web/html.ts';
import { form } from '../web/layout.ts';
import { HttpRefusal } from '../web/request.ts';
import { OPERATOR, type Page, type Redirect, type Route, type SignedVisit, STAFF } from '../web/route.ts';
import { bytes, count, duration, emptyState, mark, moment, type Tone, table } from '../web/widgets.ts';
import { redirectWithNotice } from './accounts.ts';

const RENEW_SECONDS = 3;

const factOf = (before: Generation, after: Generation): string =>
  `compare ${before.report?.manifestSha256 ?? ''} ${after.report?.manifestSha256 ?? ''}`;

function stateOf(one: Generation, withdrawn: ReadonlySet<string>): readonly [tone: Tone, text: string] {
  if (one.current) return ['good', 'served'];
  if (one.report === undefined) return ['bad', 'damaged: no report'];
  return withdrawn.has(one.report.manifestSha256) ? ['warn', 'rolled back'] : ['plain', 'kept'];
}

/** Returns how a generation differs from the previous one, as far as known. */
function difference(
  { app, base, session, csrf }: SignedVisit,
  before: Generation | undefined,
  after: Generation,
): Value {
  if (before?.report === undefined || after.report === undefined) return '–';
  const more = after.report.recordCount - before.report.recordCount;
  const net = `${more < 0 ? '−' : '+'}${count(Math.abs(more))} records`;
  const known = app.store.fact(factOf(before, after)) as Difference | undefined;
  if (known !== undefined)
    return html`${net}<div class="detail">${count(known.added)} added, ${count(known.removed)} removed, ${count(known.changed)} changed</div>`;
  const action = `${base}generations/${after.generation}/compare`;
  return html`${net}${session.role === 'operator' && form(action, csrf, html`<button class="plain" aria-label="Compare generation ${after.generation}">Compare</button>`)}`;
}

/** Returns the progress of a job: a bar if the share is known, and the text. */
function progressOf(title: string, { what, share, detail = '' }: Progress): Html {
  const percent = share === undefined ? undefined : percentOf(share);
  const bar = html`<progress max="100" value="${percent}" aria-label="${title}"></progress> `;
  const words = [what, ...(percent === undefined ? [] : [`${percent} %`]), ...(detail === '' ? [] : [detail])];
  return html`${percent !== undefined && bar}${words.join(', ')}`;
}

function jobLine({ title, actor, startedMs, endedMs, progress, text, state }: Job): readonly Value[] {
  const tone: Tone = state === 'done' ? 'good' : state === 'failed' ? 'bad' : 'warn';
  // The clock may have been set back since.
  const took = duration(Math.max(0, (endedMs ?? Date.now()) - startedMs) / 1000);
  const shown = state === 'running' ? progressOf(title, progress) : text;
  return [mark(tone, state), title, shown, actor, moment(startedMs / 1000), took];
}

function work({ app, base, session, csrf }: SignedVisit): Html {
  const { running } = app.jobs;
  const found = readProgress(app.paths.indexDir);
  // A refresh that the console started is in its list of jobs already.
  const refresh = found?.pid === running?.pid ? undefined : found;
  const stop =
    session.role === 'operator' &&
    running !== undefined &&
    form(
      `${base}generations/stop`,
      csrf,
      html`<input type="hidden" name="job" value="${running.startedMs}"><button class="plain">Stop it</button>`,
    );
  const columns = ['State', 'Work', 'Progress or result', 'Who', 'Since', 'Took'];
  const jobs = app.jobs.jobs.map(jobLine);
  const rows =
    refresh === undefined
      ? jobs
      : [
          [
            mark('warn', 'running'),
            'Refresh',
            progressOf('Refresh', refresh),
            `process ${refresh.pid}`,
            moment(refresh.started),
            '',
          ],
          ...jobs,
        ];
  return html`<div data-live id="work">${rows.length === 0 ? emptyState('Nothing is running. Every refresh appears here with its progress, whether it is started here, on the command line or by a timer.') : table('Work', columns, rows)}${stop}</div>`;
}

/** Returns the signature and the number of rejects of a generation, from its report. */
function reportOf({ report }: Generation): Value {
  if (report === undefined) return '–';
  const rejected = Object.values(rejectsOf(report)).reduce((sum, reason) => sum + reason, 0);
  return html`${report.signedBy === null ? mark('warn', 'unsigned') : `signed by ${report.signedBy}`}${rejected > 0 && html`<div class="detail">${counted(rejected, 'reject')}</div>`}`;
}

function list(visit: SignedVisit): Page {
  const { app, base, session, csrf } = visit;
  const { indexDir } = app.paths;
  const all = listGenerations(indexDir);
  const marks = readWithdrawn(indexDir);
  const withdrawn = new Set(marks.map(({ manifestSha256 }) => manifestSha256));
  const rows = all
    .map((one, i) => {
      const { generation, report, current } = one;
      const [tone, text] = stateOf(one, withdrawn);
      const actions =
        session.role === 'operator' &&
        html`<div class="actions">${form(`${base}generations/${generation}/verify`, csrf, html`<button class="plain" aria-label="Verify generation ${generation}">Verify</button>`)}${
          !current &&
          report !== undefined &&
          html`<a class="button plain" href="${base}generations/${generation}/rollback" aria-label="Serve it: generation ${generation}">Serve it</a>`
        }</div>`;
      return [
        generation,
        html`${mark(tone, text)}${actions}`,
        report === undefined
          ? '–'
          : html`${report.dataset}<div class="detail">revision ${report.revision}, made ${moment(report.created)}</div>`,
        moment(report?.builtAt),
        report === undefined ? '–' : count(report.recordCount),
        report === undefined ? '–' : bytes(report.sizeBytes),
        difference(visit, all[i - 1], one),
        reportOf(one),
      ];
    })
    .reverse();
  const columns = [
    'Generation',
    'State',
    'Data',
    'Built',
    { numbers: 'Records' },
    { numbers: 'Size' },
    'Change from the previous',
    'Origin',
  ];
  const litter = listLitter(indexDir).length;
  const isDropKnown = app.config.refresh.drop !== null;
  const refresh =
    session.role === 'operator' &&
    (isDropKnown
      ? html`<p class="actions"><a class="button plain" href="${base}generations/refresh">Refresh</a></p>`
      : html`<p class="hint">To start a refresh here, set refresh.drop to the folder to which drops are delivered.</p>`);
  const refused = marks.map(({ generation, revision, withdrawnAt }) => [generation, revision, moment(withdrawnAt)]);
  const body = html`${rows.length === 0 ? emptyState('There is no generation yet. Build the first one on the server: pagegate refresh DROP.') : table('Generations', columns, rows, 'kept')}
${refresh}
${litter > 0 && html`<p class="hint">${litter} leftovers of interrupted runs, or files of a running refresh; pagegate prune removes leftovers.</p>`}
<section aria-labelledby="work-title"><h2 id="work-title">Work</h2>${work(visit)}</section>
<section aria-labelledby="refused"><h2 id="refused">Refused from now on</h2>${
    refused.length === 0
      ? emptyState(
          'No drop is refused. Drops that were rolled back are listed here; no refresh serves them again automatically.',
        )
      : table('Drops that were rolled back', ['Was generation', 'Revision', 'Rolled back'], refused)
  }</section>`;
  return { kind: 'page', title: 'Generations', body, renewSeconds: RENEW_SECONDS };
}

/** Finds the generation of the URL, the previous one, and the served one. @throws HttpRefusal 404 */
function find({ app, params }: SignedVisit): {
  readonly one: Generation;
  readonly before: Generation | undefined;
  readonly served: Generation | undefined;
} {
  const all = listGenerations(app.paths.indexDir);
  const at = all.findIndex(({ generation }) => String(generation) === params['generation']);
  if (at === -1) throw new HttpRefusal(404, 'This generation is not kept.');
  return { one: all[at]!, before: all[at - 1], served: all.find(({ current }) => current) };
}

function confirmRollback(visit: SignedVisit): Page {
  const { one, served } = find(visit);
  const { base } = visit;
  const { report, generation } = one;
  const back = html`<a class="button plain" href="${base}generations">Cancel</a>`;
  const title = `Serve generation ${generation}`;
  if (report === undefined || one.current) {
    const why = one.current ? 'It is already served.' : 'It has no report: it is damaged and cannot be served.';
    return { kind: 'page', title, body: html`<p>${why}</p><p>${back}</p>` };
  }
  const now =
    served === undefined
      ? 'Nothing is served now.'
      : `Generation ${served.generation} is served now, revision ${served.report?.revision ?? 'unknown'}.`;
  const mark =
    served?.report !== undefined &&
    isOlder({ ...report, generation }, { ...served.report, generation: served.generation });
  const body = html`<p>${now}</p>
<p>Generation ${generation} will be served instead: ${report.dataset}, revision ${report.revision}, made ${moment(report.created)}, ${count(report.recordCount)} records. It is verified first; until then, and if that fails, the served generation stays.</p>
${mark && html`<p>The drop of generation ${served.generation} then counts as rolled back: no refresh serves it again automatically.</p>`}
${form(`${base}generations/${generation}/rollback`, visit.csrf, html`<div class="actions"><button>${title}</button> ${back}</div>`)}`;
  return { kind: 'page', title, body };
}

/** Starts a job, and redirects to the page of generations with a notice that it runs, or why it does not. */
export const startJob = (work: () => string): Promise<Redirect> =>
  redirectWithNotice(
    '/generations',
    (async () => ({ tone: 'good', text: `${work()} Its progress is shown below.` }) as const)(),
  );

function rollback(visit: SignedVisit): Promise<Redirect> {
  const { app, session } = visit;
  const { generation } = find(visit).one;
  return startJob(() => {
    const title = `Serve generation ${generation}`;
    app.jobs.start(
      { kind: 'rollback', input: { generation, actor: session.name } },
      { title, actor: session.name, describe: ({ text }) => text },
    );
    return `Generation ${generation} is being verified, then served.`;
  });
}

function verify(visit: SignedVisit): Promise<Redirect> {
  const { app, session } = visit;
  const { generation } = find(visit).one;
  return startJob(() => {
    app.jobs.start(
      { kind: 'verify', input: { generation } },
      {
        title: `Verify generation ${generation}`,
        actor: session.name,
        describe: ({ records }) => `It is intact: ${count(records)} records.`,
      },
    );
    return `Generation ${generation} is being verified.`;
  });
}

function compare(visit: SignedVisit): Promise<Redirect> {
  const { app, session } = visit;
  const { one, before } = find(visit);
  return startJob(() => {
    if (before === undefined) throw new PagegateError('generation_missing', 'There is no generation before it.');
    app.jobs.start(
      { kind: 'compare', input: { before: before.generation, after: one.generation } },
      {
        title: `Compare generation ${one.generation} with ${before.generation}`,
        actor: session.name,
        describe: (found) => {
          app.store.setFact(factOf(before, one), found);
          return `${count(found.added)} added, ${count(found.removed)} removed, ${count(found.changed)} changed.`;
        },
      },
    );
    return `Generation ${one.generation} is being compared with ${before.generation}.`;
  });
}

export const GENERATION_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/generations', roles: STAFF, handle: list },
  { method: 'GET', path: '/generations/:generation/rollback', roles: OPERATOR, handle: confirmRollback },
  { method: 'POST', path: '/generations/:generation/rollback', roles: OPERATOR, handle: rollback },
  { method: 'POST', path: '/generations/:generation/verify', roles: OPERATOR, handle: verify },
  { method: 'POST', path: '/generations/:generation/compare', roles: OPERATOR, handle: compare },
];
