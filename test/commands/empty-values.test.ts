/** Every option and argument of every command: an empty value is refused before anything is done. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli.ts';
import { loadConfig } from '../../src/config/config.ts';
import { pagegate } from '../support/program.ts';

const leavesOf = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
const pathOf = (command: Command): string[] =>
  command.parent === null ? [] : [...pathOf(command.parent), command.name()];

/** Returns every command with each of its values empty in turn, and the others set. */
async function emptyLines(): Promise<[line: string, words: string[]][]> {
  return leavesOf(await createProgram(true)).flatMap((command) => {
    const values = command.options.filter(({ required }) => required);
    const wordsWith = (empty: unknown): string[] => [
      ...pathOf(command),
      ...values
        .filter((option) => option.mandatory || option === empty)
        .flatMap((option) => [option.long!, option === empty ? '' : (option.argChoices?.[0] ?? '1')]),
      '--',
      ...command.registeredArguments.map((argument) => (argument === empty ? '' : '1')),
    ];
    return [...values, ...command.registeredArguments].map((empty): [string, string[]] => {
      const words = wordsWith(empty);
      return [words.map((word) => word || "''").join(' '), words];
    });
  });
}

const lines = await emptyLines();

describe('an empty value', () => {
  it.each(lines)('is refused: %s', async (_line, words) => {
    const program = await createProgram(true);
    let ran = false;
    for (const command of leavesOf(program))
      command.action(() => {
        ran = true;
      });
    const refusal = { exitCode: 1, message: expect.stringMatching(/^error: .*(?: is empty|is invalid)/) };
    await expect(program.parseAsync(words, { from: 'user' })).rejects.toMatchObject(refusal);
    expect(ran).toBe(false);
  });
});

describe('on the command line', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'pagegate-empty-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const run = (...words: string[]) => pagegate(words, { cwd: folder });

  it('creates nothing in the current folder', () => {
    expect(run('account', 'create', 'acme', '--state-dir', '')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("option '--state-dir <dir>' is empty"),
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is one JSON object with --json', () => {
    const { status, stderr } = run('plan', 'list', '--json', '--config', '');
    expect([status, JSON.parse(stderr)]).toEqual([
      2,
      { error: 'usage', message: expect.stringContaining("option '--config <file>' is empty") },
    ]);
  });

  it.each(['keys/', '.', 'keys/..'])('is refused as the file name of a key pair: %s', (out) => {
    expect(run('license', 'keygen', '--out', out)).toMatchObject({ status: 2 });
    expect(readdirSync(folder)).toEqual([]);
    expect(existsSync(join(folder, 'keys'))).toBe(false);
  });
});

describe('a configuration', () => {
  it.each([
    ['--config', { file: '', env: {} }],
    ['PAGEGATE_CONFIG', { env: { PAGEGATE_CONFIG: '' } }],
    ['--config', { file: '', env: { PAGEGATE_CONFIG: 'own.json' } }],
  ])('with an empty %s is not taken for a missing one', (source, sources) => {
    const refusal = { code: 'config_invalid', message: expect.stringContaining(`${source} is empty`) };
    expect(() => loadConfig(sources)).toThrow(expect.objectContaining(refusal));
  });
});
