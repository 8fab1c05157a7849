/** `pagegate account`: accounts, their plans and their usage, and the care of the ledger. */
import { type Command, Option } from 'commander';
import { counted, withCommas } from '../counted.ts';
import { EXIT, PagegateError } from '../errors.ts';
import type { AccountView, Ledger } from '../ledger/ledger.ts';
import { LIMITS } from '../limits.ts';
import { isAbsent } from '../platform/folders.ts';
import { rfc3339 } from '../times.ts';
import { assertInstallation, configFrom, configToWrite, pathsFrom } from './shared/config-options.ts';
import {
  accountJson,
  actorOption,
  type LedgerCommandOptions,
  ledgerCommands,
  withLedger,
} from './shared/ledger-options.ts';
import { parsePositive, parseWhole } from './shared/numbers.ts';
import { printJson, printLine, printTable } from './shared/output.ts';

const AUDIT_LINES_MAX = LIMITS.auditLines.value;

interface SubscribeOptions extends LedgerCommandOptions {
  readonly plan: string;
  readonly reference: string;
  readonly limit?: number;
}

interface CorrectOptions extends LedgerCommandOptions {
  readonly credit?: number;
  readonly used?: number;
  readonly cycle?: number;
  readonly note: string;
}

export function registerAccount(program: Command): void {
  const account = program
    .command('account')
    .description('create, subscribe and show accounts, and what they have used');
  const add = ledgerCommands(account);

  add('create <name>', 'create an account; it is not activated until a plan is paid', 'account create acme')
    .option('--with-key', 'issue its key at once')
    .action(async (name: string, options: LedgerCommandOptions & { withKey?: true }) => {
      const { localLedgerFile } = await import('../config/paths.ts');
      const config = await configFrom(options);
      const file = localLedgerFile(config);
      const isNew = config.ledger.url === null && isAbsent(file);
      await withLedger(options, (ledger) => create(ledger, name, options), true);
      // If the state directory is mistyped, this line shows it.
      if (isNew && options.json === undefined) printLine(`ledger   new: ${file}`);
    });
  add(
    'subscribe <name>',
    'record a paid plan: activates, issues the key, upgrades at once or downgrades at the boundary',
    'account subscribe acme --plan pro --reference INV-2041',
  )
    .requiredOption('--plan <id>', 'a plan of `pagegate plan list`')
    .requiredOption('--reference <text>', "the payment's reference; each counts once")
    .option('--limit <lookups>', 'lookups per cycle, for the plan custom', parsePositive)
    .action((name: string, options: SubscribeOptions) =>
      withLedger(options, (ledger) => subscribe(ledger, name, options)),
    );
  add('show <name>', 'show plan, cycle, used, remaining, reset and keys', 'account show acme').action(
    (name: string, options: LedgerCommandOptions) => withLedger(options, (ledger) => report(ledger, name, options)),
  );
  add('list', 'list all accounts', 'account list --json').action((options: LedgerCommandOptions) =>
    withLedger(options, async (ledger) => list(await ledger.list(), options)),
  );
  const change = (verb: string, about: string, task: (ledger: Ledger, name: string) => unknown): void => {
    add(`${verb} <name>`, about, `account ${verb} acme`).action((name: string, options: LedgerCommandOptions) =>
      withLedger(options, async (ledger) => {
        await task(ledger, name);
        await report(ledger, name, options);
      }),
    );
  };
  change('suspend', 'suspend an account: its lookups are answered 403', (ledger, name) =>
    ledger.setActive(name, false),
  );
  change('reactivate', 'reactivate a suspended account', (ledger, name) => ledger.setActive(name, true));
  change('close', 'close an account for good: its lookups are answered 401', (ledger, name) =>
    ledger.closeAccount(name),
  );
  change('keep-plan', 'withdraw a downgrade that has not taken effect yet', (ledger, name) => ledger.keepPlan(name));
  registerUsage(add);
  registerCare(add);
  add('audit [name]', 'show who changed what and when, newest first', 'account audit acme --last 20')
    .option('--last <n>', 'how many lines, at most 100,000', parsePositive, 50)
    .action((name: string | undefined, options: LedgerCommandOptions & { last: number }) =>
      withLedger(options, (ledger) => audit(ledger, name, options)),
    );
}

type Add = ReturnType<typeof ledgerCommands>;

