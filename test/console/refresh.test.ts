/** A refresh from the console: the folder of drops, one refresh at a time, its progress, with the code of the command line. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readAudit } from '../../src/ledger/audit.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { type Bench, createBench } from '../refresh/support.ts';
import { formFields, startTestConsole, type TestConsole, type Visitor } from '../support/console.ts';
import { ENTRIES } from './entries.ts';

let drops: Bench;
let console: TestConsole;
let operator: Visitor;

beforeAll(async () => {
  drops = createBench();
  const vendor = drops.trusted[0]!.key.export({ type: 'spki', format: 'pem' }).toString();
  console = await startTestConsole({
    entries: ENTRIES,
    config: { refresh: { drop: join(drops.root, 'delivered'), trusted_keys: { vendor } } },
  });
  operator = await console.signIn('operator');
});

afterAll(async () => {
  await console?.stop();
  drops?.remove();
});

const deliver = (revision: number): string => drops.drop('delivered', { revision });
const served = async (): Promise<string> =>
  (await console.server.check('?url=example.com')).headers.get('x-pagegate-data')!.split('.')[0]!;

/** The first line of the list of jobs: its state, its name, and its progress or outcome. */
async function latest(visitor = operator): Promise<readonly string[]> {
  const { text } = await visitor.get('generations');
  const rows = /id="work".*?<tbody>(.*?)<\/tbody>/s.exec(text)?.[1] ?? '';
  const cells = [...rows.matchAll(/<td>(.*?)<\/td>/gs)].map(([, cell]) => cell!.replaceAll(/<[^>]+>/g, '').trim());
  return cells.slice(0, 4);
}

const ended = async (): Promise<readonly string[]> => {
  await expect.poll(async () => (await latest())[0]).toMatch(/done|failed/);
  return latest();
};

/** Loads the page and presses its button. Returns the status and the message of the next page. */
async function start(visitor = operator): Promise<string> {
  const page = await visitor.get('generations/refresh');
  const reply = await visitor.submit('generations/refresh', formFields(page.text));
  expect(reply.status).toBe(303);
  return (await visitor.get('generations')).text;
}

describe('a refresh in the console', () => {
  it('is not offered if the folder has no drop, or none that would be accepted', async () => {
    const none = await operator.get('generations/refresh');
    expect(none.text).toContain('no drop that a refresh would accept');
    drops.drop('delivered', { revision: 2, key: null });
    const unsigned = await operator.get('generations/refresh');
    expect(unsigned.text).toContain('manifest.json.sig');
    for (const { text } of [none, unsigned]) expect(text).not.toContain('name="manifest"');
    expect((await operator.submit('generations/refresh', { manifest: 'f'.repeat(64) })).status).toBe(303);
    expect((await operator.get('generations')).text).toContain('manifest.json.sig');
    expect(await latest()).toEqual([]);
    rmSync(join(drops.root, 'delivered'), { recursive: true });
  });

  it('shows what would be served, builds it, serves it, and is in the audit with the user who started it', async () => {
    deliver(2);
    const page = await operator.get('generations/refresh');
    expect(page.text).toMatch(/Revision<\/dt><dd>2<.*by vendor.*2 in 1 part, .*Generation 1 is served now/s);
    expect(await start()).toContain('test revision 2 is being built');
    // The user who pressed the button may have left; others see the progress.
    const viewer = await console.signIn('viewer');
    expect((await latest(viewer))[1]).toBe('Refresh to test revision 2');
    expect(await ended()).toEqual([
      'done',
      'Refresh to test revision 2',
      expect.stringMatching(/built, verified and served as generation 2: 2 records.*The running server has taken it/),
      'operator-1',
    ]);
    expect(await served()).toBe('2');
    const { ledgerFile: file, ledgerKeyFile: keyFile } = console.server.paths;
    const ledger = await openLedger({ file, keyFile });
    const [entry] = await readAudit(ledger, undefined, 1);
    await ledger.close();
    expect(entry).toMatchObject({ actor: 'operator-1', action: 'generation.refresh' });
    expect((await operator.get('generations/refresh')).text).toContain('There is nothing to do.');
  });

  it('starts only with the drop that was shown', async () => {
    deliver(3);
    const { text } = await operator.get('generations/refresh');
    deliver(4);
    await operator.submit('generations/refresh', formFields(text));
    await expect
      .poll(async () => (await operator.get('generations')).text)
      .toContain('Another drop was delivered since');
    expect(await served()).toBe('2');
  });

  it('runs once at a time, can be stopped, and then leaves the served data unchanged', async () => {
    deliver(5);
    expect(await start()).toContain('is being built');
    expect(await start()).toContain('The console is at work');
    await operator.submit('generations/1/verify');
    const page = await operator.get('generations');
    expect(page.text).toContain('The console is at work');
    const stop = formFields(page.text);
    // As from an old page that shows a job that has ended since.
    await operator.submit('generations/stop', { ...stop, job: String(Number(stop['job']) - 1) });
    expect((await operator.get('generations')).text).toContain('This work has already ended.');
    expect((await latest())[0]).toBe('running');
    await operator.submit('generations/stop', stop);
    const [state, what, text] = await ended();
    expect([state, what]).toEqual(['failed', 'Refresh to test revision 5']);
    expect(text).toBe('operator-1 has stopped it.');
    expect(await served()).toBe('2');
    await operator.submit('generations/stop', { job: stop['job']! });
    expect((await operator.get('generations')).text).toContain('This work has already ended.');
  });

  it('accepts no drop that was rolled back here', async () => {
    await start();
    expect((await ended())[0]).toBe('done');
    const confirm = await operator.get('generations/2/rollback');
    await operator.submit('generations/2/rollback', formFields(confirm.text));
    expect((await ended()).slice(0, 2)).toEqual(['done', 'Serve generation 2']);
    const { text } = await operator.get('generations/refresh');
    expect(text).toContain('It was rolled back here, as generation 3');
    expect(text).not.toContain('name="manifest"');
  });
});
