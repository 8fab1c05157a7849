/** A trial: a peer loads the lines of a drop, without checking them. Arguments: peer, folder for its files, parts. Prints one JSON document. */
import { mkdirSync } from 'node:fs';
import { Packr } from 'msgpackr';
import { readLines } from '../lines.ts';
import { type PeerName, writerOf } from '../peers.ts';

const BATCH = 50_000;
const KEY_MAX_CHARACTERS = 500;
const [peer = '', folder = '', ...parts] = process.argv.slice(2);
const packr = new Packr({ useRecords: false });
mkdirSync(folder, { recursive: true });
const started = performance.now();
const writer = await writerOf(peer as PeerName, folder);
let batch: { key: string; value: Uint8Array }[] = [];

function add(line: string): void {
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch {
    return;
  }
  if (typeof record !== 'object' || record === null) return;
  const { domain, ...rest } = record as Record<string, unknown>;
  if (typeof domain !== 'string' || domain === '' || domain.length > KEY_MAX_CHARACTERS) return;
  batch.push({ key: domain, value: packr.pack(rest) });
  if (batch.length < BATCH) return;
  // The peers that are loaded here write synchronously.
  void writer.batch(batch);
  batch = [];
}

for (const part of parts) readLines(part, add);
await writer.batch(batch);
await writer.close();
process.stdout.write(JSON.stringify({ seconds: (performance.now() - started) / 1000 }));
