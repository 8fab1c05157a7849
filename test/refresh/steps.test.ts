/** The steps of a refresh and a rollback: the verifier, and the notice to a running server. */
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { statePaths } from '../../src/config/paths.ts';
import { openScan } from '../../src/index/read-all.ts';
import { createRefreshSteps } from '../../src/refresh-steps/steps.ts';
import { listenControl } from '../../src/server/control-socket.ts';
import { writeIndex } from '../support/index-file.ts';

const dir = mkdtempSync(join(tmpdir(), 'pagegate-steps-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const config = loadConfig({ env: {}, cwd: dir });
const steps = await createRefreshSteps(config, { update: () => {} }, 1);

it('a verification finds damage that opening the index does not', async () => {
  const file = join(dir, 'index.pgx');
  writeIndex(file, [{ domain: 'example.com', language: 'de' }]);
  expect(await steps.verify(file, undefined)).toMatchObject({ recordCount: 1 });
  const scan = openScan(file);
  const { payload } = scan.sections;
  scan.close();
  chmodSync(file, 0o644);
  const descriptor = openSync(file, 'r+');
  writeSync(descriptor, new Uint8Array(2), 0, 2, payload.offset);
  closeSync(descriptor);
  expect(steps.identify(file)).toMatchObject({ recordCount: 1 });
  await expect(steps.verify(file, undefined)).rejects.toMatchObject({ code: 'generation_damaged' });
});

describe('the notice to the server', () => {
  const { socket } = statePaths(config);
  const answer = (index: string, missing: readonly object[] = []) => ({
    workers: [{ worker: 0, index: 'generation 2' }, ...(index === '' ? [] : [{ worker: 1, index }])],
    missing,
  });

  it.each([
    ['which has taken it', answer('generation 2'), { server: 'told' }],
    [
      'of which a worker refused it',
      answer('refused: it is damaged'),
      { server: 'failed', reason: 'refused: it is damaged' },
    ],
    [
      'of which a worker gave no answer',
      answer('', [{ worker: 1, reason: 'is being started' }]),
      { server: 'failed', reason: 'worker 1 is being started; its replacement will' },
    ],
  ] as const)('returns the outcome: one %s', async (_what, reply, notice) => {
    mkdirSync(dirname(socket), { recursive: true });
    const command = async (): Promise<unknown> => reply;
    const server = await listenControl(socket, { reload: command, restart: command, drain: command, status: command });
    try {
      expect(await steps.notifyServer(2)).toEqual(notice);
    } finally {
      server.close();
    }
  });

  it('distinguishes a server that fails from one that does not run', async () => {
    expect(await steps.notifyServer(2)).toEqual({ server: 'not_running' });
    const command = async (): Promise<unknown> => Promise.reject(new Error('no memory'));
    const server = await listenControl(socket, { reload: command, restart: command, drain: command, status: command });
    try {
      expect(await steps.notifyServer(2)).toMatchObject({ server: 'failed' });
    } finally {
      server.close();
    }
  });
});
