/** A synthetic drop, and steps that replace the builder, to test a refresh alone. */
import { generateKeyPairSync, hash, type KeyObject } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { signManifest, type TrustedKey } from '../../src/drop/signature.ts';
import { PagegateError } from '../../src/errors.ts';
import { VOCABULARY_NAME, VOCABULARY_VERSION } from '../../src/record/vocabulary.ts';
import type { IndexIdentity, RefreshOptions, RefreshSteps } from '../../src/refresh/refresh.ts';

export interface DropSpec {
  readonly dataset?: string;
  readonly revision?: number;
  readonly kind?: string;
  readonly vocabularyVersion?: number;
  readonly parts?: Readonly<Record<string, Uint8Array>>;
  /** Signs the manifest. null: it stays unsigned. */
  readonly key?: KeyObject | null;
}

export interface Bench {
  readonly root: string;
  readonly store: string;
  readonly vendor: KeyObject;
  readonly trusted: TrustedKey[];
  drop(name: string, spec?: DropSpec): string;
  options(drop: string, extra?: Partial<RefreshOptions>): RefreshOptions;
  /** Writes and signs a manifest that a test changed, as a value or as bytes. */
  resign(folder: string, manifest: unknown): string;
  remove(): void;
}

export const PART = gzipSync('{"domain":"example.com"}\n{"domain":"example.org"}\n');

/** A working folder, a vendor key and functions that create drops. */
export function createBench(): Bench {
  const root = mkdtempSync(join(tmpdir(), 'pagegate-refresh-'));
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const trusted: TrustedKey[] = [{ name: 'vendor', key: publicKey }];
  const store = join(root, 'index');
  return {
    root,
    store,
    vendor: privateKey,
    trusted,
    drop(name, spec = {}) {
      const folder = join(root, name);
      mkdirSync(folder, { recursive: true });
      const parts = spec.parts ?? { 'part-0.ndjson.gz': PART };
      for (const [part, bytes] of Object.entries(parts)) writeFileSync(join(folder, part), bytes);
      const manifest = {
        format: 'pagegate-drop/1',
        dataset: spec.dataset ?? 'test',
        revision: spec.revision ?? 1,
        created: '2026-01-02T03:04:05Z',
        kind: spec.kind ?? 'full',
        vocabulary: { name: VOCABULARY_NAME, version: spec.vocabularyVersion ?? VOCABULARY_VERSION },
        page_types: 'complete',
        files: Object.entries(parts).map(([part, bytes]) => ({
          name: part,
          bytes: bytes.length,
          records: 2,
          sha256: hash('sha256', bytes),
        })),
      };
      const bytes = Buffer.from(JSON.stringify(manifest));
      writeFileSync(join(folder, 'manifest.json'), bytes);
      const key = spec.key === undefined ? privateKey : spec.key;
      if (key !== null) writeFileSync(join(folder, 'manifest.json.sig'), signManifest(bytes, key));
      return folder;
    },
    resign(folder, manifest) {
      const bytes = manifest instanceof Uint8Array ? manifest : Buffer.from(JSON.stringify(manifest));
      writeFileSync(join(folder, 'manifest.json'), bytes);
      writeFileSync(join(folder, 'manifest.json.sig'), signManifest(bytes, privateKey));
      return folder;
    },
    options: (drop, extra = {}) => ({ drop, store, keep: 3, trustedKeys: trusted, ...extra }),
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

function identify(file: string): IndexIdentity {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new PagegateError('generation_damaged', file, {}, { cause });
  }
}

/** Steps whose "index" is a JSON file that names the drop it was built from. */
export function fakeSteps(overrides: Partial<RefreshSteps> = {}): RefreshSteps & { readonly notified: number[] } {
  const notified: number[] = [];
  return {
    notified,
    build: async ({ drop, out, generation }) => {
      const manifest = readFileSync(join(drop, 'manifest.json'));
      const { dataset, revision } = JSON.parse(manifest.toString()) as { dataset: string; revision: number };
      const index = {
        dataset,
        revision,
        generation,
        manifestSha256: hash('sha256', manifest),
        recordCount: 2,
        sizeBytes: 100,
      };
      writeFileSync(out, JSON.stringify(index), { mode: 0o444 });
      return { entries: 2 };
    },
    identify,
    verify: async (file) => identify(file),
    assertEntitled: () => {},
    notifyServer: async (generation) => {
      notified.push(generation);
      return { server: 'told' };
    },
    ...overrides,
  };
}

/** Returns the code of the error with which a task fails. */
export async function codeOf(task: Promise<unknown>): Promise<string> {
  try {
    await task;
  } catch (error) {
    if (error instanceof PagegateError) return error.code;
    throw error;
  }
  return 'no failure';
}
