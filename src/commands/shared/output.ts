/** Output that all commands share: results, failures, warnings, progress, and the handling of Ctrl-C. */
import { withCommas } from '../../counted.ts';
import { EXIT, PagegateError } from '../../errors.ts';
import { printable, UNPRINTABLE } from '../../platform/printable.ts';
import { type Progress, type ProgressView, percentOf } from '../../progress.ts';
import { stopAtFirst } from './stop-signals.ts';
import { OutputClosed, writeOut } from './streams.ts';

/** Escapes a text like `printable`, but keeps its line feeds: for a text of this program that quotes others. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** Formats a value as JSON. `JSON.stringify` does not escape control characters from U+007F on, so this does. */
function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(UNPRINTABLE, (character) =>
    character === '\n' ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Prints one JSON document on standard output. */
export function printJson(value: unknown): void {
  writeOut(`${jsonText(value, 2)}\n`);
}

/** Prints a line on standard output. Control characters are escaped. */
export function printLine(line = ''): void {
  writeOut(`${printableLines(line)}\n`);
}

/** Prints rows as aligned columns. The first row is the heading; columns of numbers are right-aligned. */
export function printTable(rows: readonly (readonly (string | number)[])[]): void {
  const text = rows.map((row) => row.map((cell) => (typeof cell === 'number' ? withCommas(cell) : printable(cell))));
  const columns = Math.max(0, ...text.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, i) => Math.max(...text.map((row) => row[i]?.length ?? 0)));
  const isNumber = widths.map((_, i) => rows.slice(1).every((row) => typeof row[i] === 'number'));
  for (const row of text) {
    const cells = row.map((cell, i) => (isNumber[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)));
    printLine(cells.join('  ').trimEnd());
  }
}

/** Reports a failure on standard error, as JSON if `asJson`, and returns its exit code. */
export function reportFailure(failure: unknown, asJson: boolean): number {
  if (failure instanceof OutputClosed) return EXIT.ok;
  const error = asPagegateError(failure);
  const { code, message, details } = error;
  // The message of a defect is a stack trace of several lines; any other message is one line.
  const text = code === 'internal' ? printableLines(message) : printable(message);
  process.stderr.write(
    asJson ? `${jsonText({ error: code, message, ...details })}\n` : `pagegate: ${text} [${code}]\n`,
  );
  return error.exitCode;
}

function asPagegateError(failure: unknown): PagegateError {
  // Resolving any relative path can fail with it.
  if (isWorkingDirectoryGone(failure)) return new PagegateError('no_working_directory');
  if (failure instanceof PagegateError) return failure;
  return new PagegateError('internal', failure instanceof Error ? (failure.stack ?? failure.message) : String(failure));
}

function isWorkingDirectoryGone(failure: unknown): boolean {
  if (!(failure instanceof Error)) return false;
  const { code, syscall } = failure as NodeJS.ErrnoException;
  return code === 'ENOENT' && syscall === 'uv_cwd';
}

const BAR_WIDTH = 24;

export function progressLine({ what, share, detail = '' }: Progress): string {
  const parts = detail === '' ? [] : [detail];
  if (share !== undefined) {
    const bar = '█'.repeat(Math.round(share * BAR_WIDTH)).padEnd(BAR_WIDTH, '░');
    parts.unshift(`${bar} ${String(percentOf(share)).padStart(3)} %`);
  }
  return [what, ...parts].join('  ');
}

/** A progress line on a terminal; without a terminal, nothing is written. */
interface ProgressLine extends ProgressView {
  done(): void;
}

/** Rewrites one line on standard error, at most ten times a second. */
function createProgress(): ProgressLine {
  const stream = process.stderr;
  if (!stream.isTTY) return { update: () => {}, done: () => {} };
  let last = 0;
  return {
    update(progress) {
      const now = Date.now();
      if (now - last < 100) return;
      last = now;
      stream.write(`\r\x1b[2K${printable(progressLine(progress)).slice(0, (stream.columns ?? 80) - 1)}`);
    },
    done() {
      stream.write('\r\x1b[2K');
    },
  };
}

const ABORTING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs a task that shows its progress. Ctrl-C, a termination signal or the loss of the terminal aborts it; a second signal ends the
 * process at once.
 */
export async function withProgress<T>(task: (progress: ProgressLine, signal: AbortSignal) => Promise<T>): Promise<T> {
  const progress = createProgress();
  const controller = new AbortController();
  const onSignal = stopAtFirst(() => controller.abort(new PagegateError('interrupted')));
  for (const name of ABORTING_SIGNALS) process.on(name, onSignal);
  try {
    return await task(progress, controller.signal);
  } finally {
    for (const name of ABORTING_SIGNALS) process.off(name, onSignal);
    progress.done();
  }
}

/** Ends a text with exactly one full stop: some texts of the server already have one. */
export const sentence = (text: string): string => `${text.replace(/\.$/, '')}.`;

/** Prints a warning on standard error, so that `--json` on standard output stays valid. */
export function warn(text: string): void {
  process.stderr.write(`Warning: ${printable(text)}\n`);
}
