/** Usage of accounts: by day, in the current cycle, and how long the quota will last. */
import { counted } from '../../counted.ts';
import { CYCLE_SECONDS, cycleStart } from '../../ledger/cycle.ts';
import type { AccountView, Ledger } from '../../ledger/ledger.ts';
import { type UsageDay, usageAfter, usageByDay } from '../../ledger/usage.ts';
import { LIMITS } from '../../limits.ts';
import { DAY_MS } from '../../times.ts';
import type { ConsoleContext } from '../context.ts';
import { csvLine, oneChunk } from '../web/csv.ts';
import { type Html, html } from '../web/html.ts';
import { plot } from '../web/plots.ts';
import type { Download } from '../web/route.ts';
import { count, emptyState, mark, percent, type Tone } from '../web/widgets.ts';

const PACE_DAYS = 7;
const WARN_SHARE = 0.8;
const USAGE_DAYS_MAX = LIMITS.usageDays.value;
export const USAGE_RANGES = [30, 90, USAGE_DAYS_MAX] as const;

const dayText = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Returns a colored mark with the used share of the quota. */
export function quotaMark({ quota }: AccountView): Html {
  const { quota_limit: limit, quota_used: used } = quota;
  if (limit === null) return mark('plain', 'no plan');
  const share = used / limit;
  const tone: Tone = share >= 1 ? 'bad' : share >= WARN_SHARE ? 'warn' : 'good';
  return mark(tone, `${percent(used, limit)} used`);
}

export const STATE_TONES: Readonly<Record<string, Tone>> = {
  active: 'good',
  created: 'plain',
  suspended: 'warn',
  closed: 'bad',
};

/** Returns the last days up to today with their lookups, oldest first; 0 for days without any. */
function everyDay(usage: readonly UsageDay[], days: number, nowMs: number): { day: string; lookups: number }[] {
  const known = new Map(usage.map(({ day, lookups }) => [day, lookups]));
  return Array.from({ length: days }, (_, i) => {
    const day = dayText(nowMs - (days - 1 - i) * DAY_MS);
    return { day, lookups: known.get(day) ?? 0 };
  });
}

/** Returns the average lookups per day in the last full week; for a younger account, since it was created. */
function pace(view: AccountView, usage: readonly UsageDay[], nowMs: number): number {
  const first = dayText(nowMs - PACE_DAYS * DAY_MS);
  const today = dayText(nowMs);
  const total = usage.filter(({ day }) => day >= first && day < today).reduce((sum, { lookups }) => sum + lookups, 0);
  const ageDays = Math.floor((nowMs / 1000 - view.account.createdAt) / 86_400);
  return total / Math.min(PACE_DAYS, Math.max(1, ageDays));
}

/** Describes when the quota runs out at this pace. */
function outlook(view: AccountView, perDay: number, today: number, nowMs: number): string {
  const { quota_limit: limit, quota_remaining: left, quota_resets_at: resets } = view.quota;
  if (limit === null || resets === null) return 'There is no plan yet, so there is no quota.';
  const reset = `${resets.slice(0, 16).replace('T', ' ')} UTC`;
  if (left === 0)
    return `The quota is used up. Lookups are refused until it resets on ${reset}, or until a larger plan is subscribed.`;
  if (perDay === 0 && today > 0)
    return `${counted(today, 'lookup')} today and none in the ${PACE_DAYS} days before: too few for an outlook. The quota resets on ${reset}.`;
  if (perDay === 0) return `No lookups in the last ${PACE_DAYS} days: the quota lasts until it resets on ${reset}.`;
  const endMs = nowMs + (left / perDay) * DAY_MS;
  const beginning = `At the pace of the last ${PACE_DAYS} days, ${count(Math.round(perDay))} lookups per day,`;
  if (endMs >= Date.parse(resets)) {
    const atEnd = limit - left + perDay * Math.max(0, (Date.parse(resets) - nowMs) / DAY_MS);
    return `${beginning} ${percent(Math.round(atEnd), limit)} of the quota will be used when it resets on ${reset}.`;
  }
  return `${beginning} the quota runs out on ${dayText(endMs)}, before it resets on ${reset}.`;
}

