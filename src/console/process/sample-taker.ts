/** Takes over the minutes that the primary has counted. */
import { PagegateError } from '../../errors.ts';
import { failureFields, type Log } from '../../server/log.ts';
import type { ConsoleContext } from '../context.ts';
import type { Sample } from '../store/time-series.ts';

/**
 * A task that asks for them once; it never rejects. That the primary does not answer is logged once, until it does.
 *
 * @param keep gets those that were not kept yet
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
      // By their order: a clock may have been set back between two.
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
