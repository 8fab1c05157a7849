import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { withStoreLock } from '../../src/refresh/lock.ts';

let store: string;
beforeEach(() => {
  store = mkdtempSync(join(tmpdir(), 'pagegate-lock-'));
});
afterEach(() => rmSync(store, { recursive: true, force: true }));

const LOCK = new URL('../../src/refresh/lock.ts', import.meta.url).href;
const HOLDER = `
  import { withStoreLock } from ${JSON.stringify(LOCK)};
  await withStoreLock(process.argv[1], () => new Promise(() => { console.log('held'); setInterval(() => {}, 1000); }));
`;

test('a second holder in the same process is refused, and the lock is free afterwards', async () => {
  const inner = withStoreLock(store, () => withStoreLock(store, async () => 'never'));
  await expect(inner).rejects.toMatchObject({ code: 'refresh_busy' });
  expect(await withStoreLock(store, async () => 'done')).toBe('done');
});

test('a failing task releases the lock', async () => {
  await expect(withStoreLock(store, () => Promise.reject(new Error('task')))).rejects.toThrow('task');
  expect(await withStoreLock(store, async () => 'done')).toBe('done');
});

test('another process is refused by name; killing it with SIGKILL frees the lock', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', HOLDER, store], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  await expect(withStoreLock(store, async () => 'never')).rejects.toMatchObject({
    code: 'refresh_busy',
    details: { holder: String(child.pid) },
  });
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(await withStoreLock(store, async () => 'done')).toBe('done');
});
