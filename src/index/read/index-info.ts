/** What an index says about itself. */
import { COPY_SLACK_BYTES } from '../../bytes/json-pieces.ts';
import type { Header } from '../format/header.ts';
import type { Metadata } from '../format/metadata.ts';
import type { IndexSource } from './index-source.ts';

/** Its metadata and the numbers of its header. `maxAnswerSizeBytes` is what a buffer for answers needs, slack for the copying included. */
export interface IndexInfo extends Metadata {
  readonly path: string;
  /** Format version, `major.minor`. */
  readonly formatVersion: string;
  readonly recordCount: number;
  readonly bucketCount: number;
  readonly sizeBytes: number;
}

/** What header and metadata say of an index. */
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
