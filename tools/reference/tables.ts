/** The tables of the reference pages, made from the code they describe. */
import type { Command } from 'commander';
import { createProgram } from '../../src/cli.ts';
import { ERRORS, EXIT } from '../../src/errors.ts';
import { filteringTaxonomy } from '../../src/record/taxonomy.ts';
import { pageTypes } from '../../src/record/vocabulary.ts';

/** What each exit code tells a script. The names are those of `EXIT`; a new one needs a sentence here. */
const EXIT_MEANING: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: 'It worked.',
  unexpected: 'A defect of the program; please report it with what it printed.',
  usage: 'The command line is not understood; nothing was done.',
  bad_input: 'What was given is wrong: a value, a file, a configuration. Repair it; the same call fails again.',
  negative: 'It worked, and the answer is no: not found, nothing there.',
  corrupt: 'A file is damaged or is not what it says; restore or rebuild it.',
  refused: 'Understood and refused: a license, a policy, a limit or a state does not allow it.',
  environment: 'Something around the program failed: a file, a disk, a port, a service. Repair it, then retry.',
  busy: 'Another process holds what is needed; retry later.',
  interrupted: 'Stopped by Ctrl-C or a termination signal; nothing half-done was left behind.',
};

/** A cell of a Markdown table. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').trim();
}

function table(rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows;
  const lines = [head, head.map(() => '---'), ...body].map((row) => `| ${row.join(' | ')} |`);
  return lines.join('\n');
}

/** Every error code: its HTTP status, its exit code, when it happens and what to do. */
function errorTable(): string {
  const rows = Object.entries(ERRORS).map(([code, { status, exit, message }]) => [
    `\`${code}\``,
    status === undefined ? '' : String(status),
    String(exit),
    cell(message),
  ]);
  return table([['code', 'HTTP status', 'exit code', 'when it happens, what to do'], ...rows]);
}

/** Every exit code. */
function exitTable(): string {
  const rows = Object.entries(EXIT).map(([name, code]) => [
    String(code),
    name,
    EXIT_MEANING[name as keyof typeof EXIT],
  ]);
  return table([['exit code', 'name', 'meaning'], ...rows]);
}

function leaves(command: Command, path: readonly string[] = []): { path: string; command: Command }[] {
  const name = [...path, command.name()];
  if (command.commands.length === 0) return [{ path: name.join(' '), command }];
  return command.commands.flatMap((child) => leaves(child, name));
}

/** Every command with its arguments, its options and what it does. */
async function commandTable(): Promise<string> {
  const rows = leaves(await createProgram()).map(({ path, command }) => {
    const call = [
      path,
      ...command
        .usage()
        .split(' ')
        .filter((word) => word !== '' && word !== '[options]'),
    ].join(' ');
    const options = command.options.filter((option) => !option.hidden).map((option) => `\`${cell(option.flags)}\``);
    return [`\`${cell(call)}\``, options.join(', '), cell(command.description())];
  });
  return table([['command', 'options', 'what it does'], ...rows]);
}

/** Every page type in vocabulary order, with its class and its aliases. */
function pageTypeTable(): string {
  const rows = pageTypes('full').map(({ name, verdict, core, aliases, meaning }) => [
    `\`${name}\``,
    core ? 'core' : 'full',
    verdict,
    meaning,
    aliases.map((alias) => `\`${alias}\``).join(', '),
  ]);
  return table([['page type', 'in', 'class', 'what it is', 'aliases on import'], ...rows]);
}

/** Every filtering category in the order of the taxonomy. */
function filteringTable(): string {
  const rows = filteringTaxonomy.map(({ id, name, group, threat, meaning }) => [
    name,
    `\`${id}\``,
    group,
    threat ? 'yes' : '',
    meaning,
  ]);
  return table([['category', 'id', 'group', 'threat', 'what it is'], ...rows]);
}

/** Reference page → the tables in it, by name; each stands between `<!-- table NAME -->` and `<!-- end -->`. */
export const PAGES: Readonly<Record<string, Readonly<Record<string, () => string | Promise<string>>>>> = {
  'docs/errors.md': { errors: errorTable },
  'docs/vocabulary.md': { 'page-types': pageTypeTable, filtering: filteringTable },
  'docs/cli.md': { commands: commandTable, exits: exitTable },
};

/** A page with its tables made anew. Throws where a table's place is missing. */
export async function renewed(text: string, tables: (typeof PAGES)[string]): Promise<string> {
  let result = text;
  for (const [name, make] of Object.entries(tables)) {
    const place = new RegExp(`(<!-- table ${name} -->\n).*?(\n?<!-- end -->)`, 's');
    if (!place.test(result)) throw new Error(`There is no place for the table "${name}".`);
    const made = await make();
    result = result.replace(place, (_all, before: string) => `${before}\n${made}\n\n<!-- end -->`);
  }
  return result;
}
