/** A trial: the time to open an index and get the first answer. Arguments: index file, a key. Prints one JSON document. */
import { openIndex } from '../../src/index/read.ts';

const [path = '', key = ''] = process.argv.slice(2);
const started = performance.now();
const index = openIndex(path);
const openedMs = performance.now() - started;
const out = Buffer.alloc(index.info.maxAnswerSizeBytes);
const handle = index.find(key);
const end = index.writeTail(handle, out, index.writeHead(handle, out, 0));
const answeredMs = performance.now() - started;
if (end === 0) throw new Error('no answer');
process.stdout.write(JSON.stringify({ openedMs, answeredMs }));
