/** The page for a refresh from `refresh.drop`: it shows the delivered drop and starts the refresh. A browser cannot name a folder. */

import { counted } from '../../counted.ts';
import { PagegateError } from '../../errors.ts';
import { type Generation, listGenerations } from '../../refresh/store.ts';
import { readWithdrawn } from '../../refresh/withdrawn-drops.ts';
import { inspectDrop } from '../../refresh-steps/run.ts';
import type { ConsoleContext } from '../context.ts';
import { type Html, html } from '../web/html.ts';
import { form } from '../web/layout.ts';
import { HttpRefusal } from '../web/request.ts';
import { OPERATOR, type Page, type Redirect, type Route, type SignedVisit } from '../web/route.ts';
import { bytes, count, facts, mark, moment } from '../web/widgets.ts';
import { startJob } from './generations.ts';

type Drop = ReturnType<typeof inspectDrop>;

const NO_FOLDER = 'refresh.drop is not set: it names the folder to which drops are delivered.';

function dropFacts(folder: string, { manifest, signedBy }: Drop): Html {
  const { dataset, revision, created, files } = manifest;
  const sum = (pick: (file: (typeof files)[number]) => number): number =>
    files.reduce((total, file) => total + pick(file), 0);
  return facts([
    ['Folder', folder],
    ['Dataset', dataset],
    ['Revision', count(revision)],
    ['Made', moment(created)],
    ['Signed', signedBy === null ? mark('warn', 'unsigned') : `by ${signedBy}`],
    [
      'Records',
      `${count(sum(({ records }) => records))} in ${counted(files.length, 'part')}, ${bytes(sum((file) => file.bytes))}`,
    ],
  ]);
}

/** Returns why a refresh would change nothing; undefined if it would change something. */
function whyUnchanged(
  { paths }: ConsoleContext,
  { manifestSha256 }: Drop,
  served: Generation | undefined,
): string | undefined {
  if (served?.report?.manifestSha256 === manifestSha256)
    return `Generation ${served.generation} already serves this drop. There is nothing to do.`;
  const withdrawn = readWithdrawn(paths.indexDir).find((one) => one.manifestSha256 === manifestSha256);
  return withdrawn === undefined || served === undefined
    ? undefined
    : `It was rolled back here, as generation ${withdrawn.generation}, and no refresh serves it again automatically. If that generation is still kept, serve it from the list.`;
}

/** Describes what a refresh would do, and asks for confirmation. */
function confirmRefresh({ app, base, csrf }: SignedVisit): Page {
  const folder = app.config.refresh.drop;
  const served = listGenerations(app.paths.indexDir).find(({ current }) => current);
  const back = html`<a class="button plain" href="${base}generations">Cancel</a>`;
  const page = (body: Html): Page => ({ kind: 'page', title: 'Refresh', body });
  if (folder === null) return page(html`<p>${NO_FOLDER}</p><p>${back}</p>`);
  let drop: Drop;
  try {
    drop = inspectDrop(app.config, folder);
  } catch (error) {
    if (!(error instanceof PagegateError)) throw error;
    const body = html`<p>${folder} has no drop that a refresh would accept.</p><p>${back}</p>`;
    return { ...page(body), problem: error.message };
  }
  const why = whyUnchanged(app, drop, served);
  if (why !== undefined) return page(html`${dropFacts(folder, drop)}<p>${why}</p><p>${back}</p>`);
  const now =
    served === undefined
      ? 'Nothing is served now.'
      : `Generation ${served.generation} is served now, revision ${served.report?.revision ?? 'unknown'}.`;
  return page(html`${dropFacts(folder, drop)}
<p>${now} The next generation is built from this drop, verified, and then served instead. Until then, and if anything is wrong with the drop or the license does not cover it, the served generation stays.</p>
${form(`${base}generations/refresh`, csrf, html`<input type="hidden" name="manifest" value="${drop.manifestSha256}"><div class="actions"><button>Refresh</button> ${back}</div>`)}`);
}

/** Starts the refresh if the drop is still the one that was shown. */
function startRefresh({ app, session, form: fields }: SignedVisit): Promise<Redirect> {
  const folder = app.config.refresh.drop;
  return startJob(() => {
    if (folder === null) throw new HttpRefusal(404, NO_FOLDER);
    const { manifest } = inspectDrop(app.config, folder);
    const what = `${manifest.dataset} revision ${manifest.revision}`;
    const manifestSha256 = fields.get('manifest') ?? '';
    app.jobs.start(
      { kind: 'refresh', input: { drop: folder, manifestSha256, actor: session.name } },
      { title: `Refresh to ${what}`, actor: session.name, describe: ({ text }) => text },
    );
    return `${what} is being built.`;
  });
}

/** Cancels the job that the page showed; not one that has started since. */
function stopWork({ app, session, form: fields }: SignedVisit): Redirect {
  const { running } = app.jobs;
  const isMeant = running !== undefined && String(running.startedMs) === fields.get('job');
  if (isMeant) app.jobs.cancel(session.name);
  const text = isMeant ? `${running.title} is being stopped.` : 'This work has already ended.';
  return { kind: 'redirect', to: '/generations', notice: { tone: 'good', text } };
}

export const REFRESH_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/generations/refresh', roles: OPERATOR, handle: confirmRefresh },
  { method: 'POST', path: '/generations/refresh', roles: OPERATOR, handle: startRefresh },
  { method: 'POST', path: '/generations/stop', roles: OPERATOR, handle: stopWork },
];
