/** Small parts of pages: numbers with units, times, tables, marks. */
import { counted } from '../../counted.ts';
import { type Html, html, type Value } from './html.ts';

export const count = (value: number): string => value.toLocaleString('en-US');

/** Formats a share as `12.3 %`. */
export const percent = (part: number, whole: number): string =>
  whole === 0 ? '–' : `${((100 * part) / whole).toFixed(part === 0 || part === whole ? 0 : 1)} %`;

/** Formats seconds with a suitable unit: `12 µs`, `3.4 ms`, `2 days`. */
export function duration(seconds: number): string {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
  const units: readonly (readonly [length: number, name: string])[] = [
    [86_400, 'day'],
    [3_600, 'hour'],
    [60, 'minute'],
    [1, 'second'],
  ];
  const [length, name] = units.find(([unit]) => seconds >= 2 * unit) ?? units.at(-1)!;
  return counted(Math.floor(seconds / length), name);
}

/** Formats bytes with a decimal unit: `1.5 GB`. */
export function bytes(size: number): string {
  const unit = Math.min(4, Math.floor(Math.log10(Math.max(1, size)) / 3));
  return `${Number((size / 1000 ** unit).toPrecision(3))} ${['B', 'kB', 'MB', 'GB', 'TB'][unit]}`;
}

/** Formats a time in UTC (a number is seconds since 1970). The script adds the local time. */
export function moment(value: string | number | Date | null | undefined): Html {
  const date =
    value === null || value === undefined ? undefined : new Date(typeof value === 'number' ? value * 1000 : value);
  if (date === undefined || Number.isNaN(date.getTime())) return html`–`;
  const text = date.toISOString();
  return html`<time datetime="${text}">${text.slice(0, 19).replace('T', ' ')}</time>`;
}

export type Tone = 'good' | 'warn' | 'bad' | 'plain';

/** Returns a colored word. Its meaning does not depend on the color alone. */
export const mark = (tone: Tone, text: string): Html => html`<span class="mark ${tone}">${text}</span>`;

const VERDICT_TONES: Readonly<Record<string, Tone>> = { allow: 'good', flag: 'warn', deny: 'bad' };
export const verdictMark = (verdict: string): Html => mark(VERDICT_TONES[verdict] ?? 'plain', verdict);

/** The title of a column; an object for a column of numbers, which is right-aligned. */
type Column = string | { readonly numbers: string };

/** Returns a table that scrolls on its own if it is too wide; `label` is its accessible name, `live` its id if it is renewed. */
export function table(
  label: string,
  columns: readonly Column[],
  rows: readonly (readonly Value[])[],
  live?: string,
): Html {
  const style = (i: number): Value => typeof columns[i] === 'object' && html` class="number"`;
  return html`<div class="wide" role="region" aria-label="${label}" tabindex="0"><table${live !== undefined && html` data-live id="${live}"`}>
<thead><tr>${columns.map((column, i) => html`<th scope="col"${style(i)}>${typeof column === 'object' ? column.numbers : column}</th>`)}</tr></thead>
<tbody>${rows.map(
    (row) => html`<tr>${row.map((cell, i) => html`<td${style(i)}>${cell}</td>`)}</tr>
`,
  )}</tbody></table></div>`;
}

export function facts(rows: readonly (readonly [name: string, value: Value])[]): Html {
  return html`<dl>${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** Returns the text that is shown instead of an empty list. */
export const emptyState = (...what: readonly Value[]): Html => html`<p class="empty">${what}</p>`;
