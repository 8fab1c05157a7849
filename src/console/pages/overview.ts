/** The first page: health, data, requests, verdicts and denials. */
import { readTrustedKeys } from '../../config/trusted-keys.ts';
import { PagegateError } from '../../errors.ts';
import { loadLicense } from '../../license/installed.ts';
import { endOfDayMs } from '../../license/license.ts';
import { LATENCY_BOUNDS_SECONDS } from '../../server/metric-definitions.ts';
import type { ServerStatus } from '../../server/status.ts';
import type { ConsoleContext } from '../context.ts';
import { HOUR, MINUTE, mergeSamples, type Sample } from '../store/time-series.ts';
import { type Html, html, type Value } from '../web/html.ts';
import { plot } from '../web/plots.ts';
import { type Page, type Route, type SignedVisit, STAFF } from '../web/route.ts';
import { count, duration, emptyState, mark, moment, percent, type Tone } from '../web/widgets.ts';
import { topDenied } from './top-denied.ts';

const RENEW_SECONDS = 10;

interface Range {
  readonly text: string;
  /** The step of its samples, in seconds. */
  readonly step: number;
  /** The time that one point of a plot covers. */
  readonly pointSeconds: number;
  readonly seconds: number;
}

const RANGES: Readonly<Record<string, Range>> = {
  hour: { text: 'Hour', step: MINUTE, pointSeconds: MINUTE, seconds: HOUR },
  day: { text: 'Day', step: MINUTE, pointSeconds: 10 * MINUTE, seconds: 24 * HOUR },
  quarter: { text: 'Quarter', step: HOUR, pointSeconds: 12 * HOUR, seconds: 92 * 24 * HOUR },
};
const VERDICTS = ['allow', 'flag', 'deny'] as const;

interface Point extends Sample {
  /** The time for which there are samples: the latest point is incomplete. */
  readonly coveredSeconds: number;
}

/** Returns the points of a range, oldest first; undefined for those without a sample. */
function points(
  app: ConsoleContext,
  { step, pointSeconds, seconds }: Range,
  nowSeconds: number,
): (Point | undefined)[] {
  const end = nowSeconds - (nowSeconds % pointSeconds) + pointSeconds;
  const begin = end - seconds;
  const groups = new Map<number, Sample[]>();
  for (const sample of app.store.series.since(step, begin)) {
    const at = sample.at - (sample.at % pointSeconds);
    const group = groups.get(at);
    if (group === undefined) groups.set(at, [sample]);
    else group.push(sample);
  }
  return Array.from({ length: seconds / pointSeconds }, (_, i) => {
    const at = begin + i * pointSeconds;
    const group = groups.get(at);
    return group === undefined ? undefined : { ...mergeSamples(at, group), coveredSeconds: group.length * step };
  });
}

/** Estimates a quantile of the latency, in seconds, from the counts of the histogram; null if there were no lookups. */
export function quantile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, one) => sum + one, 0);
  if (total === 0) return null;
  let below = 0;
  for (const [i, inBucket] of counts.entries()) {
    const upper = LATENCY_BOUNDS_SECONDS[i] ?? LATENCY_BOUNDS_SECONDS.at(-1)!;
    const lower = i === 0 ? 0 : LATENCY_BOUNDS_SECONDS[i - 1]!;
    if (below + inBucket >= share * total)
      return lower + ((upper - lower) * (share * total - below)) / Math.max(1, inBucket);
    below += inBucket;
  }
  return LATENCY_BOUNDS_SECONDS.at(-1)!;
}

const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, one) => sum + one, 0);

const tickOf = (at: number, { seconds }: Range): string =>
  seconds > 24 * HOUR
    ? new Date(at * 1000).toISOString().slice(5, 10)
    : new Date(at * 1000).toISOString().slice(11, 16);

function plots(range: Range, samples: readonly (Point | undefined)[], nowSeconds: number): Html {
  const end = nowSeconds - (nowSeconds % range.pointSeconds) + range.pointSeconds;
  const at = (share: number): number => end - range.seconds + share * range.seconds;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => tickOf(at(share), range));
  const rate = (value: number): string => `${count(Math.round(value * 10) / 10)}/min`;
  const known = samples.filter((sample) => sample !== undefined);
  const rows = known.map((sample) => {
    const row = VERDICTS.map((verdict) => count(sample.verdicts[verdict] ?? 0));
    return [moment(sample.at), count(total(sample.requests)), ...row];
  });
  const [p50, p99] = [0.5, 0.99].map((share) =>
    samples.map((sample) => (sample === undefined ? null : quantile(sample.latency, share))),
  );
  const time = (seconds: number | null): string => (seconds === null ? '–' : duration(seconds));
  return html`${plot({
    label: `Verdicts per minute over the last ${range.text.toLowerCase()}`,
    kind: 'stack',
    layers: VERDICTS.map((verdict) => ({
      name: verdict,
      color: verdict,
      values: samples.map((sample) =>
        sample === undefined ? 0 : ((sample.verdicts[verdict] ?? 0) * MINUTE) / sample.coveredSeconds,
      ),
    })),
    ticks,
    unit: rate,
    rows: { columns: ['From', 'requests', ...VERDICTS], rows },
  })}
${plot({
  label: `Time to a verdict over the last ${range.text.toLowerCase()}: half of the lookups, and 99 of 100`,
  kind: 'lines',
  layers: [
    { name: 'half of the lookups', color: 'first', values: p50! },
    { name: '99 of 100', color: 'second', values: p99! },
  ],
  ticks,
  unit: duration,
  rows: {
    columns: ['From', 'half of the lookups', '99 of 100'],
    rows: known.map((sample) => [
      moment(sample.at),
      time(quantile(sample.latency, 0.5)),
      time(quantile(sample.latency, 0.99)),
    ]),
  },
})}`;
}

