import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { statePaths } from '../../src/config/paths.ts';
import { fileIdentity } from '../../src/server/data-loader.ts';
import { LastKnownGood } from '../../src/server/swap/last-known-good.ts';

const dir = mkdtempSync(join(tmpdir(), 'pagegate-known-good-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

it('an index is kept only if it is the file that a worker has accepted', () => {
  const config = loadConfig({ env: {}, cwd: dir });
  const { indexFile } = statePaths(config);
  mkdirSync(dirname(indexFile), { recursive: true });
  writeFileSync(indexFile, 'accepted');
  const identity = fileIdentity(indexFile);
  rmSync(indexFile);
  writeFileSync(indexFile, 'what came after it');
  const knownGood = new LastKnownGood(config, undefined);
  try {
    knownGood.retain({ part: 'index', identity });
    expect([knownGood.indexFd, knownGood.parts]).toEqual([undefined, {}]);
    const next = fileIdentity(indexFile);
    knownGood.retain({ part: 'index', identity: next });
    expect([knownGood.indexFd, knownGood.parts]).toEqual([expect.any(Number), { index: next }]);
    const kept = knownGood.indexFd;
    // A report about a file that was replaced since does not remove the kept one.
    knownGood.retain({ part: 'index', identity });
    expect([knownGood.indexFd, knownGood.parts]).toEqual([kept, { index: next }]);
  } finally {
    knownGood.close();
  }
});
