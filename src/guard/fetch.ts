/**
 * Requests that are made only where pagegate allows them. The verdict is asked for in the dispatcher itself, right before the
 * connection, so every hop of a redirect comes by, and whatever is composed around the dispatcher lies outside of it.
 */
import { Agent, type Dispatcher, Request, fetch as undiciFetch } from 'undici';
import { type ConnectOptions, guardedConnector } from './connections.ts';
import type { Guard } from './guard.ts';
import { refusalIn } from './refusal.ts';
import { readTarget } from './request/target.ts';

export interface GuardedAgentOptions
  extends Omit<Agent.Options, 'connect' | 'factory' | 'interceptors' | 'socketPath'> {
  /** Options of the TCP and TLS connections. */
  readonly connect?: ConnectOptions;
}

/** A handler of any of undici's two forms. */
type Handler = Dispatcher.DispatchHandler & { onError?(error: Error): void };

/**
 * An undici dispatcher that judges every request and checks every address. `compose` wraps around it: a redirect, retry or cache
 * interceptor sends each of its requests through the guard, in whatever order they are given.
 */
export class GuardedAgent extends Agent {
  readonly #guard: Guard;

  /** @param options those of an undici Agent; `connect` may hold those of a TLS connection. */
  constructor(guard: Guard, { connect = {}, ...options }: GuardedAgentOptions = {}) {
    super({ ...options, connect: guardedConnector(guard, connect) });
    this.#guard = guard;
  }

  override dispatch(options: Agent.DispatchOptions, handler: Handler): boolean {
    this.#dispatch(options, handler).catch((error) => {
      if (handler.onResponseError) handler.onResponseError(null as unknown as Dispatcher.DispatchController, error);
      else handler.onError?.(error);
    });
    return true;
  }

  async #dispatch(options: Agent.DispatchOptions, handler: Handler): Promise<void> {
    const target = readTarget(options);
    if (typeof target === 'string') throw this.#guard.refuse(`${options.origin}`, options.method, target);
    const { url, headers, methods } = target;
    for (const method of methods) await this.#guard.enforce(url, { method });
    // What was judged is sent, in the place of what was given.
    const { query: _query, servername: _servername, ...rest } = options as typeof options & { servername?: string };
    super.dispatch({ ...rest, origin: url.origin, path: url.pathname + url.search, headers: headers.flat() }, handler);
  }
}

/**
 * A `fetch` that makes no request, and follows no redirect, that the guard refuses. It rejects with the RefusedError itself.
 * Its responses are undici's.
 */
export function createGuardedFetch(guard: Guard, agent: GuardedAgent = new GuardedAgent(guard)): typeof fetch {
  const guardedFetch = async (input: unknown, init: object = {}): Promise<unknown> => {
    if ('dispatcher' in init) throw new TypeError('guardedFetch: another dispatcher would bypass the guard');
    try {
      return await undiciFetch(asUndici(input), { ...init, dispatcher: agent });
    } catch (error) {
      throw refusalIn(error) ?? error;
    }
  };
  return guardedFetch as typeof fetch;
}

/** A Request of the platform's own fetch, as one of undici's. */
function asUndici(input: unknown): string | URL | Request {
  if (!(input instanceof globalThis.Request) || input instanceof Request) return input as string | URL | Request;
  const { url, method, signal, redirect, body } = input;
  const init = { method, signal, redirect, headers: [...input.headers], ...(body && { body, duplex: 'half' }) };
  return new Request(url, init as ConstructorParameters<typeof Request>[1]);
}
