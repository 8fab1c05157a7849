import { readFileSync } from 'node:fs';

/** The version in package.json, the only place that states it. */
export const PROGRAM_VERSION: string = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
).version;