function registerUsage(add: Add): void {
  add('usage [name]', 'show lookups by day (UTC), of one account or of all', 'account usage acme --days 30 --csv')
    .option('--days <n>', 'how many days back, at most 400', parsePositive, 30)
    .addOption(new Option('--csv', 'print CSV').conflicts('json'))
    .action((name: string | undefined, options: LedgerCommandOptions & { days: number; csv?: true }) =>
      withLedger(options, async (ledger) => {
        const { usageByDay } = await import('../ledger/usage.ts');
        const days = await usageByDay(ledger, name, options.days);
        if (options.json) printJson(days);
        else if (options.csv) {
          printLine('account,day,lookups');
          for (const { account, day, lookups } of days) printLine(`${account},${day},${lookups}`);
        } else printTable([['account', 'day', 'lookups'], ...days.map((row) => [row.account, row.day, row.lookups])]);
      }),
    );
}

/** Commands for the ledger itself: backup, restore, check, corrections, clock. */
function registerCare(add: Add): void {
  add(
    'backup <file>',
    'copy the ledger while it is in use; the key file is not part of it',
    'account backup /backup/ledger-1.sqlite',
  ).action(async (target: string, options: LedgerCommandOptions) => {
    const { backupLedger } = await import('../ledger/backup.ts');
    const ledgerFile = await ledgerFileFrom(options);
    backupLedger(ledgerFile, target);
    if (options.json) printJson({ backup: target });
    else
      printLine(
        `Copied to ${target}. Keep ${(await pathsFrom(options)).ledgerKeyFile} elsewhere: without it keys cannot be shown.`,
      );
  });
  add(
    'restore <file>',
    'restore a backup; what was used since then stays used',
    'account restore /backup/ledger-1.sqlite',
  )
    .option('--accept-unknown-usage', 'restore even if it is unknown what was used since the backup')
    .action((backup: string, options: LedgerCommandOptions & { acceptUnknownUsage?: true }) =>
      restore(backup, options),
    );
  add('check', 'read the whole ledger file and report damage', 'account check').action(
    async (options: LedgerCommandOptions) => {
      const { checkLedger } = await import('../ledger/check.ts');
      const { ok, problems } = checkLedger(await ledgerFileFrom(options));
      if (options.json) printJson({ ok, problems });
      else for (const line of ok ? ['The ledger is intact.'] : problems) printLine(line);
      if (!ok) process.exitCode = EXIT.corrupt;
    },
  );
  add(
    'correct <name>',
    'give lookups back, or move a meter to another cycle: after damage, or for a lost host',
    'account correct acme --credit 600 --note "host 3 lost"',
  )
    .requiredOption('--note <text>', 'why, for the audit')
    .addOption(
      new Option('--credit <lookups>', 'lookups to give back in the current cycle, at most as many as are used')
        .argParser(parsePositive)
        .conflicts(['used', 'cycle']),
    )
    .option('--used <lookups>', 'lookups to record as used in the cycle', parseWhole)
    .option('--cycle <number>', 'the cycle to move to; without --used, nothing is used in it', parseWhole)
    .action((name: string, options: CorrectOptions) => withLedger(options, (ledger) => correct(ledger, name, options)));
  add('accept-clock', 'confirm a clock that is far ahead of the latest moment seen', 'account accept-clock').action(
    (options: LedgerCommandOptions) =>
      withLedger(options, async (ledger) => {
        await ledger.acceptClock();
        const acceptedAt = new Date().toISOString();
        if (options.json) printJson({ accepted_at: acceptedAt });
        else printLine(`The ledger accepts the clock: ${acceptedAt}.`);
      }),
  );
}

/** Returns the ledger file to back up, restore or check. @throws PagegateError not_in_a_fleet */
async function ledgerFileFrom(options: LedgerCommandOptions): Promise<string> {
  if ((await configToWrite(options)).ledger.url !== null) throw new PagegateError('not_in_a_fleet');
  return (await pathsFrom(options)).ledgerFile;
}

async function correct(ledger: Ledger, name: string, options: CorrectOptions): Promise<void> {
  const { correctMeter } = await import('../ledger/correct-meter.ts');
  const { credit, used, cycle, note } = options;
  const wanted = Object.fromEntries(Object.entries({ credit, used, cycle }).filter(([, value]) => value !== undefined));
  const credited = await correctMeter(ledger, (await pathsFrom(options)).ledgerFile, { name, wanted, note });
  if (options.json) {
    printJson({ ...accountJson(await ledger.view(name)), ...(credit === undefined ? {} : { credited }) });
    return;
  }
  if (credit !== undefined)
    printLine(`${counted(credited, 'lookup')} given back${credited < credit ? ': no more were used' : ''}.`);
  await report(ledger, name, options);
}

