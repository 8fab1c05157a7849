/** Tests the shipped unit under a real systemd. `make test-systemd` installs what it needs. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/systemd/*.integration.ts'],
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 120_000, interval: 200 } },
    reporters: ['default', './test/plain-summary.ts'],
  },
});
