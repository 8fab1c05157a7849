/**
 * Options of a tool on the command line: words with a default. `--help` prints the usage and ends the program well; what the tool does
 * not know ends it with one line and exit code 2, before it has done anything.
 */
import { parseArgs } from 'node:util';

/** Ends the program, because it was called wrongly. */
export function refuse(problem: string): never {
  process.stderr.write(`${problem} --help tells what there is.\n`);
  process.exit(2);
}

export interface Options<Name extends string> {
  readonly values: Readonly<Record<Name, string>>;
  readonly positionals: readonly string[];
}

/** Reads `--name VALUE` for each name of `defaults`, and words without a name where they are allowed. */
export async function readOptions<Name extends string>(
  usage: string | (() => Promise<string>),
  defaults: Readonly<Record<Name, string>>,
  allowPositionals = false,
): Promise<Options<Name>> {
  const names = Object.keys(defaults) as Name[];
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]));
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({ allowPositionals, options: { ...options, help: { type: 'boolean', short: 'h' } } });
  } catch (error) {
    // Node's own message goes on for lines about dashes.
    const [sentence = ''] = (error as Error).message.split(/\.?(?:\n| To | This |$)/, 1);
    return refuse(`${sentence}.`);
  }
  if (parsed.values['help'] === true) {
    process.stdout.write(`${typeof usage === 'string' ? usage : await usage()}\n`);
    process.exit(0);
  }
  return {
    values: { ...defaults, ...(parsed.values as Partial<Record<Name, string>>) },
    positionals: parsed.positionals,
  };
}

/** The whole number that an option must be, at least `least`; `5_000_000` is one. */
export function wholeNumber<Name extends string>(
  values: Readonly<Record<Name, string>>,
  name: Name,
  least: number,
): number {
  const text = values[name];
  const number = /^\d[\d_]*$/.test(text) ? Number(text.replaceAll('_', '')) : Number.NaN;
  if (!Number.isSafeInteger(number) || number < least)
    refuse(`--${name} must be a whole number, at least ${least.toLocaleString('en-US')}: '${text}' is not.`);
  return number;
}
