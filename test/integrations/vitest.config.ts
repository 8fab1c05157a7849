/** Runs what needs programs of Debian's, such as Squid, nginx and Chromium; `make test-integrations` installs them, `make test` never comes here. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // The points that need no extra program are tried here once more, beside those that do.
    include: ['test/integrations/*.integration.ts', 'test/guard/{hook,mcp,package}.test.ts'],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 180_000,
  },
});
