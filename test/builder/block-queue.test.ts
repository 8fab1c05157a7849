/** The queue through which the workers of a scan share blocks of lines. */
import { describe, expect, it } from 'vitest';
import { BlockQueue, type QueuedBlock } from '../../src/builder/scan/block-queue.ts';

/** Returns the queues of that many workers over one shared memory. */
function queues(workers: number, parts: number): BlockQueue[] {
  const memory = BlockQueue.allocate(workers, parts);
  return Array.from({ length: workers }, (_, worker) => new BlockQueue(memory, worker));
}

function put(queue: BlockQueue, part: number, firstLine: number, text = 'x'): void {
  const space = queue.reserve()!;
  queue.put(space, space.bytes.write(text), part, firstLine);
}

describe('the queue of a scan', () => {
  it('gives each part to one worker', () => {
    const [a, b] = queues(2, 3) as [BlockQueue, BlockQueue];
    expect([a.beginPart(), b.beginPart(), b.beginPart()]).toEqual([0, 1, 2]);
    expect(a.beginPart()).toBeGreaterThanOrEqual(3);
    for (const queue of [a, b, b]) {
      expect(queue.isAllScanned).toBe(false);
      queue.endPart();
    }
    expect(a.isAllScanned).toBe(true);
  });

  it('returns blocks in order of arrival, with all their metadata', () => {
    const [a, b] = queues(2, 2) as [BlockQueue, BlockQueue];
    a.beginPart();
    b.beginPart();
    put(a, 0, 1, 'first');
    put(b, 1, 1, 'second');
    put(a, 0, 2 ** 40 - 1, 'third');
    const blocks = Array.from({ length: 3 }, () => b.take()!);
    expect(blocks.map(({ lines, part, firstLine, reader }) => [lines.toString(), part, firstLine, reader])).toEqual([
      ['first', 0, 1, 0],
      ['second', 1, 1, 1],
      ['third', 0, 2 ** 40 - 1, 0],
    ]);
    expect(b.take()).toBeUndefined();
  });

  it('reports to a reader how much of its part has been scanned, by any worker', () => {
    const [a, b] = queues(2, 2) as [BlockQueue, BlockQueue];
    a.beginPart();
    b.beginPart();
    put(a, 0, 1);
    put(b, 1, 1);
    put(a, 0, 8);
    for (const [i, block] of [b.take()!, a.take()!, b.take()!].entries()) {
      expect(a.isPartScanned).toBe(false);
      b.release(block, 10 ** i);
    }
    expect([a.isPartScanned, a.counted, b.isPartScanned, b.counted]).toEqual([true, 101, true, 10]);
    a.endPart();
    a.beginPart();
    expect(a.counted).toBe(0);
  });

  it('has memory for four blocks per worker, and reuses it', () => {
    const [queue] = queues(1, 1) as [BlockQueue];
    const numbers = new Set<number>();
    for (let round = 0; round < 3; round += 1) {
      const blocks: QueuedBlock[] = [];
      for (let i = 0; i < 4; i += 1) put(queue, 0, i + 1);
      expect(queue.reserve()).toBeUndefined();
      for (let block = queue.take(); block !== undefined; block = queue.take()) blocks.push(block);
      for (const block of blocks) {
        numbers.add(block.space.number);
        queue.release(block, 1);
      }
    }
    expect(numbers.size).toBe(4);
    expect(queue.counted).toBe(12);
  });

  it('lets a worker keep a block of its own if there are no helpers, and has some for each helper', () => {
    const [reader, helper] = queues(2, 1) as [BlockQueue, BlockQueue];
    reader.beginPart();
    expect(reader.hasSurplus).toBe(false);
    put(reader, 0, 1);
    expect(reader.hasSurplus).toBe(true);
    let scanned = 0;
    const surplus: boolean[] = [];
    const scan = (block: QueuedBlock): void => {
      for (let i = 2; scanned === 0 && i <= 4; i += 1) {
        put(reader, 0, i);
        surplus.push(reader.hasSurplus);
      }
      scanned += 1;
      helper.release(block, 1);
    };
    helper.help(scan, () => reader.isPartScanned);
    expect([surplus, scanned]).toEqual([[false, false, true], 4]);
    expect(reader.hasSurplus).toBe(false);
  });
});
