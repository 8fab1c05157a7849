/** The clients that send requests for one account to all nodes, and the answers that they have read. */
import { CYCLE_SECONDS } from '../../../src/ledger/cycle.ts';
import { Client } from '../counting-client.ts';
import type { ChaosNode } from './node.ts';

/** How far a node's estimate of the database's clock may be off. Answers this near to a boundary can belong to either cycle. */
const BOUNDARY_MS = 1_500;
const PAUSE_MS = 4;
const CLIENTS_PER_NODE = 3;
/** Number of refusals in a row after which a client assumes that the quota is used. */
const REFUSALS = 4;

/** An answer of a node, with the times of its request and its end in milliseconds since 1970. */
export interface TimedAnswer {
  readonly node: string;
  readonly status: number;
  readonly sentMs: number;
  readonly readMs: number;
}

export class FleetClients {
  readonly #key: string;
  readonly #clients: Client[] = [];
  readonly #running: Promise<void>[] = [];
  readonly #answers: TimedAnswer[] = [];

  constructor(key: string) {
    this.#key = key;
  }

  /** Starts clients that send requests to a node until they are stopped. */
  join(node: ChaosNode): void {
    for (let i = 0; i < CLIENTS_PER_NODE; i += 1) {
      this.#run(new Client(node.port, this.#key, { pauseMs: PAUSE_MS, onAnswer: this.#note(node.name) }));
    }
  }

  /** Ends the clients of a node after their requests in flight. */
  async leave(node: ChaosNode): Promise<void> {
    const leaving = this.#clients.filter(({ port }) => port === node.port);
    for (const client of leaving) client.stop();
    await Promise.all(this.#running.filter((_, i) => leaving.includes(this.#clients[i]!)));
  }

  /** Sends requests to nodes until each refuses several in a row because the quota is used. Returns false after the deadline. */
  async drain(nodes: readonly ChaosNode[], deadlineMs: number): Promise<boolean> {
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      for (const client of this.#clients) client.stop();
    }, deadlineMs);
    await Promise.all(
      nodes.flatMap((node) =>
        Array.from({ length: CLIENTS_PER_NODE }, () => {
          let refusals = 0;
          const note = this.#note(node.name);
          const client: Client = new Client(node.port, this.#key, {
            pauseMs: 1,
            onAnswer: (status, sentMs) => {
              note(status, sentMs);
              refusals = status === 403 ? refusals + 1 : 0;
              if (refusals === REFUSALS) client.stop();
            },
          });
          return this.#run(client);
        }),
      ),
    );
    clearTimeout(late);
    return !isLate;
  }

  /** Ends all clients after their requests in flight. */
  async stop(): Promise<void> {
    for (const client of this.#clients) client.stop();
    await Promise.all(this.#running);
  }

  get answers(): readonly TimedAnswer[] {
    return this.#answers;
  }

  count(status: number): number {
    return this.#answers.reduce((sum, answer) => sum + (answer.status === status ? 1 : 0), 0);
  }

  /** Number of requests without a complete answer. */
  get unanswered(): number {
    return this.#clients.reduce((sum, { unanswered }) => sum + unanswered, 0);
  }

  /**
   * Counts the 200 answers that certainly belong to a cycle.
   *
   * @param boundaryMs the end of cycle 0; undefined if there is no other cycle.
   */
  readIn(cycle: number, boundaryMs: number | undefined): number {
    if (boundaryMs === undefined) return this.count(200);
    const isOf = ({ status, sentMs, readMs }: TimedAnswer): boolean =>
      status === 200 &&
      sentMs > boundaryMs + (cycle - 1) * CYCLE_SECONDS * 1_000 + BOUNDARY_MS &&
      readMs < boundaryMs + cycle * CYCLE_SECONDS * 1_000 - BOUNDARY_MS;
    return this.#answers.filter(isOf).length;
  }

  #run(client: Client): Promise<void> {
    this.#clients.push(client);
    const running = client.run();
    this.#running.push(running);
    return running;
  }

  #note(node: string) {
    return (status: number, sentMs: number): void => {
      this.#answers.push({ node, status, sentMs, readMs: Date.now() });
    };
  }
}
