/** Makes small drops for tests of the builder. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { MANIFEST_FILE } from '../../src/drop/drop-files.ts';
import { makeManifest } from '../../src/drop/make-manifest.ts';
import type { Manifest } from '../../src/drop/manifest.ts';

export type PartContent = string | Uint8Array | readonly unknown[];

const FACTS = { dataset: 'test', revision: 7, created: '2026-01-02T03:04:05Z', pageTypes: 'complete' } as const;

/** Returns the bytes of a part: text and bytes unchanged, a list as NDJSON. */
export function bytesOf(content: PartContent): Buffer {
  if (typeof content === 'string') return Buffer.from(content);
  if (content instanceof Uint8Array) return Buffer.from(content);
  return Buffer.from(content.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
}

function pack(name: string, bytes: Buffer): Buffer {
  if (name.endsWith('.gz')) return gzipSync(bytes);
  if (name.endsWith('.zst')) return zstdCompressSync(bytes);
  return bytes;
}

/** Writes parts, compressed as their names indicate, and a matching manifest. */
export async function makeDrop(folder: string, parts: Readonly<Record<string, PartContent>>): Promise<Manifest> {
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of Object.entries(parts)) writeFileSync(join(folder, name), pack(name, bytesOf(content)));
  return await makeManifest(folder, FACTS);
}

/** Replaces the manifest by a changed one, which need not match. */
export function rewriteManifest(folder: string, manifest: unknown): void {
  writeFileSync(join(folder, MANIFEST_FILE), typeof manifest === 'string' ? manifest : JSON.stringify(manifest));
}
