/** Runs what needs a PostgreSQL server; `make test` runs the same rules with PostgreSQL in its process. */
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
