/** Inspects the answers of a subject of the HTTP bench before it is measured. */
import { get } from 'node:http';
import { get as getTls } from 'node:https';
import type { ComparedServer, TlsFiles } from './compared-servers.ts';
import type { FixedAnswer } from './fixed.ts';

/** A summary of a subject's answers to sample requests. */
export interface Survey {
  readonly answer: FixedAnswer;
  /** Share of requests with a record, in percent. Those in `verdicts` are in percent, too. */
  readonly found: number;
  readonly verdicts: Readonly<Record<string, number>>;
}

const SURVEYED = 2_000;
const TRANSPORTS_OWN = new Set(['content-length', 'date', 'uwebsockets', 'connection', 'keep-alive']);

/** Sends the requests one after the other. Returns the size and headers of the answers, and the shares of their contents. */
export async function survey(subject: ComparedServer, targets: readonly string[], tls?: TlsFiles): Promise<Survey> {
  let headers: FixedAnswer['headers'] = [];
  let bytes = 0;
  let found = 0;
  const verdicts: Record<string, number> = {};
  const sampled = targets.slice(0, SURVEYED);
  for (const target of sampled) {
    const { body, rawHeaders } = await askOnce(subject, target, tls);
    headers = rawHeaders.filter(([name]) => !TRANSPORTS_OWN.has(name.toLowerCase()));
    bytes += Buffer.byteLength(body);
    const answer = JSON.parse(body) as { found: boolean; verdict: string };
    if (answer.found) found += 1;
    verdicts[answer.verdict] = (verdicts[answer.verdict] ?? 0) + 1;
  }
  const percent = (count: number): number => Math.round((100 * count) / sampled.length);
  return {
    answer: { headers, bodySize: Math.round(bytes / sampled.length) },
    found: percent(found),
    verdicts: Object.fromEntries(Object.entries(verdicts).map(([verdict, count]) => [verdict, percent(count)])),
  };
}

function askOnce(
  { port, keys }: ComparedServer,
  path: string,
  tls: TlsFiles | undefined,
): Promise<{ body: string; rawHeaders: [string, string][] }> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, headers: { 'x-api-key': keys[0] } };
    const request =
      tls === undefined ? get(options) : getTls({ ...options, ca: tls.certificate, servername: 'localhost' });
    request.on('error', reject);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const body = Buffer.concat(chunks).toString('utf8');
        if (response.statusCode !== 200) reject(new Error(`${path}: ${response.statusCode} ${body}`));
        const raw = response.rawHeaders;
        const rawHeaders = Array.from({ length: raw.length / 2 }, (_, i): [string, string] => [
          raw[2 * i]!,
          raw[2 * i + 1]!,
        ]);
        resolve({ body, rawHeaders });
      });
    });
  });
}
