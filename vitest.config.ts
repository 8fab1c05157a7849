import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Only what hangs is to run into these: a busy machine may be twenty times slower than an idle one. */
const TIMEOUT_MS = 600_000;
/**
 * Tests of these folders wait for processes: begun first, they fill the time of those that compute. Where no earlier run has told how long
 * each file takes, vitest begins with the largest ones, and the longest are small: begun last, they would run alone.
 */
const WAITING = ['fleet', 'chaos', 'refresh', 'guard', 'server', 'end-to-end', 'corruption', 'ledger'];

class WaitingFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = WAITING.findIndex((folder) => moduleId.includes(`/test/${folder}/`));
      return found < 0 ? WAITING.length : found;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

// The programs that tests start are compiled once, not at every start.
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('node_modules/.cache/pagegate', import.meta.url));

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/integrations/**', 'node_modules/**'],
    setupFiles: ['./test/support/seed.ts'],
    pool: 'forks',
    // Many tests wait for processes rather than compute.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: WaitingFirst },
    testTimeout: TIMEOUT_MS,
    hookTimeout: TIMEOUT_MS,
    expect: { poll: { timeout: 120_000 } },
    reporters: ['default', './test/plain-summary.ts'],
  },
});
