/** Second half of a build, for one unit (a range of lines of the index): its partitions sorted, arranged, ready to be appended. */
import { PARTITIONS, type Partition, PartitionBuilder } from '../index/writer.ts';
import { PartitionSorter } from './sort-partition.ts';
import { partitionSize, readWord, SPILL_HEADER_BYTES, type SpillFile, spilledSize } from './spill.ts';

/** Units of an index at most: its lines fall into as many equal ranges. */
const UNITS_MAX = PARTITIONS;

/** How hashes, partitions, units and lines lie to each other. */
export interface UnitPlan {
  readonly lineCount: number;
  readonly unitCount: number;
  readonly partitionsPerUnit: number;
}

export interface EncodedUnit {
  readonly partition: Partition;
  /** Entries that a later one of the same domain replaced. */
  readonly duplicates: number;
}

/** Cuts the partitions into units whose hashes fill whole lines: with fewer lines than `UNITS_MAX` that is one unit. */
export function planUnits(partitionBits: number, lineCount: number): UnitPlan {
  const partitionCount = 2 ** partitionBits;
  const unitCount = lineCount % UNITS_MAX === 0 ? Math.min(partitionCount, UNITS_MAX) : 1;
  return { lineCount, unitCount, partitionsPerUnit: partitionCount / unitCount };
}

/** Encodes units; its memory is used again for each. */
export class UnitEncoder {
  readonly #files: readonly SpillFile[];
  readonly #plan: UnitPlan;
  readonly #sorter = new PartitionSorter();

  constructor(files: readonly SpillFile[], plan: UnitPlan) {
    this.#files = files;
    this.#plan = plan;
  }

  encode(unit: number): EncodedUnit {
    const { lineCount, unitCount, partitionsPerUnit } = this.#plan;
    const linesPerUnit = lineCount / unitCount;
    const first = unit * partitionsPerUnit;
    let sizeHint = 1024;
    for (let i = 0; i < partitionsPerUnit; i++) sizeHint += partitionSize(this.#files, first + i);
    const builder = new PartitionBuilder(unit * linesPerUnit, (unit + 1) * linesPerUnit, lineCount, sizeHint);
    let duplicates = 0;
    for (let i = 0; i < partitionsPerUnit; i++) {
      this.#sorter.load(this.#files, first + i);
      this.#addAll(builder);
      duplicates += this.#sorter.duplicates;
    }
    return { partition: builder.finish(), duplicates };
  }

  #addAll(builder: PartitionBuilder): void {
    const { bytes, order, count } = this.#sorter;
    for (let i = 0; i < count; i++) {
      const at = order[i]!;
      const start = at + SPILL_HEADER_BYTES;
      builder.add(readWord(bytes, at), readWord(bytes, at + 4), bytes, start, start + spilledSize(bytes, at));
    }
  }
}
