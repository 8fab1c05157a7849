/** The broken versions that a restart is tried with: each is made of the program as it is now. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { DISTRIBUTION_FAULTS } from '../../tools/chaos/distributions.ts';

it.each(Object.entries(DISTRIBUTION_FAULTS))(
  'a version that %s is made from a place that the program has',
  (_name, { file, from }) => {
    expect(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8').split(from).length).toBeGreaterThan(1);
  },
);
