/** A vitest reporter that ends the run with one plain line, which any tool can parse: `N passed, N failed`. */
import type { Reporter, TestModule } from 'vitest/node';

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** Counts every test; a file that could not even be collected counts as one failure. */
function count(modules: readonly TestModule[]): Counts {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  for (const module of modules) {
    if (module.errors().length > 0) counts.failed += 1;
    // A hook that failed skips its tests; the run must not look clean then.
    for (const suite of module.children.allSuites()) if (suite.errors().length > 0) counts.failed += 1;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'passed') counts.passed += 1;
      else if (state === 'failed') counts.failed += 1;
      else counts.skipped += 1;
    }
  }
  return counts;
}

export default class PlainSummary implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const { passed, failed, skipped } = count(modules);
    const rest = skipped > 0 ? `, ${skipped} skipped` : '';
    // The default reporter still prints; the line must come last.
    process.on('exit', () => {
      process.stdout.write(`${passed} passed, ${failed + unhandledErrors.length} failed${rest}\n`);
    });
  }
}