/** Returns the plots of a range, cached for a minute, because samples are added once a minute. */
function overTime(app: ConsoleContext, range: Range, now: number): Html {
  const minute = Math.floor(now / MINUTE);
  return app.kept.get(`plots ${range.text} ${minute} ${app.store.series.latest()}`, MINUTE * 1_000, () => {
    const samples = points(app, range, now);
    return samples.some((sample) => sample !== undefined)
      ? plots(range, samples, now)
      : emptyState('Nothing has been counted in this period yet. The first minute appears when it has ended.');
  });
}

/** Returns a card: a value with its name and a detail, linked to a page. */
function card(to: string, name: string, value: Value, detail: Value): Html {
  return html`<li><a href="${to}"><span class="name">${name}</span> <span class="value">${value}</span> <span class="detail">${detail}</span></a></li>`;
}

function license(app: ConsoleContext): readonly [tone: Tone, text: string, detail: string] {
  try {
    const { licensee, entitlement } = loadLicense(
      app.paths.licenseFile,
      readTrustedKeys(app.config.license.trusted_keys),
    );
    if (entitlement.kind === 'frozen') return ['good', 'frozen data', `for ${licensee}`];
    const isOver = endOfDayMs(entitlement.until) <= Date.now();
    return isOver
      ? ['warn', `ended ${entitlement.until}`, `no more refreshes for ${licensee}`]
      : ['good', `until ${entitlement.until}`, `refreshes for ${licensee}`];
  } catch (error) {
    return ['bad', 'no valid license', error instanceof PagegateError ? error.message : 'It cannot be read.'];
  }
}

function cards(visit: SignedVisit, status: ServerStatus | undefined, lastHour: Sample): Html {
  const { base } = visit;
  const served = status?.workers.find((worker) => worker.generation !== null);
  const problems = status === undefined ? ['the primary does not answer'] : [...status.reasons, ...status.warnings];
  const tone: Tone = status?.ready !== true ? 'bad' : problems.length > 0 ? 'warn' : 'good';
  const verdicts = total(lastHour.verdicts);
  const denied = lastHour.verdicts['deny'] ?? 0;
  const [p50, p99] = [quantile(lastHour.latency, 0.5), quantile(lastHour.latency, 0.99)];
  const refused = total(lastHour.requests) - (lastHour.requests['200'] ?? 0);
  const age = served?.index_created_at
    ? Math.max(0, (Date.now() - Date.parse(served.index_created_at)) / 1000)
    : undefined;
  const [licenseTone, licenseText, licensee] = license(visit.app);
  const workers = status === undefined ? 0 : status.workers.length + status.missing.length;
  return html`<ul class="cards" data-live id="cards">
${card(`${base}health`, 'State', mark(tone, tone === 'good' ? 'ready' : tone === 'warn' ? 'ready, with warnings' : 'not ready'), problems[0] ?? 'every lookup can be answered')}
${card(`${base}generations`, 'Data', served === undefined ? 'no index' : `generation ${served.generation}`, served === undefined ? 'build the first with pagegate refresh' : [`revision ${served.revision ?? '–'}, `, age === undefined ? 'age unknown' : `made ${duration(age)} ago`])}
${card(`${base}decisions`, 'Requests, last hour', count(total(lastHour.requests)), `${count(refused)} refused (no lookup charged)`)}
${card(`${base}decisions?verdict=deny`, 'Denied, last hour', count(denied), `${percent(denied, verdicts)} of ${count(verdicts)} verdicts`)}
${card(`${base}health#metrics`, 'Time to a verdict', p50 === null ? '–' : duration(p50), p99 === null ? 'no lookups in the last hour' : `99 of 100 within ${duration(p99)}`)}
${card(`${base}health`, 'Workers', status === undefined ? '–' : `${status.workers.length} of ${workers}`, `${status?.worker_restarts ?? 0} replaced since the start`)}
${card(`${base}health`, 'License', mark(licenseTone, licenseText), licensee)}
</ul>`;
}

async function overview(visit: SignedVisit): Promise<Page> {
  const { app, base, query } = visit;
  const now = Math.floor(Date.now() / 1000);
  const name = Object.hasOwn(RANGES, query.get('range')) ? query.get('range') : 'day';
  const range = RANGES[name]!;
  const status = await app.ask('status').catch(() => undefined);
  const lastHour = mergeSamples(now - HOUR, app.store.series.since(MINUTE, now - HOUR));
  const ranges = Object.entries(RANGES).map(
    ([key, { text }]) => html`<a href="${base}?range=${key}"${key === name && html` aria-current="true"`}>${text}</a>`,
  );
  const body = html`${cards(visit, status, lastHour)}
<section aria-labelledby="time"><h2 id="time">Over time</h2><p class="choices">${ranges}</p>
<div data-live id="plots">${overTime(app, range, now)}</div></section>
${await topDenied(app)}`;
  return { kind: 'page', title: 'Overview', body, renewSeconds: RENEW_SECONDS };
}

export const OVERVIEW_ROUTES: readonly Route[] = [{ method: 'GET', path: '/', roles: STAFF, handle: overview }];
