/** The side file of rejects: what the workers wrote for each part, in the order of the drop. */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import type { ReportDraft } from './report.ts';
import { rejectsPath } from './scan-part.ts';
import { REJECTS_MAX } from './tally.ts';

/** Puts the parts' rejects into one file, as many as are kept. Without rejects there is no file, also none from a build before. */
export function gatherRejects(tempDir: string, partCount: number, path: string | undefined, draft: ReportDraft): void {
  if (path === undefined) return;
  const gathering = `${path}.building-${process.pid}`;
  let descriptor = -1;
  let written = 0;
  for (let part = 0; part < partCount && written < REJECTS_MAX; part++) {
    const from = rejectsPath(tempDir, part);
    if (!existsSync(from)) continue;
    if (descriptor === -1) descriptor = openSync(gathering, 'w', 0o644);
    const lines = readFileSync(from, 'utf8')
      .trimEnd()
      .split('\n')
      .slice(0, REJECTS_MAX - written);
    writeSync(descriptor, `${lines.join('\n')}\n`);
    written += lines.length;
  }
  if (descriptor === -1) {
    rmSync(path, { force: true });
    return;
  }
  fsyncSync(descriptor);
  closeSync(descriptor);
  renameSync(gathering, path);
  draft.rejectsFile = path;
  draft.rejectsWritten = written;
}
