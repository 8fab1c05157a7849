/** Property tests use the same cases in every run, so that failures can be repeated. `PAGEGATE_SEED=N` selects others. */
import fc from 'fast-check';

export const SEED = Number(process.env['PAGEGATE_SEED'] ?? 3);

fc.configureGlobal({ seed: SEED });
