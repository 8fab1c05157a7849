/** A TCP relay on loopback between two programs, which can delay, stall, cut and half-open their connections. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * The state of a relay:
 * - `open`: it passes bytes on, after its delay;
 * - `stalled`: bytes wait until it is open again;
 * - `cut`: all connections are reset, also new ones;
 * - `half_open`: bytes of one direction are lost, and neither end learns that the other has closed. Such a connection never works again.
 */
export type LineState = 'open' | 'stalled' | 'cut' | 'half_open';

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  /** Bytes were lost: the connection is dead, but neither end is notified. */
  isDead: boolean;
}

/** One direction of a connection, with the bytes that wait in the relay. */
class Flow {
  #waiting: { readonly bytes: Buffer; readonly dueMs: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  readonly #to: Socket;
  readonly #isStalled: () => boolean;

  constructor(to: Socket, isStalled: () => boolean) {
    this.#to = to;
    this.#isStalled = isStalled;
  }

  send(bytes: Buffer, delayMs: number): void {
    this.#waiting.push({ bytes, dueMs: performance.now() + delayMs });
    this.flush();
  }

  flush(): void {
    clearTimeout(this.#timer);
    while (!this.#isStalled() && this.#waiting.length > 0) {
      const leftMs = this.#waiting[0]!.dueMs - performance.now();
      if (leftMs > 0.5) {
        this.#timer = setTimeout(() => this.flush(), leftMs);
        return;
      }
      this.#to.write(this.#waiting.shift()!.bytes);
    }
  }
}

export class Relay {
  /** Port of the program to which it connects. A change affects new connections only. */
  target: number;
  /** Delay in each direction, in milliseconds. */
  delayMs = 0;
  port = 0;
  #state: LineState = 'open';
  /** The direction whose bytes a half-open relay loses. */
  #loses: 'there' | 'back' = 'there';
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  readonly #flows = new Set<Flow>();

  private constructor(target: number) {
    this.target = target;
    this.#server = createServer({ noDelay: true }, (near) => this.#accept(near));
  }

  static async open(target: number): Promise<Relay> {
    const relay = new Relay(target);
    relay.#server.listen(0, '127.0.0.1');
    await once(relay.#server, 'listening');
    relay.port = (relay.#server.address() as { port: number }).port;
    return relay;
  }

  get state(): LineState {
    return this.#state;
  }

  set state(state: LineState) {
    this.#state = state;
    if (state === 'cut') this.#reset();
    if (state !== 'stalled') for (const flow of this.#flows) flow.flush();
  }

  /** Loses the bytes of one direction from now on. */
  halfOpen(loses: 'there' | 'back'): void {
    this.#loses = loses;
    this.state = 'half_open';
  }

  async close(): Promise<void> {
    this.#reset();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #reset(): void {
    for (const { near, far } of this.#pairs) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
    this.#pairs.clear();
  }

  #accept(near: Socket): void {
    if (this.#state === 'cut') {
      near.resetAndDestroy();
      return;
    }
    const far = connect({ port: this.target, host: '127.0.0.1', noDelay: true });
    const pair: Pair = { near, far, isDead: false };
    this.#pairs.add(pair);
    this.#join(pair, 'there', near, far);
    this.#join(pair, 'back', far, near);
  }

  #join(pair: Pair, direction: 'there' | 'back', from: Socket, to: Socket): void {
    const flow = new Flow(to, () => this.#state === 'stalled');
    this.#flows.add(flow);
    from.on('data', (bytes: Buffer) => {
      if (this.#state === 'half_open' && direction === this.#loses) pair.isDead = true;
      if (!pair.isDead) flow.send(bytes, this.delayMs);
    });
    from.on('error', () => {});
    from.on('close', () => {
      this.#flows.delete(flow);
      // The other end of a dead connection must not learn that it has ended.
      if (pair.isDead || this.#state === 'half_open') return;
      this.#pairs.delete(pair);
      to.destroy();
    });
  }
}
