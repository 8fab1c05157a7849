/** An index that is written to, truncated or damaged while it is served: no wrong response, and health reports it. */
import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { type IndexScan, openScan } from '../../src/index/read-all.ts';
import { type EntryInput, writeIndex } from '../support/index-file.ts';
import { type Answer, read, startTestServer, type TestServer } from '../support/server.ts';

const COUNT = 400;
const entriesOf = (language: string): EntryInput[] =>
  Array.from({ length: COUNT }, (_, i) => ({ domain: `name${i}.com`, language, open_page_rank: (i % 100) / 10 }));

let server: TestServer;
const served = (): string => join(server.paths.indexDir, 'generations/1/index.pgx');
const dir = mkdtempSync(join(tmpdir(), 'pagegate-damaged-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const policyFile = join(dir, 'policy.json');
const start = async (workers?: number): Promise<void> => {
  writeFileSync(policyFile, '{"format":"pagegate-policy/1"}');
  server = await startTestServer({
    entries: entriesOf('de'),
    config: { server: { poll_seconds: 0.2 }, policy: { file: policyFile } },
    ...(workers === undefined ? {} : { workers }),
  });
  chmodSync(served(), 0o644);
  // The reload also notices a change of the mode.
  await server.server.reload();
  expect((await ready()).status).toBe(200);
};
afterEach(() => server.stop());

const ready = async (): Promise<Answer> => read(await fetch(`${server.adminUrl}/readyz`));
const answer = (i: number): Promise<Answer> => server.check(`?domain=name${i}.com`);
function sections(): IndexScan['sections'] {
  const scan = openScan(served());
  scan.close();
  return scan.sections;
}
/** Overwrites bytes of the served file in place. */
function overwrite(bytes: Uint8Array, offset = 0): void {
  const descriptor = openSync(served(), 'r+');
  writeSync(descriptor, bytes, 0, bytes.length, offset);
  closeSync(descriptor);
}
/** Bytes of an index with the same records in another language, of the same size as the served one. */
function otherIndex(): Buffer {
  const path = join(server.paths.indexDir, 'other.pgx');
  writeIndex(path, entriesOf('fr'), { generation: 2, dataset: 'test', revision: 7 });
  return readFileSync(path);
}
const events = (event: string): Record<string, unknown>[] =>
  server.log.map((line) => JSON.parse(line) as Record<string, unknown>).filter((line) => line['event'] === event);

describe('an index that is overwritten in place', () => {
  it('is no longer served if half of it comes from another one, and health says why', async () => {
    await start();
    const other = otherIndex();
    const { payload } = sections();
    overwrite(other.subarray(0, payload.offset + payload.size / 2));
    // Until the server notices, no response mixes both.
    for (let i = 0; i < COUNT; i += 1) {
      const { status, body } = await answer(i);
      if (status === 200) expect([body.found, body.language]).toEqual([true, 'de']);
      else expect(status).toBe(503);
    }
    await expect.poll(async () => (await ready()).status).toBe(503);
    expect((await ready()).text).toMatch(
      /worker 0 serves no index: .*index\.pgx: (its header|its size|it was written)/,
    );
    expect(await answer(0)).toMatchObject({ status: 503, body: { error: 'no_index' } });
    expect(events('index_dropped')).toHaveLength(1);
    expect(events('index_dropped')[0]).toMatchObject({ level: 'error', code: 'index_changed' });
    // The next generation is served as usual.
    server.publish(2, entriesOf('it'));
    await expect.poll(async () => (await answer(0)).body.language).toBe('it');
    expect((await ready()).status).toBe(200);
  });

  it('is refused at the damaged record if one byte changed, even with its old times restored', async () => {
    await start();
    const { atime, mtime } = statSync(served());
    overwrite(Buffer.from([0xff, 0xff, 0xff]), statSync(served()).size / 2);
    utimesSync(served(), atime, mtime);
    for (let i = 0; i < COUNT; i += 1) {
      const { status, body } = await answer(i);
      if (status === 200) expect([body.found, body.language]).toEqual([true, 'de']);
    }
  });

  it('is served as the other one if all of it was replaced', async () => {
    await start(2);
    overwrite(otherIndex());
    truncateSync(served(), otherIndexSize());
    await expect.poll(async () => (await answer(0)).body.language).toBe('fr');
    await expect.poll(async () => (await ready()).status).toBe(200);
  });
});

const otherIndexSize = (): number => statSync(join(server.paths.indexDir, 'other.pgx')).size;

describe('an index that is truncated', () => {
  it('is reported by health, whether or not a lookup reached the end first', async () => {
    await start(2);
    truncateSync(served(), 4096);
    // A read beyond the end kills a worker; its replacement answers 503.
    await Promise.allSettled(Array.from({ length: 20 }, (_, i) => answer(i)));
    await expect
      .poll(async () => (await ready()).text)
      .toMatch(/serves no index: .*(its size was \d+ bytes and is 4096|written to while it was served)/);
    await expect.poll(() => server.server.pids.length).toBe(2);
    expect(await answer(0)).toMatchObject({ status: 503, body: { error: 'no_index' } });
    server.publish(2, entriesOf('it'));
    await expect.poll(async () => (await answer(0)).body.language).toBe('it');
    await expect.poll(async () => (await ready()).status).toBe(200);
  });
});

describe('an index with zeros in its records', () => {
  it('makes the server not ready at the first lookup that reads them, and does not flood the log', async () => {
    await start();
    const { payload } = sections();
    const { atime, mtime } = statSync(served());
    overwrite(new Uint8Array(payload.size), payload.offset);
    // As if the disk had done it.
    utimesSync(served(), atime, mtime);
    for (let i = 0; i < COUNT; i += 1)
      expect(await answer(i)).toMatchObject({ status: 503, body: { error: 'record_corrupt' } });
    const { status, text } = await ready();
    expect(status).toBe(503);
    expect(text).toMatch(/worker 0: .* The record at payload offset \d+/);
    expect(events('request_failed').length).toBeLessThan(60);
    // A new policy does not bring the index back.
    writeFileSync(policyFile, '{"format":"pagegate-policy/1","profile":"strict"}');
    await expect.poll(() => events('policy_in_use')).toHaveLength(1);
    expect((await ready()).status).toBe(503);
    server.publish(2, entriesOf('it'));
    await expect.poll(async () => (await answer(0)).body.language).toBe('it');
    expect((await ready()).status).toBe(200);
  });
});
