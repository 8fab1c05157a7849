/** What is being served: one index generation and one policy, swapped as a whole, each closed when its last request is done. */
import type { Index } from '../../index/read.ts';
import type { Policy } from '../../policy/policy.ts';

/** One consistent pair of data. A request takes it once and uses nothing else. */
export class ActiveData {
  readonly index: Index;
  readonly policy: Policy;
  /** `<index generation>.<policy revision>`, as answers carry it. */
  readonly tag: string;
  /** The three headers of a 200, as the value of the first. */
  readonly headers: Buffer;
  #users = 1;
  readonly #release: (served: ActiveData) => void;

  /** `release` is called once, when nobody uses the pair any more. */
  constructor(index: Index, policy: Policy, contentHeaders: string, release: (served: ActiveData) => void) {
    this.index = index;
    this.policy = policy;
    this.tag = `${index.info.generation}.${policy.revision}`;
    this.headers = Buffer.from(`${contentHeaders}\r\nx-pagegate-data: ${this.tag}`, 'latin1');
    this.#release = release;
  }

  /** Requests (and the server itself) that use the pair. */
  get users(): number {
    return this.#users;
  }

  /** Begins a use that outlasts the current turn. */
  take(): void {
    this.#users += 1;
  }

  /** Ends a use; the last one releases the pair. */
  drop(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#release(this);
  }
}
