/** Small files that appear whole or not at all. */
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncDirectory } from './store.ts';

/** Writes a new file and makes its content durable; the name becomes durable when its directory is synced. */
export async function writeDurable(path: string, content: string | Uint8Array, mode = 0o444): Promise<void> {
  const handle = await open(path, 'wx', mode);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Replaces a file atomically and durably. */
export async function replaceDurable(path: string, content: string | Uint8Array, mode = 0o644): Promise<void> {
  const temporary = `${path}.tmp`;
  await rm(temporary, { force: true });
  await writeDurable(temporary, content, mode);
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}
