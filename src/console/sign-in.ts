/** Signing in and out: by password, by a one-time link, by an account's API key. */
import { PagegateError } from '../errors.ts';
import { parseAddress } from '../network/address.ts';
import { clientKey } from '../network/client-address.ts';
import type { ConsoleContext } from './context.ts';
import type { Session } from './store/sessions.ts';
import type { User } from './store/users.ts';
import { HttpRefusal, signedOut, tooManyTries } from './web/request.ts';

/** The message for every failed sign-in: it must not reveal why it failed. */
export const WRONG_CREDENTIALS = 'The sign-in failed. Check what you typed; after several failures you have to wait.';

/**
 * Tries to sign in within the limits. A success clears all failures of the name, as it proves the password. Failures of an address may
 * be guesses at other names, so there a success takes back only its own attempt.
 */
async function limited<T>(
  { limits, store }: ConsoleContext,
  address: string,
  name: string | undefined,
  attempt: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const client = parseAddress(address);
  const from = client === undefined ? address : clientKey(client);
  const wait = Math.max(limits.address.wait(from), name === undefined ? 0 : limits.name.wait(name));
  if (wait > 0) throw tooManyTries('Too many failures to sign in.', wait);
  const takeBack = limits.address.note(from);
  if (name !== undefined) limits.name.note(name);
  const found = await attempt();
  if (found === undefined) {
    // An unknown name is not logged: it may be a password or key in the wrong field, and viewers read the audit.
    const user = name === undefined ? undefined : store.users.find(name);
    store.events.note(user?.name ?? '-', 'sign_in.refused', `from ${address}`);
    return undefined;
  }
  takeBack();
  if (name !== undefined) limits.name.forget(name);
  return found;
}

function begin(app: ConsoleContext, { name, role }: User, how: string, address: string): string {
  app.store.users.noteSignIn(name);
  app.store.events.note(name, 'sign_in', `${how} from ${address}`);
  return app.store.sessions.begin({ role, name, keyId: null, address });
}

/** Signs a user in; returns the session's token, undefined if the password is wrong. @throws HttpRefusal 429 */
export async function signInWithPassword(
  app: ConsoleContext,
  name: string,
  password: string,
  address: string,
): Promise<string | undefined> {
  // Truncated, so that long text in the wrong field does not fill the memory.
  return limited(app, address, name.slice(0, 64), () =>
    app.store.users.authenticate(name, password, (user) => begin(app, user, 'password', address)),
  );
}

/** The same with a one-time link. A valid link works despite earlier failures, because links cannot be guessed. @throws HttpRefusal 429 */
export async function signInWithLink(app: ConsoleContext, token: string, address: string): Promise<string | undefined> {
  const session = app.store.users.useLink(token, (user) => begin(app, user, 'link', address));
  return session ?? limited(app, address, undefined, async () => undefined);
}

/** Signs an account in with its API key. @throws HttpRefusal 429, PagegateError ledger_unavailable */
export async function signInWithKey(app: ConsoleContext, key: string, address: string): Promise<string | undefined> {
  const owner = await limited(app, address, undefined, () =>
    app.accounts.readIfAny((ledger) => ledger.ownerOf(key)).then((found) => found ?? undefined),
  );
  if (owner === undefined) return undefined;
  const { name, keyId } = owner;
  app.store.events.note(`account:${name}`, 'sign_in', `key ${keyId} from ${address}`);
  return app.store.sessions.begin({ role: 'account', name, keyId, address });
}

/** Whether a session is still valid: a user's ends with a change of role, an account's with its key. */
export async function isCurrent(app: ConsoleContext, session: Session): Promise<boolean> {
  if (session.role !== 'account') return app.store.users.find(session.name)?.role === session.role;
  try {
    const isOpen = await app.accounts.readIfAny((ledger) => ledger.isKeyOf(session.name, session.keyId ?? 0));
    if (isOpen === true) return true;
  } catch (error) {
    if (!(error instanceof PagegateError) || error.code !== 'account_not_found') throw error;
  }
  app.store.sessions.end(session.hash);
  return false;
}

/** Returns the name for the audit. An account has a prefix, to distinguish it from a user of the same name. */
export const sessionActor = ({ role, name }: Session): string => (role === 'account' ? `account:${name}` : name);

/**
 * Makes a change only if a user who is signed in gives their current password again. A user without a password needs none.
 *
 * @param change runs in the transaction that checks the password; it returns undefined if the session has ended meanwhile
 * @throws HttpRefusal 401, 403, 429, PagegateError console_busy, and what the change throws
 */
export async function withPresentPassword<T>(
  { store, limits }: ConsoleContext,
  { name }: Session,
  by: { readonly password: string; readonly address: string },
  change: () => T | undefined,
): Promise<T> {
  const run = (): T => {
    const done = change();
    if (done === undefined) throw signedOut();
    return done;
  };
  if (store.users.find(name)?.hasPassword !== true) return run();
  const wait = limits.present.wait(name);
  if (wait > 0) throw tooManyTries('Too many failures.', wait);
  limits.present.note(name);
  const found = await store.users.authenticate(name, by.password, () => {
    limits.present.forget(name);
    return { done: run() };
  });
  if (found === undefined) {
    store.events.note(name, 'user.password_refused', `from ${by.address}`);
    throw new HttpRefusal(403, 'The current password is wrong. Nothing was changed.');
  }
  return found.done;
}
