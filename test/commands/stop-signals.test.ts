/** Stop signals: wrappers send them twice. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { stopAtFirst } from '../../src/commands/shared/stop-signals.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('the first signal requests a stop, a copy right after it does nothing, a later one ends the process at once', () => {
  const exit = vi.spyOn(process, 'exit').mockReturnValue(undefined as never);
  let stops = 0;
  const onSignal = stopAtFirst(() => stops++);
  onSignal();
  onSignal();
  vi.advanceTimersByTime(400);
  onSignal();
  expect([stops, exit.mock.calls]).toEqual([1, []]);
  vi.advanceTimersByTime(200);
  onSignal();
  expect([stops, exit.mock.calls]).toEqual([1, [[130]]]);
});
