/** The health page when the primary process hangs. */
import { expect, it } from 'vitest';
import type { ConsoleContext } from '../../src/console/context.ts';
import { DoctorReport } from '../../src/console/pages/doctor-report.ts';
import { HEALTH_ROUTES } from '../../src/console/pages/health.ts';
import type { Page, SignedRoute, SignedVisit } from '../../src/console/web/route.ts';

it('waits for all answers of the primary in parallel, and reports that there are none', async () => {
  const asked: string[] = [];
  const { promise, reject } = Promise.withResolvers<never>();
  const app = {
    ask: (question: string) => {
      asked.push(question);
      return promise;
    },
    doctor: new DoctorReport(),
    jobs: { doctor: async () => [] },
  } as unknown as ConsoleContext;
  const page = (HEALTH_ROUTES[0] as SignedRoute).handle({ app } as SignedVisit);
  expect(asked.toSorted()).toEqual(['metrics', 'status', 'warnings']);
  reject(new Error('The server does not answer.'));
  const text = ((await page) as Page).body.toString();
  expect(text.match(/The primary process does not answer\./g)).toHaveLength(3);
});
