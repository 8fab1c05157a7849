import { hash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { CdbWriter, openCdb } from '../../bench/cdb.ts';

const dir = mkdtempSync(join(tmpdir(), 'pagegate-cdb-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

it('a constant database returns what was written, and nothing for other keys', () => {
  const path = join(dir, 'many.cdb');
  const writer = new CdbWriter(path);
  for (let i = 0; i < 20_000; i++) writer.add(`name-${i}.example`, Buffer.from(`value ${i}`));
  writer.close();
  const store = openCdb(path);
  for (let i = 0; i < 20_000; i++) {
    expect(Buffer.from(store.get(`name-${i}.example`) ?? []).toString()).toBe(`value ${i}`);
    expect(store.get(`other-${i}.example`)).toBeUndefined();
  }
  store.close();
});

it('a constant database of one record equals that of tinycdb 0.78, byte for byte', () => {
  const path = join(dir, 'one.cdb');
  const writer = new CdbWriter(path);
  writer.add('one', Buffer.from('Hello'));
  writer.close();
  const sha256 = hash('sha256', readFileSync(path));
  expect(sha256).toBe('2b1864a59451a2e4588037e22fecee775d2a8d1b339e3cd2888907b3a3c3d985');
});
