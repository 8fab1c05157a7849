/** The machine that the numbers were measured on. */
import { cpus, loadavg, release, totalmem } from 'node:os';

export interface Hardware {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly node: string;
  /** Load average when the bench ended. Above the number of cores, other programs were running. */
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
