/** The console's process dies or hangs: lookups are not affected, and it is restarted. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { PrimaryLink } from '../../src/console/process/primary-link.ts';
import { createSampleTaker } from '../../src/console/process/sample-taker.ts';
import { ConsoleProcess, checkConsole, WarningLog } from '../../src/console/start.ts';
import { startTestConsole, type TestConsole } from '../support/console.ts';
import { ENTRIES } from './entries.ts';

let world: TestConsole;

beforeAll(async () => {
  world = await startTestConsole({ entries: ENTRIES });
});

afterAll(() => world.stop());

/** Sends lookups continuously while a task runs. Returns the statuses of all responses. */
async function asking(task: () => Promise<void>): Promise<Set<number>> {
  const statuses = new Set<number>();
  let isOver = false;
  const requests = (async () => {
    while (!isOver) statuses.add((await world.server.check('?url=shop.example.com')).status);
  })();
  await task();
  isOver = true;
  await requests;
  return statuses;
}

/** The address where the console listens now: with port 0 each start has another one. */
const address = (): string => new URL('/sign-in', world.users.link('watcher')).href;

const answers = (): Promise<number> =>
  fetch(address()).then(
    ({ status }) => status,
    () => 0,
  );

describe('a console', () => {
  it('is restarted after SIGKILL, without any effect on lookups', async () => {
    world.users.add('watcher', 'viewer');
    const before = world.process.pid!;
    const statuses = await asking(async () => {
      process.kill(before, 'SIGKILL');
      await expect.poll(() => [world.process.pid === before, world.process.pid !== undefined]).toEqual([false, true]);
      await expect.poll(answers).toBe(200);
    });
    expect([...statuses]).toEqual([200]);
  });

  it('is killed and restarted if it hangs, without any effect on lookups', async () => {
    const { log, warnings } = new WarningLog(() => {});
    const { config, server } = world.server;
    const other = new ConsoleProcess({ config, server, log, warnings, timeoutMs: 3_000 });
    await other.listening;
    const before = other.pid!;
    const statuses = await asking(async () => {
      process.kill(before, 'SIGSTOP');
      await expect.poll(() => other.pid !== undefined && other.pid !== before).toBe(true);
    });
    expect([...statuses]).toEqual([200]);
    expect(warnings.map(({ event }) => event)).toEqual(expect.arrayContaining(['console_hung', 'console_died']));
    await other.stop();
  });

  it('is retried if it cannot listen, and the reason is logged once', async () => {
    const lines: [string, unknown][] = [];
    const { config, server } = world.server;
    const occupied = { ...config, console: { ...config.console, port: server.port } };
    const log = (event: string, fields: unknown): void => void lines.push([event, fields]);
    const other = new ConsoleProcess({ config: occupied, server, log, warnings: [] });
    await expect.poll(() => lines.length).toBeGreaterThan(3);
    await other.stop();
    const failed = ['console_failed', expect.objectContaining({ code: 'listen_failed' })];
    const died = ['console_died', expect.objectContaining({ how: 'code 1' })];
    expect(lines.slice(0, 4)).toEqual([failed, died, failed, died]);
  });

  it('needs TLS beyond loopback', () => {
    const config = loadConfig({ env: {}, flags: { console: { enabled: true, host: '0.0.0.0' } } });
    expect(() => checkConsole(config)).toThrow(/console\.host is 0\.0\.0\.0/);
    expect(() => checkConsole(loadConfig({ env: {}, flags: { console: { host: '0.0.0.0' } } }))).not.toThrow();
  });
});

describe('a primary that does not answer', () => {
  it('is reported with its own code, once until it answers', async () => {
    vi.useFakeTimers();
    try {
      const asked: number[] = [];
      const lines: [string, unknown][] = [];
      const link = new PrimaryLink((message) => void (message.type === 'ask' && asked.push(message.id)));
      const log = (event: string, fields: unknown): void => void lines.push([event, fields]);
      const take = createSampleTaker(
        () => {},
        (question) => link.ask(question),
        log,
      );
      const hung = ['primary_hung', { code: 'primary_hung', message: expect.stringContaining('No answer for 5 s.') }];
      for (let i = 0; i < 3; i += 1) await Promise.all([take(), vi.advanceTimersByTimeAsync(5_000)]);
      expect(lines).toEqual([hung]);
      const answered = take();
      link.onAnswer(asked.at(-1)!, [], undefined);
      await answered;
      await vi.advanceTimersByTimeAsync(2_000);
      await Promise.all([take(), vi.advanceTimersByTimeAsync(5_000)]);
      expect(lines).toEqual([hung, hung]);
    } finally {
      vi.useRealTimers();
    }
  });
});
