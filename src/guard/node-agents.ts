/**
 * Agents for programs that make their requests with `node:http` and `node:https`, or with a client on top of them. A request waits until its
 * head is complete and judged. Only then it gets a connection, new or kept alive.
 */
import type { Agent, ClientRequest, AgentOptions as HttpAgentOptions } from 'node:http';
import type { Agent as HttpsAgent, AgentOptions as HttpsAgentOptions } from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { withBrackets, withoutBrackets } from '../network/address.ts';
import { http, https } from '../platform/http.ts';
import { openChecked } from './connections.ts';
import type { Guard } from './guard.ts';
import { endUnsent, endWhenDestroyed, type HeldRequest, headOf, keepToLength, lengthFaultIn } from './request/held.ts';
import { isSentAsJudged, readRequestTarget } from './request/target.ts';

/** Options that can send a connection elsewhere than to the host and port of a URL. */
const PLACES = [
  ...(['fd', 'handle', 'host', 'hostname', 'path', 'port', 'proxyEnv', 'servername', 'socket', 'socketPath'] as const),
  ...(['createConnection', 'defaultPort', 'protocol'] as const),
];
type Place = (typeof PLACES)[number];

export interface GuardedAgentsOptions
  extends Omit<HttpAgentOptions, Place>,
    Omit<HttpsAgentOptions, Place | keyof HttpAgentOptions> {
  /** Resolves names instead of the system's resolver. Its results are checked, too. */
  readonly lookup?: LookupFunction | undefined;
}

export interface GuardedAgents {
  readonly http: Agent;
  readonly https: HttpsAgent;
}

/** The options that Node.js passes to an agent with a request. */
interface Given {
  readonly host: string;
  readonly port: number | string;
  readonly socketPath?: string | undefined;
  readonly lookup?: LookupFunction | undefined;
}

/** Members of Node.js agents that its types lack. */
interface AnyAgent extends Agent {
  readonly protocol: string;
  addRequest(request: ClientRequest, given: Given): void;
}
type AgentClass = new (...options: unknown[]) => AnyAgent;

/** The options of Node.js's default agents. */
const DEFAULTS = { keepAlive: true, scheduling: 'lifo', timeout: 5_000 } as const;

/**
 * Creates agents that judge every request made through them, including redirects that a client follows, and check every address. A refused
 * request fails with the RefusedError, and nothing is sent.
 *
 * @param options the options of an `https.Agent`; those for TLS apply only to `https`
 * @throws TypeError if `guard` is not a Guard, or for an option that would let requests bypass the guard
 */
export function createGuardedAgents(guard: Guard, options: GuardedAgentsOptions = {}): GuardedAgents {
  if (typeof guard?.enforce !== 'function') throw new TypeError('guard: not a Guard');
  const place = PLACES.find((name) => (options as Readonly<Record<string, unknown>>)[name] !== undefined);
  if (place !== undefined) throw new TypeError(`${place}: requests would go past the guard; leave it out`);
  const all = { ...DEFAULTS, ...options };
  const GuardedHttp = guardedClass(http.Agent as unknown as AgentClass, guard, all);
  const GuardedHttps = guardedClass(https.Agent as unknown as AgentClass, guard, all);
  return { http: new GuardedHttp(all), https: new GuardedHttps(all) as unknown as HttpsAgent };
}

/** Creates the agent's class. A class is needed because for a request with `agent: false`, Node.js constructs another agent of the same class. */
function guardedClass(Base: AgentClass, guard: Guard, options: GuardedAgentsOptions): AgentClass {
  return class extends Base {
    constructor(...[given = { ...options, keepAlive: false }]: unknown[]) {
      super(given);
    }

    override addRequest(request: HeldRequest, given: Given): void {
      const release = endWhenDestroyed(request);
      keepToLength(request);
      const judged = headOf(request).then((head) => judge(guard, this.protocol, head, given));
      judged
        .then((place) => release() && super.addRequest(request, { ...given, ...place }))
        // A refusal, or a connection option that is not valid. The code that made the request can no longer catch it, so the request fails with it.
        .catch((error) => release() && endUnsent(request, error));
    }

    override createConnection(given: object, callback?: (error: Error | null, socket: Socket) => void) {
      const { host, port, lookup } = given as Given;
      const url = new URL(`${this.protocol}//${withBrackets(host)}:${port}/`);
      const open = (checked: LookupFunction): Socket =>
        super.createConnection({ ...given, lookup: checked } as never, callback as never) as Socket;
      const opened = openChecked(guard, url, lookup, open);
      if (!(opened instanceof Error)) return opened;
      callback?.(opened, undefined as unknown as Socket);
      return undefined;
    }
  };
}

/**
 * Judges a request by its head. Returns the connection options for the host and port of the URL that was judged.
 *
 * @throws RefusedError
 */
async function judge(guard: Guard, protocol: string, head: string, given: Given): Promise<object> {
  const [line = '', ...fields] = head.trimEnd().split('\r\n');
  const [method = '', path = ''] = line.split(' ');
  const headers = fields.map((field): [string, string] => [
    field.slice(0, field.indexOf(':')),
    field.slice(field.indexOf(':') + 1).trim(),
  ]);
  const values = (wanted: string) => headers.filter(([name]) => name.toLowerCase() === wanted);
  const upgrade = values('upgrade').length > 0;
  const origin = `${protocol}//${withBrackets(given.host)}:${given.port}`;
  const refuse = (id: 'request_target' | 'ambiguous_path' | 'host_header') => guard.refuse(origin + path, method, id);
  if (given.socketPath !== undefined && given.socketPath !== null) throw refuse('request_target');
  const target = readRequestTarget({ origin, path, method, headers: headers.flat(), upgrade });
  if (typeof target === 'string') throw refuse(target);
  // Exactly one Host header is required: servers select the site by it, and Node.js sends it by default.
  if (values('host').length !== 1) throw refuse('host_header');
  if (!/^[\x21-\x7e]*$/.test(path)) throw refuse('request_target');
  const { url, methods } = target;
  if (!isSentAsJudged(url, path)) throw refuse('ambiguous_path');
  const fault = lengthFaultIn(headers);
  if (fault !== undefined) throw new Error(fault);
  for (const meant of methods) await guard.enforce(url, { method: meant });
  const host = withoutBrackets(url.hostname);
  const elsewhere = Object.fromEntries(PLACES.map((name) => [name, undefined]));
  return { ...elsewhere, path: null, host, port: given.port, servername: isIP(host) === 0 ? host : '' };
}