async function restore(backup: string, options: LedgerCommandOptions & { acceptUnknownUsage?: true }): Promise<void> {
  const { restoreLedger } = await import('../ledger/restore.ts');
  const file = await ledgerFileFrom(options);
  await assertInstallation(await configFrom(options));
  const report = restoreLedger({
    backup,
    file,
    actor: actorOption(options),
    acceptUnknownUsage: options.acceptUnknownUsage === true,
  });
  const { accounts, raised, keptKeys, keptStricter, missing, knownFrom, replaced } = report;
  if (options.json) {
    printJson({
      accounts,
      raised,
      kept_keys: keptKeys,
      kept_stricter: keptStricter,
      missing,
      known_from: knownFrom,
      replaced,
    });
    return;
  }
  printLine(`Restored ${counted(accounts, 'account')}.`);
  printLine(`Used since, known from: ${knownFrom.join(' and ') || 'nothing (accepted)'}.`);
  for (const { account, lookups } of raised)
    printLine(`  ${account}: ${counted(lookups, 'lookup')} since the backup, kept as used`);
  if (keptKeys > 0) printLine(`Kept ${counted(keptKeys, 'key')} issued since the backup.`);
  if (keptStricter > 0)
    printLine(`Revocations, rotations, closures and suspensions since the backup, kept in force: ${keptStricter}.`);
  if (missing.length > 0) printLine(`Not in the backup, create again: ${missing.join(', ')}.`);
  if (replaced !== null) printLine(`The replaced file is ${replaced}.`);
}

async function create(ledger: Ledger, name: string, options: LedgerCommandOptions & { withKey?: true }): Promise<void> {
  await ledger.createAccount(name);
  const issued = options.withKey ? await ledger.issueKey(name) : undefined;
  await report(ledger, name, options, issued?.key);
}

async function subscribe(ledger: Ledger, name: string, options: SubscribeOptions): Promise<void> {
  const { issued } = await ledger.subscribe(name, options.plan, options.reference, options.limit);
  await report(ledger, name, options, issued?.key);
}

async function report(ledger: Ledger, name: string, options: LedgerCommandOptions, key?: string): Promise<void> {
  const view = await ledger.view(name);
  const json = accountJson(view);
  if (options.json) {
    printJson(key === undefined ? json : { ...json, key });
    return;
  }
  const { account, quota, keys, latestSeconds } = view;
  const rows: [string, string][] = [
    ['account', `${account.name} (${account.state})`],
    ['plan', quota.plan ?? 'none yet'],
  ];
  if (quota.quota_limit !== null) {
    const used = `${withCommas(quota.quota_used)} of ${withCommas(quota.quota_limit)}`;
    rows.push(['used', `${used} in cycle ${view.cycle}, ${withCommas(quota.quota_remaining)} left`]);
    rows.push(['resets', quota.quota_resets_at ?? '']);
  }
  if (account.next !== null) {
    rows.push(['then', `${account.next.plan}, ${counted(account.next.limit, 'lookup')}`]);
  }
  const states = keys.map((record) => {
    if (record.revokedAt !== null) return `number ${record.id}, revoked`;
    if (record.expiresAt === null) return `number ${record.id}, current`;
    return record.expiresAt > latestSeconds
      ? `number ${record.id}, until ${rfc3339(record.expiresAt)}`
      : `number ${record.id}, expired`;
  });
  rows.push(['keys', states.join('; ') || 'none yet']);
  if (key !== undefined) rows.push(['key', key]);
  for (const [label, text] of rows) printLine(`${label.padEnd(8)} ${text}`);
}

function list(views: readonly AccountView[], options: LedgerCommandOptions): void {
  if (options.json) {
    printJson(views.map(accountJson));
    return;
  }
  const rows = views.map(({ account, quota }) => [
    account.name,
    account.state,
    quota.plan ?? '-',
    quota.quota_used,
    quota.quota_remaining,
    quota.quota_resets_at ?? '-',
  ]);
  printTable([['account', 'state', 'plan', 'used', 'remaining', 'resets'], ...rows]);
}

async function audit(
  ledger: Ledger,
  name: string | undefined,
  options: LedgerCommandOptions & { last: number },
): Promise<void> {
  const { auditActionJson, auditStateJson, readAudit } = await import('../ledger/audit.ts');
  if (options.last > AUDIT_LINES_MAX) {
    throw new PagegateError('usage', `--last: expected 1 to ${AUDIT_LINES_MAX}, got ${options.last}.`);
  }
  const entries = await readAudit(ledger, name, options.last);
  if (options.json) {
    printJson(
      entries.map(({ at, action, before, after, ...entry }) => ({
        ...entry,
        ...auditActionJson(action),
        at: rfc3339(at),
        before: auditStateJson(before),
        after: auditStateJson(after),
      })),
    );
    return;
  }
  const rows = entries.map(({ at, actor, action, account }) => [rfc3339(at), actor, action, account ?? '-']);
  printTable([['at', 'who', 'what', 'account'], ...rows]);
}
