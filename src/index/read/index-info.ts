/** The facts about an index as a whole. */
import { COPY_SLACK_BYTES } from '../../bytes/json-pieces.ts';
import type { Header } from '../format/header.ts';
import type { Metadata } from '../format/metadata.ts';
import type { IndexSource } from './index-source.ts';

/** The metadata, and the counts in the header. `maxAnswerSizeBytes` is the size of a buffer for answers, including the slack for copying. */
export interface IndexInfo extends Metadata {
  readonly path: string;
  /** Format version, `major.minor`. */
  readonly formatVersion: string;
  readonly recordCount: number;
  readonly bucketCount: number;
  readonly sizeBytes: number;
}

/** Combines header and metadata of an index. */
export function infoOf(source: IndexSource, header: Header, metadata: Metadata): IndexInfo {
  return {
    ...metadata,
    maxAnswerSizeBytes: metadata.maxAnswerSizeBytes + COPY_SLACK_BYTES,
    path: source.path,
    formatVersion: `${header.major}.${header.minor}`,
    recordCount: header.recordCount,
    bucketCount: header.bucketCount,
    sizeBytes: source.sizeBytes,
  };
}
