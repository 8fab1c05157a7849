/**
 * Command line options of a tool; each takes a value and has a default. `--help` prints the usage and ends the program with exit code 0. An
 * unknown option ends it with a one-line message and exit code 2, before it has done anything.
 */
import { parseArgs } from 'node:util';

/** Ends the program with exit code 2, because it was called incorrectly. */
export function refuse(problem: string): never {
  process.stderr.write(`${problem} --help tells what there is.\n`);
  process.exit(2);
}

export interface Options<Name extends string> {
  readonly values: Readonly<Record<Name, string>>;
  readonly positionals: readonly string[];
}

/** Reads `--name VALUE` for each name of `defaults`, and positional arguments if they are allowed. */
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
    // Only the first sentence: Node's message continues with several lines about dashes.
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

/** Parses an option's value as a whole number of at least `least`. Underscores are allowed: `5_000_000`. */
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
