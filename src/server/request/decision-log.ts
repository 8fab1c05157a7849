/**
 * The decision log: one line with a JSON object for each verdict served. Off by default, because the lines reveal what agents visit.
 * Unless the operator enables full URLs, it omits the query and keeps only plain words of path and host. It never delays an answer: lines
 * wait in a bounded queue, and lines that do not fit are dropped and counted.
 */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fromSystem, PagegateError } from '../../errors.ts';
import { makeFolder } from '../../platform/folders.ts';
import type { Policy } from '../../policy/policy.ts';
import type { JudgedUrl } from '../swap/kept-answers.ts';
import { maskHost, maskPath, maskScheme, maskWholePath, methodToLog } from './mask.ts';

/** After a disk failure, lines are dropped for this long before the next attempt. */
const RETRY_MS = 5_000;
/** Maximum number of lines per write. */
const BATCH_LINES = 512;
/** If the clock is set back by less, it is a small correction: the lines repeat the latest time until the clock has caught up. */
const SET_BACK_MS = 1_000;

export interface DecisionLogOptions {
  readonly dir: string;
  /** Number of the worker. Each worker has its own file, named after it. */
  readonly worker: number;
  readonly fullUrl: boolean;
  readonly maxSizeBytes: number;
  readonly keepFiles: number;
  readonly queueLines: number;
  /** Called when writing fails. */
  readonly onFailure?: (error: PagegateError) => void;
}

/** The logged facts of one request. */
export interface JudgedRequest extends JudgedUrl {
  /** The name of the account. */
  readonly account: string;
  /** The policy that gave the verdict. It is also used to find secrets. */
  readonly policy: Policy;
  /** `<index generation>.<policy revision>`. */
  readonly data: string;
  readonly latencyMs: number;
}

interface QueuedLine {
  readonly text: string;
  /** Its time, in milliseconds since 1970. */
  readonly atMs: number;
}

/** Writes decisions from a bounded queue to a file, and rotates it. No answer waits for it. */
export class DecisionLog {
  readonly #options: DecisionLogOptions;
  #queue: QueuedLine[] = [];
  #file: FileHandle | undefined;
  #sizeBytes = 0;
  /** Time of the latest line in the file, in milliseconds since 1970; 0 if it has none. */
  #latestMs = 0;
  /** Time of the latest queued line, in milliseconds since 1970. */
  #queuedMs = 0;
  #writing: Promise<void> | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** Number of lines written, and of lines dropped because the queue was full or the disk failed. */
  readonly counts = { lines: 0, dropped: 0 };
  /** Why lines are being dropped; null if none are. */
  problem: string | null = null;

  constructor(options: DecisionLogOptions) {
    this.#options = options;
  }

  /** Queues one line; never waits and never throws. */
  record(decision: JudgedRequest): void {
    if (this.#queue.length >= this.#options.queueLines) {
      this.counts.dropped += 1;
      return;
    }
    const now = Date.now();
    const isCorrected = now < this.#queuedMs && this.#queuedMs - now < SET_BACK_MS;
    if (!isCorrected) this.#queuedMs = now;
    const text = formatDecision(decision, this.#options.fullUrl, new Date(this.#queuedMs));
    this.#queue.push({ text, atMs: this.#queuedMs });
    this.#writing ??= this.#drain();
  }

  /** Opens the file before the first verdict, so that an unwritable folder is noticed at startup. */
  begin(): void {
    this.#writing ??= this.#drain(true);
  }

  /** Resolves when the queue has been handed to the system. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async close(): Promise<void> {
    await this.flush();
    await this.#file?.close();
    this.#file = undefined;
  }

  async #drain(opensFirst = false): Promise<void> {
    // The lines of one turn are written together.
    await nextTurn();
    if (opensFirst) await this.#attempt([]);
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, BATCH_LINES);
      if (performance.now() - this.#failedAt < RETRY_MS) this.counts.dropped += batch.length;
      else for (const row of inOrder(batch)) await this.#attempt(row);
    }
    this.#writing = undefined;
  }

  /** Writes lines, or drops them and reports why. */
  async #attempt(batch: readonly QueuedLine[]): Promise<void> {
    try {
      await this.#write(batch);
      this.problem = null;
    } catch (error) {
      const failure = fromSystem('decision_log_failed', this.#path, error);
      const known =
        failure instanceof PagegateError ? failure : new PagegateError('decision_log_failed', String(error));
      this.problem = known.message;
      this.#failedAt = performance.now();
      this.counts.dropped += batch.length;
      await this.#file?.close().catch(() => {});
      this.#file = undefined;
      this.#options.onFailure?.(known);
    }
  }

