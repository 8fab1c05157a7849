/** Runs what needs Debian's Squid and nginx; `make test-integrations` installs them, `make test` never comes here. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/integrations/*.integration.ts'],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 180_000,
  },
});
