/** Drives the console in Debian's Chromium; `make test-console` installs it, `make test` never comes here. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/console/browser/*.browser.ts'],
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
