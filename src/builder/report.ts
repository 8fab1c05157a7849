/** The report of a finished build. */
import type { Manifest } from '../drop/manifest.ts';
import type { BuildOptions } from './options.ts';
import { addCounts, type Counts, sortedCounts } from './scan/counts.ts';
import type { ScanOutcome } from './scan/part-scanner.ts';

export type TimedStep = 'sample' | 'scan' | 'write' | 'verify';

export interface BuildReport {
  readonly out: string;
  readonly sizeBytes: number;
  readonly dataset: string;
  readonly revision: number;
  readonly created: string;
  readonly generation: number;
  readonly manifestSha256: string;
  readonly pageTypes: 'complete' | 'partial';
  readonly vocabulary: 'core' | 'full';
  readonly parts: number;
  /** Nonblank lines of the drop. */
  readonly lines: number;
  /** Lines that became an entry. */
  readonly entries: number;
  /** Entries that were replaced by a later one of the same domain. */
  readonly duplicates: number;
  /** Records of the index: entries minus duplicates. */
  readonly recordCount: number;
  /** Pages of all entries. */
  readonly pages: number;
  /** Entries whose global rank an entry scanned earlier already had. */
  readonly ranksRepeated: number;
  /** Number of rejected lines, pages and facts, by reason. */
  readonly rejects: Counts;
  /** Number of repairs, by name. */
  readonly repairs: Counts;
  /** Path of the NDJSON file with file, line, level, reason and detail; null if nothing was rejected or no file was requested. */
  readonly rejectsFile: string | null;
  readonly rejectsWritten: number;
  readonly workers: number;
  readonly durationMs: number;
  readonly stepsMs: Readonly<Record<TimedStep, number>>;
  /** CPU time of all threads. */
  readonly stepsCpuMs: Readonly<Record<TimedStep, number>>;
  /** Upper estimate of the size of the temporary files, and their actual size. */
  readonly tempEstimateBytes: number;
  readonly tempUsedBytes: number;
  /** Peak memory of this process with all its threads, sampled five times a second; without cached files. */
  readonly peakMemoryBytes: number;
}

/** Collects the report while the build runs. */
export class ReportDraft {
  workers = 0;
  entries = 0;
  duplicates = 0;
  recordCount = 0;
  sizeBytes = 0;
  tempUsedBytes = 0;
  peakMemoryBytes = 0;
  rejectsWritten = 0;
  readonly manifestSha256: string;
  readonly #options: BuildOptions;
  readonly #manifest: Manifest;
  readonly #tempEstimateBytes: number;
  readonly #begun = performance.now();
  readonly #stepsMs: Record<TimedStep, number> = { sample: 0, scan: 0, write: 0, verify: 0 };
  readonly #stepsCpuMs: Record<TimedStep, number> = { sample: 0, scan: 0, write: 0, verify: 0 };
  readonly #rejects: Counts = {};
  readonly #repairs: Counts = {};
  #lines = 0;
  #pages = 0;
  #ranksRepeated = 0;

  /** Starts the clock of the build. */
  constructor(options: BuildOptions, manifest: Manifest, manifestSha256: string, tempEstimateBytes: number) {
    this.#options = options;
    this.#manifest = manifest;
    this.manifestSha256 = manifestSha256;
    this.#tempEstimateBytes = tempEstimateBytes;
  }

  /** Runs a step and records how long it took. */
  async time<T>(step: TimedStep, run: () => Promise<T>): Promise<T> {
    const begun = performance.now();
    const cpuBegun = process.cpuUsage();
    try {
      return await run();
    } finally {
      this.#stepsMs[step] = Math.round(performance.now() - begun);
      const { user, system } = process.cpuUsage(cpuBegun);
      this.#stepsCpuMs[step] = Math.round((user + system) / 1000);
    }
  }

  /** Adds the counts of one worker's scan. */
  addScan(outcome: ScanOutcome): void {
    this.#lines += outcome.records;
    this.entries += outcome.entries;
    this.#pages += outcome.pages;
    this.#ranksRepeated += outcome.ranksRepeated;
    addCounts(this.#rejects, outcome.rejects);
    addCounts(this.#repairs, outcome.repairs);
  }

  /** Returns the report. All public fields must be set by then. */
  finish(): BuildReport {
    const { dataset, revision, created, page_types: pageTypes, files } = this.#manifest;
    return {
      out: this.#options.out,
      sizeBytes: this.sizeBytes,
      dataset,
      revision,
      created,
      generation: this.#options.generation,
      manifestSha256: this.manifestSha256,
      pageTypes,
      vocabulary: this.#options.vocabulary ?? 'full',
      parts: files.length,
      lines: this.#lines,
      entries: this.entries,
      duplicates: this.duplicates,
      recordCount: this.recordCount,
      pages: this.#pages,
      ranksRepeated: this.#ranksRepeated,
      rejects: sortedCounts(this.#rejects),
      repairs: sortedCounts(this.#repairs),
      rejectsFile: this.rejectsWritten > 0 ? this.#options.rejectsFile! : null,
      rejectsWritten: this.rejectsWritten,
      workers: this.workers,
      durationMs: Math.round(performance.now() - this.#begun),
      stepsMs: this.#stepsMs,
      stepsCpuMs: this.#stepsCpuMs,
      tempEstimateBytes: this.#tempEstimateBytes,
      tempUsedBytes: this.tempUsedBytes,
      peakMemoryBytes: this.peakMemoryBytes,
    };
  }
}
