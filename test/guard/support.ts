/** The environment of the guard's tests: a stand-in for pagegate, sites, a DNS server. All on loopback. */
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns';
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import { afterEach, vi } from 'vitest';
import { Guard, type GuardOptions } from '../../src/guard/guard.ts';
import type { Decision } from '../../src/guard/refusal.ts';

export const KEY = 'pg_test-key';

const open: (() => void | Promise<void>)[] = [];

/** Closes something when the test ends. */
export const closeLater = (close: () => void | Promise<void>): void => void open.push(close);

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** A clock that can be advanced until the test ends. */
export function clockAhead(): (seconds: number) => void {
  let aheadMs = 0;
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
  closeLater(() => clock.mockRestore());
  return (seconds) => {
    aheadMs += seconds * 1_000;
  };
}

export interface Site {
  readonly port: number;
  /** Received requests, as `METHOD host path`. */
  readonly reached: string[];
  readonly headers: IncomingHttpHeaders[];
}

/** An HTTP server that records its requests. */
export async function createSite(handler: RequestListener, address = '127.0.0.1', port = 0): Promise<Site> {
  const reached: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    reached.push(`${request.method} ${request.headers.host?.replace(/:[0-9]+$/, '')} ${request.url}`);
    headers.push(request.headers);
    handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  closeLater(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, reached, headers };
}

export interface Judge extends Site {
  readonly url: string;
  /** Received lookups, as `METHOD url`. */
  readonly asked: string[];
}

export type Judging = (url: string, method: string, response: ServerResponse) => string | undefined;

/** A stand-in for pagegate. `judge` returns a verdict, or answers itself and returns undefined. */
export async function createJudge(judge: Judging, data = () => '1.abc'): Promise<Judge> {
  const asked: string[] = [];
  const site = await createSite((request, response) => {
    const { searchParams } = new URL(request.url!, 'http://judge');
    const [url, method] = [searchParams.get('url') ?? '', searchParams.get('method') ?? ''];
    asked.push(`${method} ${url}`);
    const verdict = judge(url, method, response);
    if (verdict === undefined) return;
    response.writeHead(200, { 'content-type': 'application/json', 'x-pagegate-data': data() });
    response.end(JSON.stringify(answerOf(url, verdict)));
  });
  return { ...site, asked, url: `http://127.0.0.1:${site.port}` };
}

/** A verdict in the format of pagegate. */
export function answerOf(url: string, verdict: string): object {
  const matched = { layer: 'rules', id: `${verdict}_id`, note: `Note of ${verdict}.` };
  const { hostname } = new URL(url);
  return { domain: hostname, found: true, page_types: {}, quota_remaining: 9, verdict, matched };
}

/** Denies one path on every host and allows all others. */
export const allowBut =
  (path: string): Judging =>
  (url) =>
    new URL(url).pathname === path ? 'deny' : 'allow';

/** Two names with the address of this host. */
export const HOSTS = ['a.example', 'b.example'];
/** The guard's exceptions for these names, whose address is internal. */
export const EXCEPTIONS = Object.fromEntries(HOSTS.map((host) => [host, '127.0.0.1']));

/** Returns the paths, with queries, that a site received. */
export const pathsOf = ({ reached }: Site): string[] => reached.map((line) => line.split(' ')[2]!);

/** Creates a guard, and collects every decision that it reports. */
export function createGuard(server: string, options: Partial<GuardOptions> = {}): { guard: Guard; seen: Decision[] } {
  const seen: Decision[] = [];
  const guard = new Guard({
    server,
    key: KEY,
    timeoutMs: 20_000,
    onDecision: (decision) => void seen.push(decision),
    ...options,
  });
  closeLater(() => guard.close());
  return { guard, seen };
}

/** Resolves names from a table. Each lookup of a name gets the next list of addresses; the last one is repeated. */
export function names(table: Readonly<Record<string, readonly string[]>>): LookupFunction {
  const left = new Map(Object.entries(table).map(([name, addresses]) => [name, [...addresses]]));
  return (name, _options, found) => {
    const addresses = left.get(name);
    if (addresses === undefined) return found(new Error(`no such name: ${name}`), '', 0);
    const address = addresses.length > 1 ? addresses.shift()! : addresses[0]!;
    return found(null, [{ address, family: address.includes(':') ? 6 : 4 }]);
  };
}

/** Resolves only {@link HOSTS}. */
export const LOOKUP: LookupFunction = names(Object.fromEntries(HOSTS.map((host) => [host, ['127.0.0.1']])));

/** A small DNS server that returns the addresses of a name in turn, with a TTL of 0, and a lookup that queries only this server. */
export async function createDns(table: Readonly<Record<string, readonly string[]>>): Promise<LookupFunction> {
  const turns = new Map<string, number>();
  const socket = createSocket('udp4');
  socket.on('message', (question, peer) => {
    const labels: string[] = [];
    let at = 12;
    for (let length = question[at]!; length > 0; length = question[at]!) {
      labels.push(question.toString('latin1', at + 1, at + 1 + length));
      at += length + 1;
    }
    const name = labels.join('.').toLowerCase();
    const isA = question.readUInt16BE(at + 1) === 1;
    const addresses = table[name] ?? [];
    const turn = turns.get(name) ?? 0;
    const address = isA ? addresses[Math.min(turn, addresses.length - 1)] : undefined;
    if (isA) turns.set(name, turn + 1);
    const head = Buffer.from(question.subarray(0, at + 5));
    head.writeUInt16BE(address === undefined && addresses.length === 0 ? 0x8183 : 0x8180, 2);
    head.writeUInt16BE(address === undefined ? 0 : 1, 6);
    head.writeUInt32BE(0, 8);
    const record =
      address === undefined
        ? Buffer.alloc(0)
        : Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]);
    socket.send(Buffer.concat([head, record]), peer.port, peer.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  closeLater(() => void socket.close());
  const resolver = new Resolver({ timeout: 1_000, tries: 2 });
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  return (name, _options, found) =>
    resolver.resolve4(name, (error, addresses) => {
      if (error) return found(error, '', 0);
      return found(
        null,
        addresses.map((address) => ({ address, family: 4 })),
      );
    });
}
