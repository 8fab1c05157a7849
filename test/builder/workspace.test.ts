import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { removeLeftovers, Workspace } from '../../src/builder/files/workspace.ts';

let parent = '';
let out = '';
const children: ChildProcess[] = [];
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'pagegate-workspace-test-'));
  out = join(parent, 'index.pgx');
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(parent, { recursive: true, force: true });
});

/** Starts another process, which creates a workspace, reports its path, and waits until it is killed. */
async function elsewhere(): Promise<{ path: string; unfinished: string; kill: () => Promise<void> }> {
  const module = new URL('../../src/builder/files/workspace.ts', import.meta.url).href;
  const script = `import { Workspace } from ${JSON.stringify(module)};
    import { writeFileSync } from 'node:fs';
    const workspace = new Workspace(${JSON.stringify(parent)}, ${JSON.stringify(out)});
    writeFileSync(workspace.unfinished, '');
    workspace.claim();
    process.stdout.write(JSON.stringify({ path: workspace.path, unfinished: workspace.unfinished }));
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const [said] = (await once(child.stdout!, 'data')) as [Buffer];
  return {
    ...(JSON.parse(said.toString()) as { path: string; unfinished: string }),
    kill: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

describe('a workspace', () => {
  it('is deleted with its contents when it is removed', () => {
    const workspace = new Workspace(parent, out);
    writeFileSync(join(workspace.path, 'records-0'), 'x');
    writeFileSync(workspace.unfinished, 'x');
    workspace.claim();
    workspace.remove();
    expect(readdirSync(parent)).toEqual([]);
  });

  it('of a running build is left alone, and that of a killed one is removed by the next', async () => {
    const other = await elsewhere();
    writeFileSync(join(other.path, 'records-0'), 'x');
    removeLeftovers(parent, out);
    expect(existsSync(join(other.path, 'records-0'))).toBe(true);
    expect(existsSync(other.unfinished)).toBe(true);
    await other.kill();
    removeLeftovers(parent, out);
    expect(readdirSync(parent)).toEqual([]);
  });

  it('of a killed build whose process id this process now has is removed', () => {
    writeFileSync(`${out}.building-${process.pid}`, 'x');
    removeLeftovers(parent, out);
    expect(readdirSync(parent)).toEqual([]);
  });

  it('leaves everything alone that is not an abandoned workspace', () => {
    mkdirSync(join(parent, '.pagegate-build-unlocked'));
    mkdirSync(join(parent, 'target'));
    writeFileSync(join(parent, 'target/lock'), '');
    symlinkSync('target', join(parent, '.pagegate-build-link'));
    mkdirSync(join(parent, '.pagegate-build-odd'));
    symlinkSync('../target/lock', join(parent, '.pagegate-build-odd/lock'));
    writeFileSync(join(parent, '.pagegate-build-file'), '');
    mkdirSync(join(parent, 'somebody-else'));
    writeFileSync(out, '');
    writeFileSync(`${out}.building-${process.ppid}`, 'of a process that is there');
    writeFileSync(`${out}.building-by-hand`, '');
    symlinkSync('target/lock', `${out}.building-2000000000`);
    const before = readdirSync(parent).sort();
    removeLeftovers(parent, out);
    expect(readdirSync(parent).sort()).toEqual(before);
    expect(readdirSync(join(parent, 'target'))).toEqual(['lock']);
  });
});
