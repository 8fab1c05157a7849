/** How health judges the reports of the workers and the ledger writer: which of them make the server not ready, and which are warnings. */
import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { adminUrl, type ObservedServer, readiness } from '../../src/server/admin/health.ts';
import type { MissingWorker } from '../../src/server/process/supervisor.ts';
import type { WorkerStatus } from '../../src/server/process/worker-status.ts';

type Answer = WorkerStatus & { readonly worker: number };
type Readiness = Awaited<ReturnType<typeof readiness>>;
const HEALTHY = { ready: true, reason: '' };
const FAILED = { ready: false, reason: 'the ledger cannot be written' };

/** The parts of a worker's status that health reads. */
function worker(number: number, ledger: object = {}, more: Partial<Answer> = {}): Answer {
  return {
    worker: number,
    draining: false,
    generation: 1,
    unicode_agrees: true,
    ledger: { ...HEALTHY, commit_ms: 1, ...ledger },
    license: { until: null, problem: null },
    withdrawn: null,
    decision_log: null,
    index_failure: null,
    problems: {},
    ...more,
  } as unknown as Answer;
}

const readinessOf = (
  answers: readonly Answer[],
  missing: readonly MissingWorker[] = [],
  health = HEALTHY,
  used = 0,
): Promise<Readiness> =>
  readiness({
    config: loadConfig({ env: {} }),
    supervisor: { ask: async () => ({ answers, missing }) },
    ledgerWriter: { health, nearLimits: [{ account: 'acme', used, limit: 100 }] },
    lastKnownGood: { parts: {} },
    watch: { freeBytes: {} },
  } as unknown as ObservedServer);

const READY: Readiness = { ready: true, reasons: [], warnings: [] };
const notReady = (reason: string): Readiness => ({ ready: false, reasons: [reason], warnings: [] });
const warned = (warning: string): Readiness => ({ ...READY, warnings: [warning] });
const missing = { worker: 1, pid: 7, listens: true, reason: 'has not answered for 4 s' };
const license = (until: string): Answer =>
  worker(0, {}, { license: { until, problem: null } as unknown as Answer['license'] });
const dayFromNow = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
const fleet = (stale_seconds: number): object => ({ fleet: { stale_seconds, learning: false, problem: 'refused' } });

it.each<[string, Promise<Readiness>, Readiness]>([
  ['nothing wrong', readinessOf([worker(0), worker(1)]), READY],
  ['no worker', readinessOf([]), notReady('no worker answers')],
  ['a ledger that fails', readinessOf([worker(0)], [], FAILED), notReady('the ledger cannot be written')],
  [
    'a ledger that fails for all, reported once',
    readinessOf([worker(0, FAILED), worker(1, FAILED)], [], FAILED),
    notReady('the ledger cannot be written'),
  ],
  [
    'a ledger that one worker alone cannot use',
    readinessOf([worker(0), worker(1, FAILED)]),
    notReady('worker 1: the ledger cannot be written'),
  ],
  [
    'a worker that hangs and still gets connections',
    readinessOf([worker(0)], [missing]),
    notReady('worker 1 (pid 7) has not answered for 4 s'),
  ],
  [
    'a worker that ended and has no replacement',
    readinessOf([worker(0)], [{ ...missing, listens: false }]),
    warned('worker 1 (pid 7) has not answered for 4 s'),
  ],
  ['a worker that stops', readinessOf([worker(0, {}, { draining: true })]), notReady('worker 0 is stopping')],
  [
    'a license that ends today',
    readinessOf([license(dayFromNow(0))]),
    warned(`the license ends with ${dayFromNow(0)}, in 0 days`),
  ],
  [
    'a license that ended yesterday',
    readinessOf([license(dayFromNow(-1))]),
    warned(`the license ended with ${dayFromNow(-1)}: no newer data is activated`),
  ],
  ['94 % of a quota', readinessOf([worker(0)], [], HEALTHY, 94), READY],
  ['95 % of a quota', readinessOf([worker(0)], [], HEALTHY, 95), warned('account acme has used 95 % of its quota')],
  ['a fleet heard ten seconds ago', readinessOf([worker(0, fleet(10))]), READY],
  [
    'a fleet not heard since',
    readinessOf([worker(0, fleet(11))]),
    warned("the fleet's database does not answer: refused"),
  ],
])('health of %s', async (_what, found, expected) => {
  expect(await found).toEqual(expected);
});

it.each([
  ['127.0.0.1', 'http://127.0.0.1:9090'],
  ['::1', 'http://[::1]:9090'],
])('the admin listener is reported with its URL: on %s at %s', (host, url) => {
  expect(adminUrl(loadConfig({ env: {}, flags: { admin: { host } } }), 9090)).toBe(url);
});
