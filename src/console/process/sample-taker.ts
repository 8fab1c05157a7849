/** Copies the samples of the primary into the console's time series. */
import { PagegateError } from '../../errors.ts';
import { failureFields, type Log } from '../../server/log.ts';
import type { ConsoleContext } from '../context.ts';
import type { Sample } from '../store/time-series.ts';

/**
 * Returns a task that asks for the samples once; it never rejects. If the primary does not answer, this is logged once until it does.
 *
 * @param keep receives the samples that are new since the last call
 */
export function createSampleTaker(
  keep: (samples: readonly Sample[]) => void,
  ask: ConsoleContext['ask'],
  log: Log,
): () => Promise<void> {
  let taken: number | undefined;
  let isHung = false;
  return async () => {
    try {
      const samples = await ask('samples');
      isHung = false;
      // By order and not by time: the clock may have been set back between two samples.
      keep(samples.slice(samples.findLastIndex(({ at }) => at === taken) + 1));
      taken = samples.at(-1)?.at;
    } catch (error) {
      const isNoAnswer = error instanceof PagegateError && error.code === 'primary_hung';
      if (!isNoAnswer) log('console_samples_failed', failureFields(error));
      else if (!isHung) log('primary_hung', failureFields(error));
      isHung ||= isNoAnswer;
    }
  };
}
