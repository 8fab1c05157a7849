/** The fields of a filter: their markup, their parsed values, and the page for a value that is not valid. */
import { LIMITS } from '../../limits.ts';
import { type Html, html } from './html.ts';
import { type Fields, HttpRefusal } from './request.ts';
import type { Page } from './route.ts';

const MAX_LENGTH = LIMITS.consoleFilterCharacters.value;
/** Also with a space instead of `T`, as pages show times. */
const TIME = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{3})?)?)?Z?$/;

/** Returns the trimmed text of a field; undefined if it is empty. @throws HttpRefusal 400 */
export function filterText(query: Fields, name: string): string | undefined {
  const value = query.get(name).trim();
  if (value.length > MAX_LENGTH) throw new HttpRefusal(400, `${name}: expected at most ${MAX_LENGTH} characters.`);
  return value === '' ? undefined : value;
}

/** Parses a time in UTC into the format of the log. With `end`, missing parts get their latest value, else their earliest. @throws HttpRefusal 400 */
function timeOf(query: Fields, name: string, end: boolean): string | undefined {
  const text = query.get(name).trim();
  if (text === '') return undefined;
  const rest = end ? 'T23:59:59.999' : 'T00:00:00.000';
  const plain = text.replace(/Z$/, '').replace(' ', 'T');
  const date = new Date(`${TIME.test(text) ? plain + rest.slice(plain.length - 10) : ''}Z`);
  // `Date` would turn a day that its month does not have into one of the next month.
  if (Number.isNaN(date.getTime()) || !date.toISOString().startsWith(plain.slice(0, 10)))
    throw new HttpRefusal(
      400,
      `${name}: expected a time like 2026-01-31 or 2026-01-31 08:30, UTC, got "${text.slice(0, 40)}".`,
    );
  return date.toISOString();
}

/** Returns the first and the last time of the filter, RFC 3339 with milliseconds. @throws HttpRefusal 400 */
export const filterTimes = (query: Fields): { readonly from: string | undefined; readonly to: string | undefined } => ({
  from: timeOf(query, 'from', false),
  to: timeOf(query, 'to', true),
});

/** Returns a text field with its current value. */
export const field = (query: Fields, name: string, label: string, hint = ''): Html =>
  html`<label>${label} <input name="${name}" value="${query.get(name)}" maxlength="${MAX_LENGTH}" placeholder="${hint}" autocapitalize="none" spellcheck="false"></label>`;

const TIME_FIELDS = { from: ['From (UTC)', '2026-01-31 08:30'], to: ['To (UTC)', '2026-01-31'] } as const;

/** Returns the fields that {@link filterTimes} parses. */
export const timeFields = (query: Fields): Html =>
  html`${Object.entries(TIME_FIELDS).map(([name, [label, hint]]) => field(query, name, label, hint))}`;

/** Returns a page with the filter as it was filled in, and the error message. */
export const wrongFilter = (title: string, filter: Html, { status, message }: HttpRefusal): Page => ({
  kind: 'page',
  title,
  status,
  problem: message,
  body: filter,
});
