/** Rounds of a cell of the HTTP bench. The subjects take turns, so that a slow minute of the machine affects all of them. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { leaveNothing } from '../../tools/chaos/leftovers.ts';
import type { LoadGenerator } from '../forked-servers.ts';
import type { LoadLength, LoadTarget } from '../load-generator.ts';
import type { ComparedServer, TlsFiles } from './compared-servers.ts';
import { scheduledCpuUs } from './cpu.ts';
import { type LoadSample, sampleOf } from './rows.ts';

/** A subject together with its load generator. */
export interface Contender {
  readonly label: string;
  measure(): Promise<LoadSample>;
}

let folder: string | undefined;

/** Writes request targets into a file for the load generators. The file is removed at the end of the run. */
export function writeTargets(name: string, targets: readonly string[]): string {
  if (folder === undefined) {
    folder = mkdtempSync(join(tmpdir(), 'pagegate-bench-requests-'));
    leaveNothing(folder);
  }
  const file = join(folder, `${name.replaceAll(/\W+/g, '-')}.txt`);
  writeFileSync(file, `${targets.join('\n')}\n`);
  return file;
}

export function targetOf({ port, keys }: ComparedServer, requestsFile: string, tls: TlsFiles | undefined): LoadTarget {
  return { port, keys, requestsFile, ...(tls === undefined ? {} : { certificate: tls.certificate }) };
}

/** Measures a subject with our own load generator. */
export async function measure(
  subject: ComparedServer,
  load: LoadGenerator,
  target: LoadTarget,
  connections: number,
  length: LoadLength,
): Promise<LoadSample> {
  const pids = subject.pids();
  let beforeUs = 0;
  const report = await load.run(target, connections, length, () => {
    beforeUs = scheduledCpuUs(pids);
  });
  return sampleOf(report, scheduledCpuUs(pids) - beforeUs);
}

/** Measures all contenders in turn. Returns the samples of each, by round. Each round begins with a different contender. */
export async function takeTurns(contenders: readonly Contender[], rounds: number): Promise<LoadSample[][]> {
  const samples: LoadSample[][] = contenders.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < contenders.length; turn++) {
      const at = (round + turn) % contenders.length;
      samples[at]!.push(await contenders[at]!.measure());
    }
  }
  return samples;
}
