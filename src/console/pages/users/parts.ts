/** Parts that the pages of users share. */
import { sessionActor } from '../../sign-in.ts';
import type { Session } from '../../store/sessions.ts';
import { type Html, html, type Value } from '../../web/html.ts';
import { form } from '../../web/layout.ts';
import type { Notice, SignedVisit } from '../../web/route.ts';
import { emptyState, moment, table } from '../../web/widgets.ts';

/** Returns a table of sessions, each with a button that ends it. `who` adds a column for a list with several users or accounts. */
export function sessionTable(
  { session, csrf }: SignedVisit,
  sessions: readonly Session[],
  { label, action, who }: { readonly label: string; readonly action: string; readonly who?: (one: Session) => Value },
): Html {
  if (sessions.length === 0) return emptyState('Nobody is signed in.');
  // For screen readers, the label of each button names its session.
  const end = ({ hash, name, address }: Session): Value =>
    hash === session.hash
      ? 'this one'
      : form(
          action,
          csrf,
          html`<input type="hidden" name="session" value="${hash}"><button class="plain" aria-label="End the session of ${name} from ${address}">End</button>`,
        );
  const titles = [...(who === undefined ? [] : ['Who']), 'Since', 'Last used', 'From', 'Action'];
  const rows = sessions.map((one) => [
    ...(who === undefined ? [] : [who(one)]),
    moment(one.createdAt),
    moment(one.seenAt),
    one.address,
    end(one),
  ]);
  return table(label, titles, rows);
}

/** Ends the session that a form names, records who did it, and returns a notice; `describe` names the session in it. */
export function endSession(
  { app, session }: SignedVisit,
  one: Session | undefined,
  describe: (one: Session) => string,
): Notice {
  if (one === undefined) return { tone: 'good', text: 'This session had ended already.' };
  app.store.sessions.end(one.hash);
  app.store.events.note(sessionActor(session), 'session.end', `${sessionActor(one)} from ${one.address}`);
  return { tone: 'good', text: `The session ${describe(one)} has ended.` };
}

/** Returns the field for the user's current password; false if the user has none. */
export const presentField = ({ app, session }: SignedVisit, label = 'Your current password'): Html | false =>
  app.store.users.find(session.name)?.hasPassword === true &&
  html`<label>${label} <input name="present" type="password" autocomplete="current-password" maxlength="256" required></label>`;
