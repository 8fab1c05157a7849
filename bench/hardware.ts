/** What the numbers were measured on. */
import { cpus, loadavg, release, totalmem } from 'node:os';

export interface Hardware {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly node: string;
  /** Load of the machine when the bench ended: above the number of cores, others were at work. */
  readonly load: number;
}

export function hardware(): Hardware {
  const all = cpus();
  return {
    cpu: all[0]?.model.trim() ?? 'unknown',
    cores: all.length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    load: Number(loadavg()[0]?.toFixed(1)),
  };
}
