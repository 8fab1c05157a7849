/** What of a file the page cache holds. */
import { execFileSync } from 'node:child_process';

/** Takes a file out of the page cache without privileges: `dd` with `nocache` asks the kernel to forget it. */
export function dropFromPageCache(path: string): void {
  execFileSync('sync', [path]);
  execFileSync('dd', [`if=${path}`, 'iflag=nocache', 'count=0', 'status=none']);
}

/** Reads files into the page cache, as far as they fit. */
export function readIntoPageCache(paths: readonly string[]): void {
  execFileSync('cat', [...paths], { stdio: ['ignore', 'ignore', 'inherit'] });
}
