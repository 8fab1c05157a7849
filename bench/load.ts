/** A load generator in a process of its own: keep-alive connections, each with one request under way. */
import { connect } from 'node:net';

interface Job {
  readonly port: number;
  readonly key: string;
  readonly domains: readonly string[];
  readonly connections: number;
  readonly durationMs: number;
}

/** What a run measured: answers 200 and others, and every latency in microseconds. */
export interface LoadReport {
  readonly answered: number;
  readonly others: number;
  /** The last of the others. */
  readonly example: string;
  readonly elapsedMs: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

async function run({ port, key, domains, connections, durationMs }: Job): Promise<LoadReport> {
  const requests = domains.map((domain) =>
    Buffer.from(`GET /api/check?url=${domain} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`),
  );
  const latencies: number[] = [];
  let answered = 0;
  let others = 0;
  let example = '';
  let at = 0;
  const startedMs = performance.now();
  const endMs = startedMs + durationMs;
  const connection = (): Promise<void> =>
    new Promise((resolve, reject) => {
      let sentMs = 0;
      // The first byte of the status; an answer may arrive in pieces, and ends with the brace of its body.
      let status = 0;
      const buffer = Buffer.alloc(65_536);
      const socket = connect({
        port,
        host: '127.0.0.1',
        noDelay: true,
        onread: {
          buffer,
          callback: (size) => {
            if (status === 0) status = buffer[9]!;
            if (buffer[size - 1] !== 0x7d) return true;
            if (status === 0x32) answered += 1;
            else {
              others += 1;
              example = buffer.toString('latin1', 0, Math.min(size, 400));
            }
            status = 0;
            const nowMs = performance.now();
            latencies.push(nowMs - sentMs);
            if (nowMs > endMs) socket.destroy();
            else send();
            return true;
          },
        },
      });
      const send = (): void => {
        sentMs = performance.now();
        at = (at + 7) % requests.length;
        socket.write(requests[at]!);
      };
      socket.on('connect', send);
      socket.on('error', reject);
      socket.on('close', () => resolve());
    });
  await Promise.all(Array.from({ length: connections }, connection));
  const sorted = Float64Array.from(latencies).sort();
  const quantile = (share: number): number => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 1000);
  return {
    answered,
    others,
    example,
    elapsedMs: performance.now() - startedMs,
    p50Us: quantile(0.5),
    p99Us: quantile(0.99),
  };
}

process.on('message', (job: Job) => {
  run(job).then(
    (report) => process.send?.(report),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit(0));
