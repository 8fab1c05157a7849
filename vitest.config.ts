import { defineConfig } from 'vitest/config';

/** Only what hangs is to run into these: a busy machine may be twenty times slower than an idle one. */
const TIMEOUT_MS = 600_000;

// The programs that tests start are compiled once, not at every start.
process.env['NODE_COMPILE_CACHE'] ??= new URL('node_modules/.cache/pagegate', import.meta.url).pathname;

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/integrations/**', 'node_modules/**'],
    setupFiles: ['./test/support/seed.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: TIMEOUT_MS,
    hookTimeout: TIMEOUT_MS,
    expect: { poll: { timeout: 120_000 } },
    reporters: ['default', './test/plain-summary.ts'],
  },
});
