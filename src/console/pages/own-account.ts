/** The pages of an account: it sees only itself. Their URLs contain no account name that could be changed. */

import { isLastingKey } from '../../ledger/key-validity.ts';
import { sessionActor } from '../sign-in.ts';
import { html } from '../web/html.ts';
import { form } from '../web/layout.ts';
import { tooManyTries } from '../web/request.ts';
import { ACCOUNT, type Notice, type Page, type Redirect, type Route, type SignedVisit } from '../web/route.ts';
import {
  type ActionInput,
  keyField,
  keyIssuedNotice,
  overlapField,
  revoke,
  rotate,
  showKey,
} from './account-actions.ts';
import { keyTable, planFacts } from './account-parts.ts';
import { daysOf, redirectWithNotice, withLag } from './accounts.ts';
import { usageCsv, usagePart } from './usage.ts';

async function show(visit: SignedVisit): Promise<Page> {
  const { app, base, session, csrf } = visit;
  const here = `${base}account`;
  const body = await app.accounts.read(async (ledger) => {
    const view = await ledger.view(session.name);
    const usage = await usagePart(ledger, view, daysOf(visit), {
      range: (days) => `${here}?days=${days}`,
      csv: `${here}/usage.csv`,
    });
    // The holder of an old key must not get the new key with it.
    const mayChange = view.keys.some((key) => key.id === session.keyId && isLastingKey(key));
    const isSuspended = view.account.state !== 'active';
    return html`${planFacts(view)}${isSuspended && html`<p>Lookups are refused (403) until the account is activated: ask the operators of this pagegate.</p>`}
<section aria-labelledby="usage"><h2 id="usage">Usage</h2>${usage}</section>
<section aria-labelledby="keys"><h2 id="keys">Keys</h2>${keyTable(view, (id) =>
      id === session.keyId
        ? 'you are signed in with this key'
        : mayChange && html`<a href="${here}/revoke-key?key=${id}" aria-label="Revoke key ${id}">Revoke</a>`,
    )}
${
  mayChange
    ? html`<div class="actions">${form(`${here}/show-key`, csrf, html`<button class="plain">Show the current key</button>`)}<a class="button plain" href="${here}/rotate-key">Rotate the key</a></div>`
    : html`<p class="hint">The key that you are signed in with is about to end: it was rotated elsewhere. Sign in with the new one to show, rotate or revoke keys.</p>`
}</section>`;
  });
  return { kind: 'page', title: `Account ${session.name}`, body };
}

function confirm(
  title: string,
  text: string,
  action: string,
  fields: (visit: SignedVisit) => ReturnType<typeof html>,
): (visit: SignedVisit) => Page {
  return (visit) => {
    const here = `${visit.base}account`;
    const buttons = html`<div class="actions"><button>${title}</button> <a class="button plain" href="${here}">Cancel</a></div>`;
    return {
      kind: 'page',
      title,
      body: html`<p>${text}</p>${form(`${here}/${action}`, visit.csrf, html`${fields(visit)}${buttons}`, 'stack')}`,
    };
  };
}

/** Makes a change to the account of the session, whatever the form contains. */
function act(
  run: (input: ActionInput, visit: SignedVisit) => Promise<Notice>,
): (visit: SignedVisit) => Promise<Redirect> {
  return (visit) => {
    const { app, session, form: fields } = visit;
    const { ledgerFile } = app.paths;
    const change = async (): Promise<Notice> => {
      const wait = app.limits.own.wait(session.name);
      if (wait > 0) throw tooManyTries('Too much was done with the keys of this account.', wait);
      app.limits.own.note(session.name);
      return app.accounts.change(
        sessionActor(session),
        async (ledger) => withLag(await run({ ledger, ledgerFile, name: session.name, form: fields }, visit), ledger),
        { actingKeyId: session.keyId ?? 0 },
      );
    };
    return redirectWithNotice('/account', change());
  };
}

/** Rotates the key of the session's account. The session continues with the new key. */
async function rotateOwn(input: ActionInput, { app, session }: SignedVisit): Promise<Notice> {
  const next = await rotate(input);
  app.store.sessions.rebind(session.hash, next.record.id);
  return keyIssuedNotice(input.name, next);
}

const ROTATION =
  'You get a new key. The current key stays valid for as long as you choose, and is refused (401) afterwards.';
const REVOCATION = 'The key is refused (401) from now on. Whoever still uses it is cut off at once.';

export const OWN_ACCOUNT_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/account', roles: ACCOUNT, handle: show },
  {
    method: 'GET',
    path: '/account/usage.csv',
    roles: ACCOUNT,
    handle: ({ app, session }) => usageCsv(app, session.name),
  },
  {
    method: 'GET',
    path: '/account/rotate-key',
    roles: ACCOUNT,
    handle: confirm('Rotate the key', ROTATION, 'rotate-key', overlapField),
  },
  { method: 'POST', path: '/account/rotate-key', roles: ACCOUNT, handle: act(rotateOwn) },
  { method: 'POST', path: '/account/show-key', roles: ACCOUNT, handle: act(showKey) },
  {
    method: 'GET',
    path: '/account/revoke-key',
    roles: ACCOUNT,
    handle: confirm('Revoke a key', REVOCATION, 'revoke-key', ({ query }) => keyField(query)),
  },
  { method: 'POST', path: '/account/revoke-key', roles: ACCOUNT, handle: act(revoke) },
];
