/**
 * Runs tests that need Debian packages such as Squid, nginx and Chromium. `make test-integrations` installs them; `make test` does not run these
 * tests.
 */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // The enforcement points that need no extra program are tested here again, next to the others.
    include: ['test/integrations/*.integration.ts', 'test/guard/{hook,mcp,package}.test.ts'],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 180_000,
  },
});
