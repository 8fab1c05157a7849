/** The program `pagegate`: one line for each command. */
import { Command, CommanderError } from 'commander';
import { reportFailure } from './commands/output.ts';
import { EXIT } from './errors.ts';
import { PROGRAM_VERSION } from './version.ts';

/** Builds the program; commands load their parts only when they run. */
export async function createProgram(): Promise<Command> {
  const program = new Command('pagegate')
    .description('On-premises egress guardrail for AI agents: look up, judge and meter the pages they want to open.')
    .version(PROGRAM_VERSION)
    .showHelpAfterError('(see --help)')
    .exitOverride();
  const { commands } = await import('./commands/all.ts');
  for (const register of commands) register(program);
  return program;
}

async function main(argv: readonly string[]): Promise<void> {
  try {
    const program = await createProgram();
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
      return;
    }
    process.exitCode = reportFailure(error, argv.includes('--json'));
  }
}

if (import.meta.main) await main(process.argv.slice(2));