  /** Readers rely on the lines of a file being in chronological order. If the clock was set back, another file begins. */
  async #write(batch: readonly QueuedLine[]): Promise<void> {
    const bytes = Buffer.from(batch.map(({ text }) => text).join(''));
    const isFull = this.#file !== undefined && this.#sizeBytes + bytes.length > this.#options.maxSizeBytes;
    this.#file ??= await this.#open();
    const [first] = batch;
    if (isFull || (first !== undefined && first.atMs < this.#latestMs)) {
      await this.#rotate();
      this.#file = await this.#open();
    }
    await this.#file.writeFile(bytes);
    this.#sizeBytes += bytes.length;
    this.#latestMs = batch.at(-1)?.atMs ?? this.#latestMs;
    this.counts.lines += batch.length;
  }

  get #path(): string {
    return join(this.#options.dir, `decisions-${this.#options.worker}.ndjson`);
  }

  async #open(): Promise<FileHandle> {
    makeFolder(this.#options.dir, 0o750);
    const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants;
    const file = await open(this.#path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
    await file.chmod(0o600);
    const { size, mtime } = await file.stat();
    this.#sizeBytes = size;
    this.#latestMs = size === 0 ? 0 : mtime.getTime();
    return file;
  }

  async #rotate(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
    const stamp = new Date(this.#latestMs || Date.now()).toISOString().replaceAll(/[-:.]/g, '');
    const prefix = `decisions-${this.#options.worker}.`;
    await rename(this.#path, join(this.#options.dir, `${prefix}${stamp}-${randomUUID().slice(0, 8)}.ndjson`));
    const rotated = (await readdir(this.#options.dir)).filter(
      (name) => name.startsWith(prefix) && name !== `${prefix}ndjson`,
    );
    const surplus = rotated.sort().slice(0, Math.max(0, rotated.length - this.#options.keepFiles));
    for (const name of surplus) await rm(join(this.#options.dir, name), { force: true });
  }
}

/** Splits the lines into chronological runs: if the clock was set back, the next run begins. */
function inOrder(lines: readonly QueuedLine[]): QueuedLine[][] {
  const rows: QueuedLine[][] = [];
  let latestMs = Number.POSITIVE_INFINITY;
  for (const line of lines) {
    if (line.atMs < latestMs) rows.push([]);
    rows.at(-1)!.push(line);
    latestMs = line.atMs;
  }
  return rows;
}

/** One line of the log, with its line end. */
export function formatDecision(decision: JudgedRequest, fullUrl: boolean, at = new Date()): string {
  const { url, verdict, policy, domain, found } = decision;
  return `${JSON.stringify({
    time: at.toISOString(),
    id: randomUUID(),
    account: decision.account,
    method: methodToLog(decision.method, policy),
    ...(fullUrl
      ? { url: url.href, scheme: url.scheme, host: url.host, path: url.path, domain }
      : maskedPlace(decision)),
    found,
    verdict: verdict.verdict,
    matched: { layer: verdict.layer, id: verdict.id, note: verdict.note },
    data: decision.data,
    latency_ms: Math.round(decision.latencyMs * 1_000) / 1_000,
  })}\n`;
}

/** Ids of the shipped rules that find a credential anywhere in the URL, and data in the host's labels. */
const SECRET_RULE = 'secret_in_url';
const CARRIER_RULE = 'dns_tunnel';

/** The URL of a request with possible secrets masked. */
function maskedPlace({ url, domain, found, verdict }: JudgedRequest): Record<string, string> {
  const carriesData = verdict.id === CARRIER_RULE;
  const known = found ? domain : '';
  return {
    scheme: maskScheme(url.scheme),
    host: maskHost(url.host, known, carriesData),
    path: verdict.id === SECRET_RULE ? maskWholePath(url.path) : maskPath(url.path),
    domain: maskHost(domain, known, carriesData),
  };
}
