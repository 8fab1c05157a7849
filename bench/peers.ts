/** Other stores that could be used instead of the index, behind one interface: key → record as MessagePack, without the key. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { CdbWriter, openCdb } from './cdb.ts';
import { type PackedRecord, packedRecords, SortedRecords } from './packed-records.ts';

export const PEERS = ['lmdb', 'sqlite', 'level', 'cdb', 'map'] as const;
export type PeerName = (typeof PEERS)[number];

export interface Peer {
  /** Returns the stored bytes, or undefined. */
  get(key: string): Uint8Array | undefined;
  close(): Promise<void> | void;
}

const require = createRequire(import.meta.url);
/** Packages of peers that are only installed in this folder, not with the program. */
const PACKAGES = ['lmdb', 'classic-level'] as const;
const BATCH = 50_000;
/** Limit for the JavaScript map: with more records it does not fit into memory. */
export const MAP_MAX_RECORDS = 1_000_000;

interface LmdbStore {
  putSync(key: string, value: Uint8Array): void;
  transactionSync(task: () => void): void;
  getBinary(key: string): Uint8Array | undefined;
  close(): Promise<void>;
}
interface LmdbModule {
  open(options: Readonly<Record<string, unknown>>): LmdbStore;
}
interface LevelStore {
  open(): Promise<void>;
  batch(operations: readonly { type: 'put'; key: string; value: Uint8Array }[]): Promise<void>;
  getSync(key: string): Uint8Array | undefined;
  close(): Promise<void>;
}
interface LevelModule {
  ClassicLevel: new (path: string, options: Readonly<Record<string, unknown>>) => LevelStore;
}

/** Returns the packages of the peers that are not installed. */
export function missingPeers(): string[] {
  return PACKAGES.filter((name) => {
    try {
      require.resolve(name);
      return false;
    } catch {
      return true;
    }
  });
}

async function load<T>(name: (typeof PACKAGES)[number]): Promise<T> {
  return (await import(require.resolve(name))) as T;
}

function pathOf(dir: string, name: PeerName, count: number): string {
  return join(dir, `${name}-${count}`);
}

/** Creates the peers' stores that do not exist yet. Records are written in the order of their keys, which is fastest for each store. */
export async function ensurePeers(
  dir: string,
  names: readonly PeerName[],
  count: number,
  log: (line: string) => void,
): Promise<void> {
  const missing = names.filter((name) => name !== 'map' && !existsSync(loadedPath(dir, name, count)));
  if (missing.length === 0) return;
  log('sorting the records for the peers');
  const sorted = await SortedRecords.read(count);
  for (const name of missing) {
    log(`filling ${name}`);
    const path = pathOf(dir, name, count);
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path, { recursive: true });
    const put = await writerOf(name, path);
    const started = performance.now();
    for (const batch of sorted.batches(BATCH)) await put.batch(batch);
    await put.close();
    const loaded: Loaded = { seconds: (performance.now() - started) / 1000 };
    writeFileSync(loadedPath(dir, name, count), JSON.stringify(loaded));
  }
}

/** Name of a file that is written into a store's folder when the store is complete. */
const LOADED_FILE = 'loaded.json';

interface Loaded {
  readonly seconds: number;
}

const loadedPath = (dir: string, name: PeerName, count: number): string => join(pathOf(dir, name, count), LOADED_FILE);

/** Returns how long it took to write the records of a store, in seconds. Parsing, packing and sorting them is not included. */
export function loadSeconds(dir: string, name: PeerName, count: number): number {
  return (JSON.parse(readFileSync(loadedPath(dir, name, count), 'utf8')) as Loaded).seconds;
}

interface Writer {
  batch(records: readonly PackedRecord[]): Promise<void> | void;
  close(): Promise<void> | void;
}

async function writerOf(name: PeerName, path: string): Promise<Writer> {
  if (name === 'lmdb') {
    const store = await openLmdb(path);
    return {
      batch: (batch) =>
        store.transactionSync(() => {
          for (const { key, value } of batch) store.putSync(key, value);
        }),
      close: () => store.close(),
    };
  }
  if (name === 'level') {
    const store = await openLevel(path);
    return {
      batch: (batch) => store.batch(batch.map(({ key, value }) => ({ type: 'put', key, value }))),
      close: () => store.close(),
    };
  }
  if (name === 'cdb') return cdbWriter(join(path, 'peer.cdb'));
  const db = new Database(join(path, 'peer.sqlite'));
  db.pragma('journal_mode = OFF');
  db.pragma('synchronous = OFF');
  db.exec('CREATE TABLE records (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID');
  const insert = db.prepare('INSERT OR REPLACE INTO records VALUES (?, ?)');
  const all = db.transaction((batch: readonly PackedRecord[]) => {
    for (const { key, value } of batch) insert.run(key, value);
  });
  return { batch: (batch) => all(batch), close: () => void db.close() };
}

/** Creates a writer for cdb. Equal keys follow each other; only the last one is written. */
function cdbWriter(path: string): Writer {
  const writer = new CdbWriter(path);
  let last: PackedRecord | undefined;
  return {
    batch: (batch) => {
      for (const record of batch) {
        if (last !== undefined && last.key !== record.key) writer.add(last.key, last.value);
        last = record;
      }
    },
    close: () => {
      if (last !== undefined) writer.add(last.key, last.value);
      writer.close();
    },
  };
}

async function openLmdb(path: string): Promise<LmdbStore> {
  const { open } = await load<LmdbModule>('lmdb');
  return open({ path, encoding: 'binary', noSync: true, compression: false });
}

async function openLevel(path: string): Promise<LevelStore> {
  const { ClassicLevel } = await load<LevelModule>('classic-level');
  const store = new ClassicLevel(path, { valueEncoding: 'buffer' });
  await store.open();
  return store;
}

/** Opens a filled store for reading. */
export async function openPeer(dir: string, name: PeerName, count: number): Promise<Peer> {
  const path = pathOf(dir, name, count);
  if (name === 'lmdb') {
    const store = await openLmdb(path);
    return { get: (key) => store.getBinary(key), close: () => store.close() };
  }
  if (name === 'level') {
    const store = await openLevel(path);
    return { get: (key) => store.getSync(key), close: () => store.close() };
  }
  if (name === 'cdb') return openCdb(join(path, 'peer.cdb'));
  if (name === 'map') {
    const map = new Map<string, Uint8Array>();
    for (const { key, value } of packedRecords({ count, from: 0, to: count })) map.set(key, Uint8Array.from(value));
    return { get: (key) => map.get(key), close: () => map.clear() };
  }
  const db = new Database(join(path, 'peer.sqlite'), { readonly: true });
  db.pragma('mmap_size = 1000000000000');
  const select = db.prepare('SELECT value FROM records WHERE key = ?').pluck();
  return { get: (key) => select.get(key) as Uint8Array | undefined, close: () => void db.close() };
}

/** Returns the total size of a peer's files, in bytes. */
export function peerSize(dir: string, name: PeerName, count: number): number {
  const path = pathOf(dir, name, count);
  return readdirSync(path)
    .filter((file) => file !== LOADED_FILE)
    .reduce((sum, file) => sum + statSync(join(path, file)).size, 0);
}
