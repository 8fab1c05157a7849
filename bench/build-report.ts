/** Parses the fields of `pagegate build --json` that the build bench uses, in the formats of this checkout and of earlier ones. */

/** The result of a build. Its times are those of the single steps. */
export interface BuildFacts {
  readonly workers: number;
  readonly lines: number;
  readonly duplicates: number;
  readonly rejects: Readonly<Record<string, number>>;
  /** Records of the index. */
  readonly indexed: number;
  readonly sizeBytes: number;
  readonly tempUsedBytes: number;
  readonly peakMemoryBytes: number;
  readonly durationMs: number;
  readonly stepsMs: Readonly<Record<string, number>>;
  readonly stepsCpuMs: Readonly<Record<string, number>>;
}

/** The field names of this checkout. */
interface Printed {
  readonly workers: number;
  readonly lines: number;
  readonly duplicates: number;
  readonly rejects: Readonly<Record<string, number>>;
  readonly records: number;
  readonly size_bytes: number;
  readonly temp_used_bytes: number;
  readonly peak_memory_bytes: number;
  readonly duration_ms: number;
  readonly steps_ms: Readonly<Record<string, number>>;
  readonly steps_cpu_ms: Readonly<Record<string, number>>;
}

/** The field names of earlier checkouts. */
type PrintedEarlier = Omit<BuildFacts, 'indexed'> & { readonly recordCount: number };

/** Parses both formats. */
export function buildFactsOf(json: string): BuildFacts {
  const report = JSON.parse(json) as Printed | PrintedEarlier;
  if ('recordCount' in report) return { ...report, indexed: report.recordCount };
  const { workers, lines, duplicates, rejects } = report;
  return {
    workers,
    lines,
    duplicates,
    rejects,
    indexed: report.records,
    sizeBytes: report.size_bytes,
    tempUsedBytes: report.temp_used_bytes,
    peakMemoryBytes: report.peak_memory_bytes,
    durationMs: report.duration_ms,
    stepsMs: report.steps_ms,
    stepsCpuMs: report.steps_cpu_ms,
  };
}
