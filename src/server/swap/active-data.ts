/** What is being served: one index generation and one policy, swapped as a whole between two requests. */
import type { Index } from '../../index/read.ts';
import type { Policy } from '../../policy/policy.ts';
import { CONTENT_HEADERS } from '../request/refusal.ts';
import { KeptAnswers } from './kept-answers.ts';

/** One consistent pair of data. A request takes it once, within one turn, and uses nothing else. */
export class ActiveData {
  readonly index: Index;
  readonly policy: Policy;
  /** `<index generation>.<policy revision>`, as answers carry it. */
  readonly tag: string;
  /** The three headers of a 200, as the value of the first. */
  readonly headers: Buffer;
  readonly answers = new KeptAnswers();

  constructor(index: Index, policy: Policy) {
    this.index = index;
    this.policy = policy;
    this.tag = `${index.info.generation}.${policy.revision}`;
    this.headers = Buffer.from(`${CONTENT_HEADERS}\r\nx-pagegate-data: ${this.tag}`, 'latin1');
  }
}
