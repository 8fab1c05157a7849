/** The main module of a thread that walks lines for verify-pool.ts. */
import { workerData } from 'node:worker_threads';
import { viewMapped } from '../platform/libc.ts';
import { answerCalls } from '../platform/threads.ts';
import { readHeader } from './header.ts';
import { bytesOfBuffer } from './index-bytes.ts';
import { readTables } from './read-tables.ts';
import { type LineRange, RecordWalk } from './record-walk.ts';
import type { RenderTables } from './render-tables.ts';
import type { VerifySetup } from './verify-pool.ts';

const { path, address, sizeBytes, decodeEveryNthLine } = workerData as VerifySetup;
const bytes = bytesOfBuffer(viewMapped(address, sizeBytes), path);
let tables: RenderTables | undefined;

answerCalls(async (lines: LineRange) => {
  const header = readHeader(bytes);
  // Read with the first call and not before: what fails in a call goes to the caller by its name.
  tables ??= readTables(bytes, header);
  return { value: new RecordWalk(bytes, header, tables, decodeEveryNthLine).checkLines(lines), transfer: [] };
});
