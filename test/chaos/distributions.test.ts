/** The broken versions with which restarts are tested: each is made by a change of the current program. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { DISTRIBUTION_FAULTS } from '../../tools/chaos/distributions.ts';

it.each(Object.entries(DISTRIBUTION_FAULTS))(
  'the text that is changed for a version that %s exists in the program',
  (_name, { file, from }) => {
    expect(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8').split(from).length).toBeGreaterThan(1);
  },
);
