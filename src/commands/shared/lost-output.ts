/** The advice when a result could not be printed. Commands print after their work is done, so one that changed something must not simply be repeated. */
import type { Command } from 'commander';

const ACCOUNT = 'The state of the account: `pagegate account show`; its key: `pagegate key show`.';
const AUDIT = 'What was changed: `pagegate account audit`.';
const FILES = 'Its files are written.';
const SERVED = 'What is served: `pagegate generations list`.';
const LINK = 'A new link: `pagegate console link`.';
const SERVER = 'What the server does: `pagegate status`.';

/** For each command that must not be repeated just to see its result: where to see what it did. */
export const WHERE_TO_LOOK: Readonly<Record<string, string>> = {
  build: FILES,
  refresh: SERVED,
  'drop manifest': FILES,
  'drop sign': FILES,
  rollback: SERVED,
  prune: SERVED,
  'account create': ACCOUNT,
  'account subscribe': ACCOUNT,
  'account suspend': ACCOUNT,
  'account reactivate': ACCOUNT,
  'account close': ACCOUNT,
  'account keep-plan': ACCOUNT,
  'account backup': FILES,
  'account restore': AUDIT,
  'account correct': ACCOUNT,
  'account accept-clock': AUDIT,
  'fleet retire': 'The nodes that are left: `pagegate fleet status`.',
  'ledger move': 'The accounts: `pagegate account list`.',
  'key issue': ACCOUNT,
  'key rotate': ACCOUNT,
  'key revoke': ACCOUNT,
  'license keygen': FILES,
  'license install': 'What is installed: `pagegate license show`.',
  'console user add': LINK,
  'console user role': 'The roles: `pagegate console user list`.',
  'console user remove': 'The users that are left: `pagegate console user list`.',
  'console user reset': LINK,
  'console link': LINK,
  reload: SERVER,
  restart: SERVER,
  drain: SERVER,
};

/** Returns the full name of a command, such as `console user add`. */
export const commandName = (command: Command): string =>
  command.parent?.parent == null ? command.name() : `${commandName(command.parent)} ${command.name()}`;

/** Returns the advice for when the result of this command could not be printed. */
export function adviceAfter(command: Command): string {
  const look = WHERE_TO_LOOK[commandName(command)];
  return look === undefined ? 'Run the command again.' : `The command has done its work; do not repeat it. ${look}`;
}
