import { closeSync, fstatSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PartSource } from '../../src/drop/unpack/part-source.ts';
import { withTempDirectory } from '../support/tiny-index.ts';

it('a part that is closed twice closes nothing that was opened in between, and has no more bytes', () => {
  withTempDirectory((directory) => {
    const path = join(directory, 'a.ndjson');
    writeFileSync(path, '{}\n');
    const source = new PartSource(path);
    source.close();
    // The system gives the lowest number that is free: that of the part.
    const other = openSync(path, 'r');
    source.close();
    expect(source.next()).toBeUndefined();
    expect(fstatSync(other).size).toBe(3);
    closeSync(other);
    rmSync(path);
  });
});
