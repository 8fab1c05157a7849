/** Paging of lists of names: a search form, and links to further pages. */
import { LIMITS } from '../../limits.ts';
import { type Html, html } from './html.ts';
import type { Fields } from './request.ts';
import { count } from './widgets.ts';

export const PAGE_SIZE = LIMITS.consoleAccounts.value;

/** @param address path of the list */
export const findForm = (address: string, query: Fields): Html =>
  html`<form class="row" action="${address}"><label>Name contains <input name="q" value="${query.get('q')}" maxlength="64"></label><button class="plain">Find</button></form>`;

/**
 * Returns the links to other pages and the total; null if the list fits on one page. The arguments are the last name on this page, the
 * total number of names, and whether this page is the last.
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
