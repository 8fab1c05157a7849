/** Takes a file out of the page cache without privileges: `dd` with `nocache` asks the kernel to forget it. */
import { execFileSync } from 'node:child_process';

export function dropFromPageCache(path: string): void {
  execFileSync('sync', [path]);
  execFileSync('dd', [`if=${path}`, 'iflag=nocache', 'count=0', 'status=none']);
}
