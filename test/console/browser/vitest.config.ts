/** Runs the console in Debian's Chromium. `make test-console` installs it; `make test` does not run these tests. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/console/browser/*.browser.ts'],
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
