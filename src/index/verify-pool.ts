/** Threads that walk the lines of an index ahead of the walk that reports, which then has nothing left to do where all is well. */
import { runInOrder, Thread } from '../platform/threads.ts';
import type { LineRange, RecordWalk, SoundLines } from './record-walk.ts';

/** Lines that a thread walks at a time: some tenths of a second. */
const LINES_PER_CALL = 8192;

/** What a thread starts with: the caller's mapping, which stays until all threads have ended. */
export interface VerifySetup {
  readonly path: string;
  readonly address: bigint;
  readonly sizeBytes: number;
  readonly decodeEveryNthLine: number;
}

/**
 * Takes the walk past the lines, from the first one on, that threads find sound; `onSkipped` is told of them in order. At the first that
 * are not it ends: what is wrong there, and after it, is for the walk to say, which sees every line in order and so always says the same.
 */
export async function walkInThreads(
  walk: RecordWalk,
  workers: number,
  setup: VerifySetup,
  onSkipped: (lines: SoundLines) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { lineCount } = walk;
  const linesPerCall = Math.min(LINES_PER_CALL, Math.ceil(lineCount / workers));
  const calls = Array.from({ length: Math.ceil(lineCount / linesPerCall) }, (_, call) => call);
  const module = new URL('./verify-thread.ts', import.meta.url);
  const threads: Thread[] = [];
  let isSound = true;
  try {
    while (threads.length < Math.min(workers, calls.length)) threads.push(new Thread(module, setup));
    await runInOrder(
      threads,
      calls,
      async (thread, call) => {
        if (!isSound) return undefined;
        const from = call * linesPerCall;
        const lines: LineRange = { from, to: Math.min(lineCount, from + linesPerCall) };
        return await thread.call<SoundLines | undefined>(lines);
      },
      async (lines) => {
        isSound &&= lines !== undefined && walk.skip(lines);
        if (isSound) await onSkipped(lines!);
      },
      signal,
    );
  } finally {
    // Only then may the caller end the mapping.
    await Promise.all(threads.map((thread) => thread.close()));
  }
}
