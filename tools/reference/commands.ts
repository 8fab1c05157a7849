/** The tables of docs/cli.md, generated from the commands themselves. */
import type { Command, Option } from 'commander';
import { createProgram } from '../../src/cli.ts';
import { EXIT } from '../../src/errors.ts';
import { asSentence, code, markdownCell, markdownTable } from './markdown.ts';

/** The meaning of each exit code for a script. The names are those of `EXIT`; a new one needs a sentence here. */
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
  not_replaced: 'The running server could not be replaced and goes on as before; find out why, then retry.',
  interrupted: 'Stopped by Ctrl-C or a termination signal; nothing half-done was left behind.',
};

/** An option that at least this many commands have, with the same description, is stated once. */
const COMMON_MIN = 6;

interface Leaf {
  /** `pagegate drop sign` */
  readonly path: string;
  readonly command: Command;
}

function leaves(command: Command, path: readonly string[] = []): Leaf[] {
  const name = [...path, command.name()];
  if (command.commands.length === 0) return [{ path: name.join(' '), command }];
  return command.commands.flatMap((child) => leaves(child, name));
}

/** Returns the command line of a command: `pagegate drop sign <dir>`. */
function callOf({ path, command }: Leaf): string {
  const words = command
    .usage()
    .split(' ')
    .filter((word) => word !== '' && word !== '[options]');
  return [path, ...words].join(' ');
}

const optionsOf = ({ command }: Leaf): readonly Option[] => command.options.filter((option) => !option.hidden);
/** Returns the identity of an option: its flags and description. `--json` is one option, although its description differs between commands. */
const sameOption = ({ flags, description }: Option): string =>
  flags === '--json' ? flags : `${flags}\n${description}`;

/** Returns the options that many commands have, by {@link sameOption}. */
function commonOptions(all: readonly Leaf[]): Map<string, Option> {
  const counts = new Map<string, number>();
  const options = new Map<string, Option>();
  for (const option of all.flatMap(optionsOf)) {
    counts.set(sameOption(option), (counts.get(sameOption(option)) ?? 0) + 1);
    options.set(sameOption(option), option);
  }
  return new Map([...options].filter(([key]) => (counts.get(key) ?? 0) >= COMMON_MIN));
}

/** Returns the row of an option: meaning and default. A default in the description, `(default: …)` or `(else …)`, moves to its own column. */
function optionRow(option: Pick<Option, 'flags' | 'description' | 'defaultValue' | 'mandatory'>): string[] {
  const stated = /\s*\((?:default: |else )([^()]+)\)$/.exec(option.description);
  const meaning = stated === null ? option.description : option.description.slice(0, stated.index);
  const fallback: unknown = option.defaultValue;
  const defaultText = fallback === undefined ? '' : code(String(fallback));
  const needed = option.mandatory ? 'required' : '';
  return [
    code(option.flags),
    asSentence(markdownCell(meaning)),
    defaultText || markdownCell(stated?.[1] ?? '') || needed,
  ];
}

/** Returns a table of all commands with their descriptions. */
async function overview(): Promise<string> {
  const rows = leaves(await createProgram()).map((leaf) => [
    `[\`${markdownCell(callOf(leaf))}\`](#${anchor(leaf.path)})`,
    asSentence(markdownCell(leaf.command.description())),
  ]);
  return markdownTable([['command', 'what it does'], ...rows]);
}

/** Returns the anchor of a heading. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .replaceAll(' ', '-');
}

/** Returns a table of the options that many commands have. */
async function common(): Promise<string> {
  const rows = [...commonOptions(leaves(await createProgram()))].map(([key, option]) =>
    key === '--json' ? [code(key), 'Print one JSON document instead of text.', ''] : optionRow(option),
  );
  return markdownTable([['option', 'meaning', 'default'], ...rows]);
}

/** Returns the examples in a command's help. */
function exampleOf(command: Command): string {
  let help = '';
  command.configureOutput({
    writeOut: (text) => {
      help += text;
    },
  });
  command.outputHelp();
  const lines = (/\nExamples?:\n([\s\S]*)$/.exec(help)?.[1] ?? '').trimEnd().split('\n');
  return ['```', ...lines.map((line) => line.replace(/^ {2}/, '')), '```'].join('\n');
}

/** Returns one section for each command: description, arguments, its own options, the names of its common options, an example. */
async function details(): Promise<string> {
  const all = leaves(await createProgram());
  const shared = commonOptions(all);
  const sections = all.map((leaf) => {
    const specific = optionsOf(leaf).filter((option) => !shared.has(sameOption(option)));
    const others = optionsOf(leaf).filter((option) => shared.has(sameOption(option)));
    const described = leaf.command.registeredArguments.filter(({ description }) => description !== '');
    const rows = [
      ...described.map((argument) => {
        const [, meaning = '', fallback = ''] = optionRow({
          flags: '',
          description: argument.description,
          defaultValue: argument.defaultValue,
          mandatory: false,
        });
        return [code(argument.required ? `<${argument.name()}>` : `[${argument.name()}]`), meaning, fallback];
      }),
      ...specific.map(optionRow),
    ];
    return [
      `### ${leaf.path}`,
      `\`${markdownCell(callOf(leaf))}\`: ${markdownCell(leaf.command.description())}.`,
      ...(rows.length === 0 ? [] : [markdownTable([['argument or option', 'meaning', 'default'], ...rows])]),
      ...(others.length === 0 ? [] : [`Also: ${others.map(({ flags }) => code(flags)).join(', ')}.`]),
      exampleOf(leaf.command),
    ].join('\n\n');
  });
  return sections.join('\n\n');
}

/** Returns a table of all exit codes. */
function exits(): string {
  const rows = Object.entries(EXIT).map(([name, value]) => [
    String(value),
    name,
    EXIT_MEANING[name as keyof typeof EXIT],
  ]);
  return markdownTable([['exit code', 'name', 'meaning'], ...rows]);
}

export const commandTables = { commands: overview, 'common-options': common, options: details, exits };