function cyclePlot(view: AccountView, usage: readonly UsageDay[], perDay: number, nowMs: number): Html | null {
  const { quota_limit: limit, quota_used: used } = view.quota;
  const { anchor } = view.account;
  if (anchor === null || limit === null) return null;
  const startMs = cycleStart(anchor, view.cycle) * 1000;
  const days = CYCLE_SECONDS / 86_400;
  const today = Math.min(days - 1, Math.max(0, Math.floor((nowMs - startMs) / DAY_MS)));
  const known = new Map(usage.map(({ day, lookups }) => [day, lookups]));
  const past: number[] = [];
  for (let i = 0; i <= today; i++) past.push((past[i - 1] ?? 0) + (known.get(dayText(startMs + i * DAY_MS)) ?? 0));
  // For today, the meter is exact; the counts by day only give the curve up to it.
  const line = past.map((value, i) => (i === today ? used : Math.min(value, used)));
  const projected = Array.from({ length: days }, (_, i) =>
    i < today ? null : Math.min(limit, used + perDay * (i - today)),
  );
  return plot({
    label: 'Lookups used in the current cycle of 30 days, and the projection at the current pace',
    kind: 'lines',
    layers: [
      { name: 'used', color: 'first', values: Array.from({ length: days }, (_, i) => line[i] ?? null) },
      { name: 'at the current pace', color: 'second', values: projected },
    ],
    ticks: [dayText(startMs), dayText(startMs + (days / 2) * DAY_MS), dayText(startMs + days * DAY_MS)],
    unit: (value) => count(Math.round(value)),
    limit: { name: 'quota', value: limit },
    rows: {
      columns: ['Day', 'used by then', 'at the current pace'],
      rows: projected.map((value, i) => [
        dayText(startMs + i * DAY_MS),
        line[i] === undefined ? '–' : count(line[i]),
        value === null ? '–' : count(Math.round(value)),
      ]),
    },
  });
}

/** Returns the usage of one account as plots with their numbers. `links` are the URLs of the ranges and of the CSV. */
export async function usagePart(
  ledger: Ledger,
  view: AccountView,
  days: number,
  links: { readonly range: (days: number) => string; readonly csv: string },
): Promise<Html> {
  const nowMs = Date.now();
  const usage = await usageByDay(ledger, view.account.name, USAGE_DAYS_MAX, nowMs);
  const perDay = pace(view, usage, nowMs);
  const shown = everyDay(usage, days, nowMs);
  const total = shown.reduce((sum, { lookups }) => sum + lookups, 0);
  const ranges = USAGE_RANGES.map(
    (range) => html`<a href="${links.range(range)}"${range === days && html` aria-current="true"`}>${range} days</a>`,
  );
  return html`<p>${outlook(view, perDay, everyDay(usage, 1, nowMs)[0]!.lookups, nowMs)}</p>
${cyclePlot(view, usage, perDay, nowMs)}
<h3>By day</h3><p class="choices">${ranges} <a href="${links.csv}">CSV</a></p>
${
  total === 0
    ? emptyState(`No lookups in the last ${days} days.`)
    : plot({
        label: `Lookups by day (UTC) over the last ${days} days, ${count(total)} in all`,
        kind: 'bars',
        layers: [
          {
            name: `${count(total)} lookups in ${days} days`,
            color: 'first',
            values: shown.map(({ lookups }) => lookups),
          },
        ],
        ticks: [shown[0]!.day, shown[Math.floor(days / 2)]!.day, shown.at(-1)!.day],
        unit: (value) => count(Math.round(value)),
        rows: {
          columns: ['Day', 'lookups'],
          rows: shown.toReversed().map(({ day, lookups }) => [day, count(lookups)]),
        },
      })
}`;
}

const CSV_COLUMNS = ['account', 'day', 'lookups'];
const toCsv = (usage: readonly UsageDay[]): string =>
  usage.map(({ account, day, lookups }) => csvLine([account, day, lookups])).join('');

const download = (body: AsyncIterable<string>, name = 'usage.csv'): Download => ({
  kind: 'download',
  name,
  type: 'text/csv; charset=utf-8',
  body,
});

/** Returns the usage of one account by day as CSV. @throws PagegateError account_not_found, ledger_unavailable */
export async function usageCsv({ accounts }: ConsoleContext, name: string): Promise<Download> {
  const usage = await accounts.read((ledger) => usageByDay(ledger, name, USAGE_DAYS_MAX));
  return download(oneChunk(csvLine(CSV_COLUMNS) + toCsv(usage)), `usage-${name}.csv`);
}

export function usageCsvOfAll({ accounts }: ConsoleContext): Download {
  const read = async function* (): AsyncGenerator<string> {
    yield csvLine(CSV_COLUMNS);
    for (let after = ''; ; ) {
      const some = await accounts.readIfAny((ledger) => usageAfter(ledger, after));
      if (some === undefined) return;
      yield toCsv(some.days);
      after = some.last;
    }
  };
  return download(read());
}
