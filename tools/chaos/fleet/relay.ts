/** A line between two programs: a TCP relay on loopback that delays, stalls, cuts and half-opens what goes through it. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * What a line does:
 * - `open`: it passes bytes on, after its delay;
 * - `stalled`: bytes wait, and come when it is open again;
 * - `cut`: connections are reset, new ones too;
 * - `half_open`: bytes of one direction are lost, and no end is told; such a connection never works again.
 */
export type LineState = 'open' | 'stalled' | 'cut' | 'half_open';

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  /** Bytes were lost: it is dead, and nobody is told. */
  isDead: boolean;
}

/** One direction of a connection: what is under way on it. */
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
  /** Port of the program that it leads to; open connections stay where they are. */
  target: number;
  /** Each way, in milliseconds. */
  delayMs = 0;
  port = 0;
  #state: LineState = 'open';
  /** Which bytes a half-open line loses. */
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
      // A dead connection tells nobody that it has ended.
      if (pair.isDead || this.#state === 'half_open') return;
      this.#pairs.delete(pair);
      to.destroy();
    });
  }
}
