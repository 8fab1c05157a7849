/** A load generator in a process of its own: keep-alive connections, each with one request under way. */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** What is asked, and where. */
export interface LoadTarget {
  readonly port: number;
  /** Certificate to trust; without one it is plain HTTP. */
  readonly certificate?: string;
  /** Request targets, one a line, asked in their order. */
  readonly requestsFile: string;
  /** API keys, used in turn. */
  readonly keys: readonly string[];
}

/** First `connect`, answered when all connections are open, then `run`, answered with a report. */
export type LoadJob =
  | { readonly kind: 'connect'; readonly target: LoadTarget; readonly connections: number }
  | ({ readonly kind: 'run' } & LoadLength);

/** A run ends with whichever comes first: what else uses the machine then changes how long it takes, and hardly what it measures. */
export interface LoadLength {
  readonly requests: number;
  readonly durationMs: number;
  /**
   * The generator looks for answers without a pause. One that sleeps while it waits must be woken by the server's kernel: beside a server that is
   * slower than it, with each answer, beside a faster one never.
   */
  readonly staysAwake?: boolean;
}

/** What a run measured: answers 200 and others, and latencies in microseconds. */
export interface LoadReport {
  readonly answered: number;
  readonly others: number;
  /** The last of the others. */
  readonly example?: string;
  readonly elapsedMs: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

const CLOSING_BRACE = 0x7d;
/** The first digit of the status. */
const STATUS_AT = 'HTTP/1.1 '.length;

/** As a common HTTP client sends it: six headers. */
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

  /** For each socket, when its request was sent, and the first digit of the status of an answer that came in part. */
  readonly #sent = new Map<Socket, { ms: number; status: number }>();

  /** An answer may arrive in pieces, and ends with the brace of its body. */
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

  /** Asks, waits for the last answers, and closes the connections. */
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
