/**
 * A trial: lookups in an index that is not in the page cache. Arguments: records, index file, random or normal (the advice), count.
 * Prints one JSON document.
 */
import { readFileSync } from 'node:fs';
import { openIndex } from '../../src/index/read.ts';
import { Random } from '../../tools/random.ts';
import { datasetOf } from '../data.ts';
import { median } from '../workload.ts';

const [recordsText = '', path = '', advice = '', countText = ''] = process.argv.slice(2);
const records = Number(recordsText);
const dataset = datasetOf(records);
const random = new Random(7);
const keys = Array.from({ length: Number(countText) }, () => dataset.nameOf(random.below(records)));

function bytesRead(): number {
  return Number(/^read_bytes: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
}

const index = openIndex(path, { randomReads: advice === 'random' });
const readBefore = bytesRead();
const faultsBefore = process.resourceUsage().majorPageFault;
const times = keys.map((key) => {
  const started = performance.now();
  index.decode(index.find(key));
  return (performance.now() - started) * 1000;
});
const result = {
  medianUs: median(times),
  meanUs: times.reduce((sum, time) => sum + time, 0) / times.length,
  faults: (process.resourceUsage().majorPageFault - faultsBefore) / times.length,
  bytes: (bytesRead() - readBefore) / times.length,
};
index.close();
process.stdout.write(JSON.stringify(result));
