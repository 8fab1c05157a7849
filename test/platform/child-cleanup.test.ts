/** Children are killed with their parent, whatever their number, and forgotten when they end. */
import { type ChildProcess, spawnSync } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { killOnExit } from '../../src/platform/child-cleanup.ts';
import { isAlive } from '../support/processes.ts';

const MODULE = new URL('../../src/platform/child-cleanup.ts', import.meta.url).href;

it('uses one listener for all children', () => {
  const before = process.listenerCount('exit');
  for (let i = 0; i < 20; i++) {
    const child = new EventEmitter() as ChildProcess;
    child.kill = () => true;
    killOnExit(child);
    child.emit('exit', 0, null);
  }
  expect(process.listenerCount('exit')).toBe(before);
});

it('kills the remaining ones, and no others', async () => {
  const program = `
    import { spawn } from 'node:child_process';
    import { killOnExit } from '${MODULE}';
    const ended = spawn('true');
    killOnExit(ended);
    ended.on('exit', () => {
      ended.kill = () => console.log('killed twice');
      const left = spawn('sleep', ['60'], { stdio: 'ignore' });
      killOnExit(left);
      console.log(left.pid);
      process.exit();
    });`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
  expect(stdout).toMatch(/^\d+\n$/);
  await expect.poll(() => isAlive(Number(stdout))).toBe(false);
});
