/** `pagegate console`: the users of the console. The console itself is served by `pagegate serve`. */
import type { Command } from 'commander';
import type { ConsoleUsers, Invitation, UserRole } from '../console/users.ts';
import { rfc3339 } from '../times.ts';
import { addConfigOptions, assertInstallation, type ConfigFlags, configToWrite } from './shared/config-options.ts';
import { printJson, printLine, printTable, warn } from './shared/output.ts';

interface ConsoleFlags extends ConfigFlags {
  readonly actor?: string;
  readonly json?: true;
}

interface RoleFlags extends ConsoleFlags {
  readonly role: string;
}

/** The role as given. `ConsoleUsers` refuses an unknown one with `bad_console_user`. */
const roleOf = ({ role }: RoleFlags): UserRole => role as UserRole;

export function registerConsole(program: Command): void {
  const console = program.command('console').description('users of the console, and links that sign them in');
  const user = console.command('user').description('the users of the console');
  const add = (to: Command, usage: string, about: string, example: string): Command =>
    addConfigOptions(to.command(usage).description(about))
      .option('--actor <name>', 'who is named in the audit (default: the user)')
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  $ pagegate ${example}`);

  add(user, 'add <name>', 'add a user, and print a link that signs them in once', 'console user add dana --role viewer')
    .requiredOption('--role <operator|viewer>', 'operator changes, viewer only looks')
    .action((name: string, options: RoleFlags) =>
      withUsers(options, (users) => invite(users.add(name, roleOf(options)), options)),
    );
  add(user, 'role <name>', 'give a user another role, and end their sessions', 'console user role dana --role operator')
    .requiredOption('--role <operator|viewer>', 'operator changes, viewer only looks')
    .action((name: string, options: RoleFlags) =>
      withUsers(options, (users) => {
        const changed = users.setRole(name, roleOf(options));
        if (options.json) printJson(toJson(changed));
        else printLine(`${name} is ${changed.role}; the next sign-in has this role.`);
      }),
    );
  add(user, 'list', 'list all users', 'console user list').action((options: ConsoleFlags) =>
    withUsers(options, (users) => {
      const all = users.list();
      if (options.json) printJson(all.map(toJson));
      else if (all.length === 0)
        printLine('No users yet; add one with "pagegate console user add NAME --role operator".');
      else {
        const rows = all.map(({ name, role, hasPassword, createdAt, signedInAt }) => [
          name,
          role,
          hasPassword ? 'yes' : 'no',
          rfc3339(createdAt),
          signedInAt === null ? 'never' : rfc3339(signedInAt),
        ]);
        printTable([['user', 'role', 'password', 'since', 'last sign-in'], ...rows]);
      }
    }),
  );
  add(user, 'remove <name>', 'remove a user, and end their sessions', 'console user remove dana').action(
    (name: string, options: ConsoleFlags) =>
      withUsers(options, (users) => {
        users.remove(name);
        if (options.json) printJson({ removed: name });
        else printLine(`${name} is removed; its sessions have ended.`);
      }),
  );
  add(
    user,
    'reset <name>',
    "remove a user's password, end their sessions, and print a link",
    'console user reset dana',
  ).action((name: string, options: ConsoleFlags) => withUsers(options, (users) => invite(users.reset(name), options)));
  add(console, 'link <name>', 'print a link that signs a user in once, within an hour', 'console link dana').action(
    (name: string, options: ConsoleFlags) =>
      withUsers(options, (users) => {
        const link = users.link(name);
        if (options.json) printJson({ user: name, link });
        else printLine(link);
      }),
  );
}

async function withUsers(options: ConsoleFlags, task: (users: ConsoleUsers) => void | Promise<void>): Promise<void> {
  const { ConsoleUsers } = await import('../console/users.ts');
  const config = await configToWrite(options);
  await assertInstallation(config);
  const users = new ConsoleUsers(config, options.actor);
  try {
    await task(users);
  } finally {
    users.close();
  }
  if (!config.console.enabled) warn('the console is off: set console.enabled, and restart the server.');
}

const toJson = ({ name, role, hasPassword, createdAt, signedInAt }: Invitation['user']): Record<string, unknown> => ({
  user: name,
  role,
  has_password: hasPassword,
  created_at: rfc3339(createdAt),
  signed_in_at: signedInAt === null ? null : rfc3339(signedInAt),
});

function invite({ user, link }: Invitation, options: ConsoleFlags): void {
  if (options.json) {
    printJson({ ...toJson(user), link });
    return;
  }
  printLine(`${user.name} (${user.role}) signs in once, within an hour, at`);
  printLine(link);
}
