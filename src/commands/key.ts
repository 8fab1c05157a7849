/** `pagegate key`: the API keys of an account. A key is printed only when it is issued or shown. */
import type { Command } from 'commander';
import { PagegateError } from '../errors.ts';
import type { IssuedKey } from '../ledger/ledger.ts';
import { type LedgerCommandOptions, ledgerCommands, withLedger } from './shared/ledger-options.ts';
import { printJson, printLine } from './shared/output.ts';

export function registerKey(program: Command): void {
  const key = program.command('key').description('show, rotate and revoke API keys');
  const add = ledgerCommands(key);

  add('show <account>', 'print the current key (showing it is audited)', 'key show acme')
    .option('--id <n>', 'number of another key of the account')
    .action((name: string, options: LedgerCommandOptions & { id?: string }) =>
      withLedger(options, async (ledger) => {
        print(await ledger.showKey(name, options.id === undefined ? undefined : parseKeyId(options.id)), options);
      }),
    );
  add('issue <account>', 'issue the first key of an account that has no plan yet', 'key issue acme').action(
    (name: string, options: LedgerCommandOptions) =>
      withLedger(options, async (ledger) => print(await ledger.issueKey(name), options)),
  );
  add('rotate <account>', 'issue a new key; the old one stays valid for the overlap', 'key rotate acme --overlap 24h')
    .option('--overlap <duration>', 'for example 90s, 15m, 24h, 7d; at most 30d', '0s')
    .option(
      '--new-ledger-key',
      'in a fleet that has lost its keys/ledger.key: from now on encrypt API keys with the key file of this node',
    )
    .action((name: string, options: LedgerCommandOptions & { overlap: string; newLedgerKey?: boolean }) =>
      withLedger(options, async (ledger) =>
        print(await ledger.rotateKey(name, parseDuration(options.overlap), options.newLedgerKey), options),
      ),
    );
  add('revoke <account> <key-id>', 'refuse a key from now on (401)', 'key revoke acme 3').action(
    (name: string, id: string, options: LedgerCommandOptions) =>
      withLedger(options, async (ledger) => {
        const record = await ledger.revokeKey(name, parseKeyId(id));
        if (options.json) printJson({ id: record.id, revoked: true });
        else printLine(`Key ${record.id} of ${name} is revoked.`);
      }),
  );
}

function print({ key, record }: IssuedKey, options: LedgerCommandOptions): void {
  if (options.json) printJson({ id: record.id, key });
  else printLine(key);
}

function parseKeyId(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text))
    throw new PagegateError('usage', `Expected the number of a key, got "${text.slice(0, 20)}".`);
  return Number(text);
}

/** A duration in seconds. */
function parseDuration(text: string): number {
  const match = /^(\d{1,7})(s|m|h|d)$/.exec(text);
  if (match === null) throw new PagegateError('usage', `Expected a duration like 24h, got "${text.slice(0, 20)}".`);
  return Number(match[1]) * { s: 1, m: 60, h: 3600, d: 86_400 }[match[2] as 's' | 'm' | 'h' | 'd'];
}
