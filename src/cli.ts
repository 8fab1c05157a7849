/** The program `pagegate`: one line for each command. */
import { Command, CommanderError } from 'commander';
import { refuseEmpty } from './commands/shared/empty-values.ts';
import { adviceAfter } from './commands/shared/lost-output.ts';
import { printableLines, reportFailure } from './commands/shared/output.ts';
import { adviseOnLostOutput, flushOut, guardStreams, writeOut } from './commands/shared/streams.ts';
import { EXIT, PagegateError } from './errors.ts';
import { PROGRAM_VERSION } from './version.ts';

/** Builds the program. Each command imports its modules only when it runs. With `asJson`, the caller reports usage errors, not commander. */
export async function createProgram(asJson = false): Promise<Command> {
  const program = new Command('pagegate')
    .description('On-premises egress guardrail for AI agents: look up, judge and meter the pages they want to open.')
    .version(PROGRAM_VERSION)
    // Commands inherit these settings when they are added, so the settings come first.
    .configureOutput({
      writeOut,
      // Usage errors are reported like every other failure.
      outputError: () => {},
      writeErr: (text) => {
        if (!asJson) process.stderr.write(printableLines(text));
      },
    })
    .exitOverride()
    .hook('preAction', (_program, command) => {
      refuseEmpty(command);
      adviseOnLostOutput(adviceAfter(command));
    });
  const { commands } = await import('./commands/all.ts');
  for (const register of commands) register(program);
  return program;
}

/**
 * Runs one command line to its end and reports a failure on standard error. Returns the exit code of the failure, else 0: a command
 * that ran to its end may have set `process.exitCode` itself.
 */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  const asJson = argv.includes('--json');
  try {
    const program = await createProgram(asJson);
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportFailure(error, asJson);
    if (error.exitCode !== 0) {
      // Without a command, commander has printed the help, which says more than the error.
      if (asJson || error.code !== 'commander.help') reportFailure(usageFailure(error), asJson);
      return EXIT.usage;
    }
  }
  try {
    await flushOut();
  } catch (error) {
    return reportFailure(error, asJson);
  }
  return EXIT.ok;
}

async function main(argv: readonly string[]): Promise<void> {
  guardStreams();
  const code = await runCommandLine(argv);
  // The program was stopped: do not wait for a stalled reader of its output.
  if (code === EXIT.interrupted) process.exit(code);
  if (code !== EXIT.ok) process.exitCode = code;
}

/** Converts an error of commander, so that usage errors look like every other failure. */
function usageFailure({ code, message }: CommanderError): PagegateError {
  // Without a command, commander prints the help, and its error has no message.
  if (code === 'commander.help') return new PagegateError('usage', 'A command is missing.');
  // Commander puts a suggestion on its own line, but a failure is one line.
  return new PagegateError('usage', message.replace(/^error: /, '').replace(/\n(?=\(Did you mean [^\n]*\)$)/, ' '));
}

if (import.meta.main) await main(process.argv.slice(2));
