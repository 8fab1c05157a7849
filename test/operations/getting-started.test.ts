/** Every command of docs/getting-started.md, run as a user would run it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../tools/free-port.ts';

const ROOT = join(import.meta.dirname, '../..');
const page = readFileSync(join(ROOT, 'docs/getting-started.md'), 'utf8');

const home = mkdtempSync(join(tmpdir(), 'pagegate-getting-started-'));
const folder = join(home, 'pagegate-try');
let server: ChildProcess | undefined;
let environment: NodeJS.ProcessEnv = {};

/** Returns the shell lines of the page, step by step. The step that starts the server also needs a free port. */
function stepsOf(port: number): string[] {
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text);
  return blocks.map((text) => text.replaceAll('8080', String(port)));
}

/** Runs steps in one shell, from the checkout or from the folder that the page creates. */
function run(steps: readonly string[], cwd: string): string {
  const result = spawnSync('bash', ['-euo', 'pipefail', '-c', steps.join('\n')], {
    cwd,
    env: environment,
    encoding: 'utf8',
  });
  expect(result.stderr + result.stdout, steps.join('\n')).toSatisfy(() => result.status === 0);
  return result.stdout;
}

/** Returns the files of a state directory that docs/operations.md does not mention. */
function filesNowhereIn(state: string): string[] {
  const operations = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');
  const [, tree = ''] = /^## Files and directories\n\n```\n([^`]*)```/m.exec(operations) ?? [];
  const rows = [...tree.matchAll(/^ {2}(\S+)(?: +(.+))?$/gm)].map(([, path = '', about = '']) => ({ path, about }));
  const isNamed = (file: string): boolean =>
    rows.some(({ path, about }) =>
      path === 'ledger/'
        ? file.startsWith(path)
        : path === file || about.split(/[ ,]+/).includes(file.replace(path, '')),
    );
  const files = readdirSync(state, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath.slice(state.length), entry.name).replace(/^\//, ''))
    .map((file) => file.replace(/^index\/(?:current|generations\/\d+)\//, 'index/generations/<n>/'))
    .map((file) => file.replace(/burst-\d+/, 'burst-<pid>'));
  expect(files).toContain('index/generations/<n>/index.pgx');
  return files.filter((file) => !isNamed(file));
}

beforeAll(async () => {
  environment = {
    HOME: home,
    PATH: `${join(ROOT, 'src')}:${process.env['PATH']}`,
    PAGEGATE_ADMIN_PORT: String(await freePort()),
  };
});

afterAll(async () => {
  if (server !== undefined && server.exitCode === null) {
    const ended = new Promise((resolve) => server?.once('exit', resolve));
    server.kill('SIGTERM');
    await ended;
  }
  rmSync(home, { recursive: true, force: true });
});

describe('docs/getting-started.md', () => {
  it('leads from a list of domains to a served index, a judged request and new data', async () => {
    const steps = stepsOf(await freePort());
    const serve = steps.findIndex((text) => text.trim() === 'pagegate serve');
    expect(serve).toBeGreaterThan(5);
    const before = run(steps.slice(0, serve), ROOT);
    expect(before).toContain('deny  page_type_db/login');

    environment = { ...environment, PAGEGATE_CONFIG: join(folder, 'pagegate.json') };
    server = spawn('bash', ['-c', 'exec pagegate serve'], { cwd: folder, env: environment, stdio: 'ignore' });
    await expect.poll(() => spawnSync('pagegate', ['status'], { env: environment }).status).toBe(0);

    const output = run(steps.slice(serve + 1), folder);
    expect(output).toContain('"verdict":"deny"');
    expect(output).toContain('may be read');
    expect(output).toContain('refused');
    expect(output).toContain('example.org: found');
    expect(filesNowhereIn(join(folder, 'state'))).toEqual([]);
  });
});
