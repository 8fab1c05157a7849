/** A trial: lookups in one store. Arguments: subject, records, folder, seed. Prints one JSON document. */
import { copyFileSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { NO_RECORD, openIndex } from '../../src/index/read.ts';
import { ADVICE, mapFile, PAGE_SIZE_BYTES } from '../../src/platform/libc.ts';
import { Random } from '../../tools/random.ts';
import { datasetOf } from '../data.ts';
import { renderPacked } from '../packed-records.ts';
import { openPeer, type PeerName } from '../peers.ts';

/** Number of keys in one round. Each round has different keys, so that none profits from what an earlier round has cached. */
const KEYS = 50_000;
/** Number of keys in the first round, which is a warm-up for the compiler and does not count. */
const FIRST_KEYS = 10_000;
const HOT_KEYS = 1000;
const ROUNDS = 2;

/** Nanoseconds per key in one round. */
export interface LookupTimes {
  readonly hitNs: number;
  readonly missNs: number;
  readonly hotNs: number;
  readonly answerNs: number;
  /** Time of one dependent read in a mapping like the index's; null for peers, which do not use our mapping. */
  readonly readNs: number | null;
}

/** The timed functions. Each takes a key and returns a number that depends on the answer. */
interface Subject {
  find(key: string): number;
  answer(key: string): number;
  read?: (count: number) => number;
  close(): Promise<void> | void;
}

async function subjectOf(name: string, records: number, dir: string): Promise<Subject> {
  const path = join(dir, `index-${records}.pgx`);
  if (name === 'pagegate') return pagegateSubject(copyOf(path), false);
  if (name === 'pagegate --warm') return pagegateSubject(path, true);
  const peer = await openPeer(dir, name as PeerName, records);
  return {
    find: (key) => (peer.get(key) === undefined ? 0 : 1),
    answer: (key) => renderPacked(key, peer.get(key)!).length,
    close: () => peer.close(),
  };
}

/** Copies a file. A file just written is in the page cache in small pages, whatever page size the original was read with. */
function copyOf(path: string): string {
  const copy = `${path}.copy`;
  rmSync(copy, { force: true });
  copyFileSync(path, copy);
  process.on('exit', () => rmSync(copy, { force: true }));
  return copy;
}

async function pagegateSubject(path: string, isWarmed: boolean): Promise<Subject> {
  const index = openIndex(path);
  if (isWarmed) await index.warm();
  const out = Buffer.alloc(index.info.maxAnswerSizeBytes);
  return {
    find: (key) => (index.find(key) === NO_RECORD ? 0 : 1),
    answer: (key) => {
      const handle = index.find(key);
      return index.writeTail(handle, out, index.writeHead(handle, out, 0));
    },
    read: dependentReads(path, index.info.sizeBytes, isWarmed),
    close: () => index.close(),
  };
}

/**
 * Reads words at offsets that depend on the previous word, to measure the cost of memory access alone. All pages are mapped before, with the page
 * size of the index: otherwise most of the first reads would be page faults.
 */
function dependentReads(path: string, sizeBytes: number, isHuge: boolean): (count: number) => number {
  const mapping = mapFile(openSync(path, 'r'), sizeBytes);
  mapping.advise(isHuge ? ADVICE.hugePage : ADVICE.random);
  const words = new Uint32Array(mapping.buffer, 0, Math.min(Math.floor(sizeBytes / 4), 2 ** 30));
  const { length } = words;
  mapping.advise(ADVICE.populateRead);
  // Kernels before 5.14 do not know this advice. The sum is used, or the compiler would leave the reads out.
  let sum = 0;
  for (let i = 0; i < length; i += PAGE_SIZE_BYTES / 4) sum = (sum + words[i]!) | 0;
  // Each call continues where the last one stopped, so that no round repeats the reads of an earlier one. The offsets come from a generator with
  // full period: if the next state were computed from the word, it would soon enter a cycle small enough for a cache. One bit of the word is
  // added to the offset, which hardly changes it but makes each read wait for the previous one.
  let state = sum | 1;
  let word = 0;
  return (count) => {
    for (let i = 0; i < count; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      word = words[Math.floor((((state ^ (word & 1)) >>> 0) / 2 ** 32) * length)]!;
    }
    return state;
  };
}

function timeReads(read: (count: number) => number, count: number): number {
  const started = performance.now();
  if (read(count) === 0.5) throw new Error('unreachable');
  return ((performance.now() - started) / count) * 1e6;
}

/** Returns the nanoseconds per key. */
function time(keys: readonly string[], task: (key: string) => number, expected: number | undefined): number {
  // A concatenated string is flattened when it is first read. This must not be timed.
  let characters = 0;
  for (const key of keys) characters += key.charCodeAt(key.length - 1);
  if (characters === 0) throw new Error('no keys');
  const started = performance.now();
  let sum = 0;
  for (const key of keys) sum += task(key);
  const elapsed = performance.now() - started;
  if (expected !== undefined && sum !== expected)
    throw new Error(`found ${sum} of ${keys.length}, expected ${expected}`);
  return (elapsed / keys.length) * 1e6;
}

const [name = '', recordsText = '', dir = '', seedText = ''] = process.argv.slice(2);
const records = Number(recordsText);
const dataset = datasetOf(records);
const random = new Random(Number(seedText));
const keysOfRounds = [FIRST_KEYS, ...Array.from({ length: ROUNDS }, () => KEYS)].map((length) => {
  const names = (): string[] => Array.from({ length }, () => dataset.nameOf(random.below(records)));
  const hits = names();
  const misses = Array.from({ length }, () => dataset.absentNameOf(random.below(records)));
  // A Zipf-like hot set: the frequency of key k is in proportion to 1 / k.
  const hot = Array.from({ length }, () => hits[Math.floor(HOT_KEYS ** (random.below(2 ** 30) / 2 ** 30)) - 1]!);
  return { hits, misses, hot, answered: names() };
});
const subject = await subjectOf(name, records, dir);
// This maps every page that will be read, for any store. They are too many to stay in the caches of the processor.
for (const { hits, misses, answered } of keysOfRounds)
  for (const key of [...hits, ...misses, ...answered]) subject.find(key);
const rounds = keysOfRounds.map(
  ({ hits, misses, hot, answered }): LookupTimes => ({
    readNs: subject.read === undefined ? null : timeReads(subject.read, hits.length),
    hitNs: time(hits, subject.find, hits.length),
    missNs: time(misses, subject.find, 0),
    hotNs: time(hot, subject.find, hot.length),
    answerNs: time(answered, subject.answer, undefined),
  }),
);
await subject.close();
process.stdout.write(JSON.stringify(rounds.slice(1)));
