/** The commands of the program, in the order in which `--help` lists them. */
import type { Command } from 'commander';
import { registerRegister } from './register.ts';

export const commands: readonly ((program: Command) => void)[] = [registerRegister];
