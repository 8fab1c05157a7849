/** Removes files from the page cache, or reads them into it. */
import { execFileSync } from 'node:child_process';

/** Removes a file from the page cache. This needs no privileges: `dd` with `nocache` asks the kernel to drop it. */
export function dropFromPageCache(path: string): void {
  execFileSync('sync', [path]);
  execFileSync('dd', [`if=${path}`, 'iflag=nocache', 'count=0', 'status=none']);
}

/** Reads files into the page cache, as far as they fit. */
export function readIntoPageCache(paths: readonly string[]): void {
  execFileSync('cat', [...paths], { stdio: ['ignore', 'ignore', 'inherit'] });
}
