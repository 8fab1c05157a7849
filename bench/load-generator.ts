/** The program of the load generator: keep-alive connections with one open request each. */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** The server and the requests that are sent to it. */
export interface LoadTarget {
  readonly port: number;
  /** Certificate to trust. Without it, plain HTTP is used. */
  readonly certificate?: string;
  /** File of request targets, one per line, sent in order. */
  readonly requestsFile: string;
  /** API keys, used in turn. */
  readonly keys: readonly string[];
}

/** The messages to the generator: first `connect`, answered when all connections are open, then `run`, answered with a report. */
export type LoadJob =
  | { readonly kind: 'connect'; readonly target: LoadTarget; readonly connections: number }
  | ({ readonly kind: 'run' } & LoadLength);

/** The limits of a run; it ends when the first is reached. Other programs on the machine then change its duration, but hardly its results. */
export interface LoadLength {
  readonly requests: number;
  readonly durationMs: number;
  /**
   * Whether the generator polls for answers without sleeping. A generator that sleeps must be woken, and the server pays for that: with a server
   * slower than the generator, for each answer; with a faster one, never.
   */
  readonly staysAwake?: boolean;
}

/** The results of a run: number of 200 answers and of others, and latencies in microseconds. */
export interface LoadReport {
  readonly answered: number;
  readonly others: number;
  /** The last answer that was not a 200. */
  readonly example?: string;
  readonly elapsedMs: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

const CLOSING_BRACE = 0x7d;
/** Offset of the first digit of the status. */
const STATUS_AT = 'HTTP/1.1 '.length;

/** Returns a request with six headers, as a common HTTP client sends it. */
function requestOf(target: string, key: string): Buffer {
  return Buffer.from(
    `GET ${target} HTTP/1.1\r\nHost: pagegate.internal:8080\r\nUser-Agent: python-requests/2.32.3\r\n` +
      `Accept-Encoding: gzip, deflate\r\nAccept: */*\r\nConnection: keep-alive\r\nX-API-Key: ${key}\r\n\r\n`,
  );
}

class Load {
  readonly #requests: readonly Buffer[];
  readonly #target: LoadTarget;
  #sockets: Socket[] = [];
  #latencies: number[] = [];
  #answered = 0;
  #others = 0;
  #example = '';
  #at = 0;
  #left = 0;
  #endMs = 0;

  constructor(target: LoadTarget) {
    this.#target = target;
    const targets = readFileSync(target.requestsFile, 'utf8').trimEnd().split('\n');
    this.#requests = targets.map((line, i) => requestOf(line, target.keys[i % target.keys.length] ?? ''));
  }

  async connect(connections: number): Promise<void> {
    this.#sockets = await Promise.all(Array.from({ length: connections }, () => this.#open()));
  }

  #open(): Promise<Socket> {
    const { port, certificate } = this.#target;
    const onData = (chunk: Buffer, size: number): void => this.#read(socket, chunk, size);
    const buffer = Buffer.alloc(65_536);
    const callback = (size: number): boolean => {
      onData(buffer, size);
      return true;
    };
    const socket =
      certificate === undefined
        ? connect({ port, host: '127.0.0.1', noDelay: true, onread: { buffer, callback } })
        : connectTls({ port, host: '127.0.0.1', ca: certificate, servername: 'localhost' });
    if (certificate !== undefined) socket.on('data', (chunk: Buffer) => onData(chunk, chunk.length));
    return new Promise((resolve, reject) => {
      socket.once(certificate === undefined ? 'connect' : 'secureConnect', () => resolve(socket));
      socket.once('error', reject);
    });
  }

  /** For each socket, when its request was sent, and the first digit of the status if part of the answer has arrived. */
  readonly #sent = new Map<Socket, { ms: number; status: number }>();

  /** Handles a chunk. An answer may arrive in several chunks; it ends with the closing brace of its body. */
  #read(socket: Socket, chunk: Buffer, size: number): void {
    const sent = this.#sent.get(socket)!;
    if (sent.status === 0) sent.status = chunk[STATUS_AT]!;
    if (chunk[size - 1] !== CLOSING_BRACE) return;
    if (sent.status === 0x32) this.#answered += 1;
    else {
      this.#others += 1;
      this.#example = chunk.toString('latin1', 0, Math.min(size, 400));
    }
    const nowMs = performance.now();
    this.#latencies.push(nowMs - sent.ms);
    if (nowMs > this.#endMs || this.#left <= 0) socket.destroy();
    else this.#send(socket, sent);
  }

  #send(socket: Socket, sent: { ms: number; status: number }): void {
    this.#left -= 1;
    sent.status = 0;
    sent.ms = performance.now();
    socket.write(this.#requests[this.#at]!);
    this.#at = this.#at + 1 === this.#requests.length ? 0 : this.#at + 1;
  }

  /** Sends requests, waits for the last answers, and closes the connections. */
  async run({ requests, durationMs, staysAwake = false }: LoadLength): Promise<LoadReport> {
    this.#latencies = [];
    this.#answered = 0;
    this.#others = 0;
    this.#left = requests;
    const startedMs = performance.now();
    this.#endMs = startedMs + durationMs;
    let polls = staysAwake;
    const poll = (): void => {
      if (polls) setImmediate(poll);
    };
    poll();
    await Promise.all(
      this.#sockets.map(
        (socket) =>
          new Promise<void>((resolve, reject) => {
            socket.once('close', () => resolve());
            socket.once('error', reject);
            const sent = { ms: 0, status: 0 };
            this.#sent.set(socket, sent);
            this.#send(socket, sent);
          }),
      ),
    );
    const elapsedMs = performance.now() - startedMs;
    polls = false;
    this.#sent.clear();
    const sorted = Float64Array.from(this.#latencies).sort();
    const quantile = (share: number): number => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 1000);
    return {
      answered: this.#answered,
      others: this.#others,
      example: this.#example,
      elapsedMs,
      p50Us: quantile(0.5),
      p99Us: quantile(0.99),
    };
  }
}

const loads = new Map<string, Load>();
let load: Load | undefined;

async function work(job: LoadJob): Promise<LoadReport | 'connected'> {
  if (job.kind === 'run') return load!.run(job);
  const id = JSON.stringify(job.target);
  load = loads.get(id) ?? new Load(job.target);
  loads.set(id, load);
  await load.connect(job.connections);
  return 'connected';
}

process.on('message', (job: LoadJob) => {
  work(job).then(
    (answer) => process.send?.(answer),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit(0));
