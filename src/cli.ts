/** The program `pagegate`: one line for each command. */
import { Command, CommanderError } from 'commander';
import { refuseEmpty } from './commands/shared/empty-values.ts';
import { adviceAfter } from './commands/shared/lost-output.ts';
import { printableLines, reportFailure } from './commands/shared/output.ts';
import { adviseOnLostOutput, flushOut, guardStreams, writeOut } from './commands/shared/streams.ts';
import { EXIT, PagegateError } from './errors.ts';
import { PROGRAM_VERSION } from './version.ts';

/** Builds the program; commands load their parts only when they run. With `asJson` it leaves it to its caller to say what is wrong. */
export async function createProgram(asJson = false): Promise<Command> {
  const program = new Command('pagegate')
    .description('On-premises egress guardrail for AI agents: look up, judge and meter the pages they want to open.')
    .version(PROGRAM_VERSION)
    // Commands take these settings over, so they come before them.
    .configureOutput({
      writeOut,
      // What is wrong is reported like every other failure.
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

/** Runs one command line to its end and says on standard error what failed. Returns the exit code of that; a command may have set one of its own. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  const asJson = argv.includes('--json');
  try {
    const program = await createProgram(asJson);
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportFailure(error, asJson);
    if (error.exitCode !== 0) {
      // Without a command the help was shown, which says more.
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
  // Somebody stopped the program: do not wait until a stalled reader has taken the output.
  if (code === EXIT.interrupted) process.exit(code);
  if (code !== EXIT.ok) process.exitCode = code;
}

/** What is wrong with a command line, in the form of every other failure. */
function usageFailure({ code, message }: CommanderError): PagegateError {
  // Without a command the help is shown, and the error has no words of its own.
  if (code === 'commander.help') return new PagegateError('usage', 'A command is missing.');
  // A suggestion stands on a line of its own; a failure is one line.
  return new PagegateError('usage', message.replace(/^error: /, '').replace(/\n(?=\(Did you mean [^\n]*\)$)/, ' '));
}

if (import.meta.main) await main(process.argv.slice(2));
