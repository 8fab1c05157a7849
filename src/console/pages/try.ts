/** The page to try a URL: verdict, layers and record. Nothing is charged or sent anywhere. */
import { PagegateError } from '../../errors.ts';
import type { TriedVerdict } from '../try-verdict.ts';
import { type Html, html } from '../web/html.ts';
import { type Page, type Route, type SignedVisit, STAFF } from '../web/route.ts';
import { count, emptyState, facts, table, verdictMark } from '../web/widgets.ts';

function layers({ explanation }: TriedVerdict): Html {
  const rows = explanation.steps.map(({ step, says, matches, decides, reached }) => [
    step,
    html`${says}${matches.map(({ verdict, id, note }) => html`<div>${verdictMark(verdict)} <code>${id}</code> ${note}</div>`)}`,
    decides ? html`<strong>decides</strong>` : reached ? 'evaluated' : 'not evaluated: an earlier layer decided',
  ]);
  return table('Layers', ['Layer', 'What it says', 'Effect'], rows);
}

function record(judgment: TriedVerdict): Html {
  const { record, domain, generation } = judgment;
  if (generation === undefined)
    return emptyState('No index is served yet, so no domain is classified. Build the first one with pagegate refresh.');
  if (record === undefined)
    return emptyState(`${judgment.target.key} is not in the index: an unclassified destination.`);
  const rows = record.pageTypes.map(({ type, url }) => [type, html`<code>${url}</code>`]);
  return html`${facts([
    ['Domain', domain],
    ['Language', record.language ?? 'not known'],
    ['IAB category', record.iabCategory ?? 'not known'],
    ['Filtering categories', record.filteringCategories?.join(', ') ?? 'not known'],
    ['Page rank', record.openPageRank ?? 'not known'],
    ['Global rank', record.globalRank === undefined ? 'not known' : count(record.globalRank)],
  ])}${rows.length === 0 ? emptyState('It has no verified page.') : table('Verified pages', ['Page type', 'URL'], rows)}`;
}

/** Proposes an entry for the policy, only on request: it compiles a whole policy. */
function proposal({ app, base, query }: SignedVisit, judgment: TriedVerdict): Html {
  if (query.get('propose') !== '1') {
    const fields = new URLSearchParams({ url: query.get('url'), method: judgment.method, propose: '1' });
    return html`<p class="actions"><a class="button plain" href="${base}try?${String(fields)}">Propose an entry for the policy</a></p>`;
  }
  const { text, verdict, problem } = app.judge.propose(judgment);
  const before = judgment.explanation.verdict;
  const outcome =
    verdict === undefined
      ? html`<p>The policy with this entry is not valid: ${problem}</p>`
      : html`<p>With it the verdict is ${verdictMark(verdict.verdict)} by ${verdict.layer}, <code>${verdict.id}</code>${
          verdict.verdict === before.verdict &&
          '. It stays the same: an earlier layer decides, and no entry of your own overrides that layer'
        }.</p>`;
  return html`<section aria-labelledby="entry"><h2 id="entry">If the verdict should be different</h2>
<p>An entry for your own policy file (<code>policy.file</code>), just tried on this URL. Nothing was changed; check the file with <code>pagegate policy check</code>.</p>
${outcome}<pre>${text}</pre></section>`;
}

function judged(visit: SignedVisit, input: string): Pick<Page, 'body' | 'problem'> {
  try {
    const judgment = visit.app.judge.judge(input, visit.query.get('method'));
    const { explanation, target, method, generation, policy } = judgment;
    const { verdict, layer, id, note } = explanation.verdict;
    const body = html`<section aria-labelledby="verdict"><h2 id="verdict">Verdict</h2>
<p>${verdictMark(verdict)} by ${layer}, <code>${id}</code>: ${note}</p>
${facts([
  ['Judged as', html`<code>${method} ${target.url.href}</code>`],
  ['Read as', target.bare ? 'no scheme: as https://' : 'a URL'],
  ['Data', generation === undefined ? 'no index' : `generation ${generation}, policy ${policy.revision}`],
])}</section>
<section aria-labelledby="layers"><h2 id="layers">Every layer, in order</h2>${layers(judgment)}</section>
<section aria-labelledby="record"><h2 id="record">What is known about the domain</h2>${record(judgment)}</section>
${proposal(visit, judgment)}`;
    return { body };
  } catch (error) {
    if (!(error instanceof PagegateError)) throw error;
    return { body: html``, problem: error.message };
  }
}

async function tryUrl(visit: SignedVisit): Promise<Page> {
  const { app, base, query } = visit;
  const input = query.get('url').trim();
  const judge = (): Pick<Page, 'body' | 'problem'> => (input === '' ? { body: html`` } : judged(visit, input));
  const { body: found, ...rest } = query.get('propose') === '1' ? await app.proposals.take(judge) : judge();
  const body = html`<p>Nothing is charged, nothing is opened, nothing is logged.</p>
<form class="row" action="${base}try"><label class="grow">URL or domain <input name="url" value="${query.get('url')}" maxlength="8192" required spellcheck="false" autocapitalize="none"></label>
<label>Method <input name="method" value="${query.get('method') || 'GET'}" maxlength="64" size="8" autocapitalize="characters"></label><button>Try</button></form>
${found}`;
  return { kind: 'page', title: 'Try a URL', body, ...rest };
}

export const TRY_ROUTES: readonly Route[] = [{ method: 'GET', path: '/try', roles: STAFF, handle: tryUrl }];
