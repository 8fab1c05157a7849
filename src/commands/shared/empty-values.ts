/** Refuses empty values on the command line. An unset shell variable leaves them (`--config "$CONF"`); they are never intended. */
import type { Command } from 'commander';

/**
 * Refuses a command line with an empty option or argument. An empty path would mean the current folder, or no file at all.
 *
 * @throws CommanderError that names the first empty one
 */
export function refuseEmpty(command: Command): void {
  const { args, registeredArguments } = command;
  const at = args.indexOf('');
  const argument = registeredArguments[Math.min(at, registeredArguments.length - 1)];
  if (at !== -1 && argument !== undefined) refuse(command, `argument '${argument.name()}'`);
  const option = command.options.find((one) => {
    const name = one.attributeName();
    const value: unknown = command.getOptionValue(name);
    return command.getOptionValueSource(name) === 'cli' && [value].flat().includes('');
  });
  if (option !== undefined) refuse(command, `option '${option.flags}'`);
}

function refuse(command: Command, what: string): never {
  return command.error(`error: ${what} is empty; perhaps a variable of the shell is not set`);
}
