/** Runs the tests that need a PostgreSQL server. `make test` runs the same rules with PostgreSQL inside the test process. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/fleet/*.integration.ts'],
    fileParallelism: false,
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
