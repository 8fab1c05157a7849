/** Lists of names, a page at a time: how to find one, and how to go on. */
import { LIMITS } from '../../limits.ts';
import { type Html, html } from './html.ts';
import type { Fields } from './request.ts';
import { count } from './widgets.ts';

export const PAGE_SIZE = LIMITS.consoleAccounts.value;

/** @param address of the list */
export const findForm = (address: string, query: Fields): Html =>
  html`<form class="row" action="${address}"><label>Name contains <input name="q" value="${query.get('q')}" maxlength="64"></label><button class="plain">Find</button></form>`;

/**
 * Where there are more than a page shows: how many, and how to go on.
 *
 * @param shown the last name on the page, how many there are in all, and whether none comes behind
 */
export function pager(
  address: string,
  query: Fields,
  what: string,
  { last, total, isLast }: { readonly last: string | undefined; readonly total: number; readonly isLast: boolean },
): Html | null {
  const isFirst = query.get('after') === '';
  if (isFirst && isLast) return null;
  const to = (fields: Readonly<Record<string, string>>): string =>
    `${address}?${new URLSearchParams({ q: query.get('q'), ...fields })}`;
  return html`<p class="actions">${!isFirst && html`<a class="button plain" href="${to({})}">First</a> `}${
    !isLast && last !== undefined && html`<a class="button plain" href="${to({ after: last })}">Next</a> `
  }<span class="hint">${count(total)} ${what} in all, ${count(PAGE_SIZE)} on a page, by name.</span></p>`;
}
