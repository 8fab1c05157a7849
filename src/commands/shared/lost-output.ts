/** What to do when a result could not be printed. Commands print what they did after it is done: one that changed something is not simply repeated. */
import type { Command } from 'commander';

const ACCOUNT = 'How the account stands: `pagegate account show`; its key: `pagegate key show`.';
const AUDIT = 'What was changed: `pagegate account audit`.';
const FILES = 'The files that it writes are there.';
const SERVED = 'What is served: `pagegate generations list`.';
const LINK = 'A new link: `pagegate console link`.';
const SERVER = 'What the server does: `pagegate status`.';

/** Where to see what a command did that is not to be run again just to see its result. */
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
  'ledger move': 'Where the accounts are: `pagegate account list`.',
  'key issue': ACCOUNT,
  'key rotate': ACCOUNT,
  'key revoke': ACCOUNT,
  'license keygen': FILES,
  'license install': 'What is installed: `pagegate license show`.',
  'console user add': LINK,
  'console user remove': 'Who is left: `pagegate console user list`.',
  'console user reset': LINK,
  'console link': LINK,
  reload: SERVER,
  restart: SERVER,
  drain: SERVER,
};

/** The words that lead to a command. */
export const commandName = (command: Command): string =>
  command.parent?.parent == null ? command.name() : `${commandName(command.parent)} ${command.name()}`;

/** What to do when the result of this command could not be printed. */
export function adviceAfter(command: Command): string {
  const look = WHERE_TO_LOOK[commandName(command)];
  return look === undefined ? 'Run the command again.' : `The command has done its work; do not repeat it. ${look}`;
}
