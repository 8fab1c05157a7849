/** The data in use: one index generation and one policy, swapped together between two requests. */
import type { Index } from '../../index/read.ts';
import type { Policy } from '../../policy/policy.ts';
import { CONTENT_HEADERS } from '../request/refusal.ts';
import { KeptAnswers } from './kept-answers.ts';

/** One consistent pair of index and policy. A request takes it once, within one turn of the event loop, and uses no other data. */
export class ActiveData {
  readonly index: Index;
  readonly policy: Policy;
  /** `<index generation>.<policy revision>`, the value of the response header `x-pagegate-data`. */
  readonly tag: string;
  /** The headers of a 200 response: one buffer, written as the value of the first header, which contains the line ends and the others. */
  readonly headers: Buffer;
  readonly answers = new KeptAnswers();

  constructor(index: Index, policy: Policy) {
    this.index = index;
    this.policy = policy;
    this.tag = `${index.info.generation}.${policy.revision}`;
    this.headers = Buffer.from(`${CONTENT_HEADERS}\r\nx-pagegate-data: ${this.tag}`, 'latin1');
  }
}
