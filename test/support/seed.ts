/** Property tests draw the same cases in every run, so that a failure can be repeated. `PAGEGATE_SEED=N` draws others. */
import fc from 'fast-check';

export const SEED = Number(process.env['PAGEGATE_SEED'] ?? 3);

fc.configureGlobal({ seed: SEED });
