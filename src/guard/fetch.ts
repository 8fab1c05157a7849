/**
 * Requests that are made only where pagegate allows them. The verdict is asked for in the dispatcher itself, right before the
 * connection, so every hop of a redirect comes by, and whatever is composed around the dispatcher lies outside of it.
 */
import { Agent, type Dispatcher, type RequestInit, fetch as undiciFetch } from 'undici';
import { type ConnectOptions, guardedConnector } from './connections.ts';
import type { Guard } from './guard.ts';
import { refusalIn } from './refusal.ts';
import { bodyOf, requestOf } from './request/caller-types.ts';
import { hasOtherScheme } from './request/scheme.ts';
import { readRequestTarget } from './request/target.ts';

export interface GuardedAgentOptions
  extends Omit<Agent.Options, 'connect' | 'factory' | 'interceptors' | 'socketPath' | 'strictContentLength'> {
  /** Options of the TCP and TLS connections. */
  readonly connect?: ConnectOptions | undefined;
}

/** Statuses whose Location `fetch` follows. */
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** A handler of any of undici's two forms. */
type Handler = Dispatcher.DispatchHandler & { onError?(error: Error): void };

/**
 * An undici dispatcher that judges every request and checks every address. `compose` wraps around it: a redirect, retry or cache
 * interceptor sends each of its requests through the guard, in whatever order they are given.
 */
export class GuardedAgent extends Agent {
  readonly #guard: Guard;

  /**
   * @param options those of an undici Agent; `connect` may hold those of a TLS connection.
   * @throws TypeError where it is given no guard, or something that connects in the place of options
   */
  constructor(guard: Guard, options: GuardedAgentOptions = {}) {
    if (typeof guard?.enforce !== 'function') throw new TypeError('guard: not a Guard');
    // What is longer than the head says would be another request, which nobody judged.
    const strictContentLength = true;
    super({ ...options, strictContentLength, connect: guardedConnector(guard, connectOptionsIn(options)) });
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
    // Read once: the caller may change its options while the verdict is waited for.
    const given: typeof options & { servername?: string } = { ...options };
    const target = readRequestTarget(given);
    if (typeof target === 'string') throw this.#guard.refuse(`${given.origin}`, given.method, target);
    const { url, headers, methods } = target;
    for (const method of methods) await this.#guard.enforce(url, { method });
    // What was judged is sent, in the place of what was given.
    const { query: _query, servername: _servername, ...rest } = given;
    super.dispatch({ ...rest, origin: url.origin, path: url.pathname + url.search, headers: headers.flat() }, handler);
  }
}

/** The options of connections, also those that stand beside `connect`: undici puts them there where it makes the connections itself. */
function connectOptionsIn(options: GuardedAgentOptions): ConnectOptions {
  const { allowH2, maxCachedSessions, connectTimeout, autoSelectFamily, autoSelectFamilyAttemptTimeout } = options;
  if (typeof options.connect === 'function' || (options as Agent.Options).factory !== undefined) {
    throw new TypeError('connect, factory: connections of your own would go past the guard; give options in connect');
  }
  const families = { autoSelectFamily, autoSelectFamilyAttemptTimeout };
  return { allowH2, maxCachedSessions, timeout: connectTimeout, ...families, ...options.connect } as ConnectOptions;
}

/**
 * A `fetch` that makes no request, and follows no redirect, that the guard refuses. It rejects with the RefusedError itself, also where
 * a URL has another scheme than http and https. Its responses are undici's.
 *
 * @throws TypeError where `agent` is something else, such as its options: nothing would be judged
 */
export function createGuardedFetch(guard: Guard, agent: GuardedAgent = new GuardedAgent(guard)): typeof fetch {
  if (!(agent instanceof GuardedAgent)) throw new TypeError('agent: not a GuardedAgent; options go to its constructor');
  const following = agent.compose(
    (dispatch) => (options, handler) => dispatch(options, refusingOtherSchemes(guard, options, handler)),
  );
  const guardedFetch = async (input: unknown, given?: RequestInit | null): Promise<unknown> => {
    const init = given ?? {};
    if (init.dispatcher !== undefined) throw new TypeError('guardedFetch: another dispatcher would bypass the guard');
    const asked = await requestOf(input, init);
    const { url, method, redirect } =
      typeof asked === 'string' ? { url: asked, method: 'GET', redirect: 'follow' } : asked;
    // undici answers such URLs itself (`data:`, `blob:`), without asking the dispatcher.
    if (hasOtherScheme(url)) throw guard.refuse(url, init.method ?? method, 'request_target');
    try {
      const dispatcher = (init.redirect ?? redirect) === 'follow' ? following : agent;
      return await undiciFetch(asked, { ...init, body: bodyOf(init.body), dispatcher });
    } catch (error) {
      throw refusalIn(error) ?? error;
    }
  };
  return guardedFetch as typeof fetch;
}

/** The handler, but that a redirect to another scheme is a refusal; `fetch` would call it a failure of the network. */
function refusingOtherSchemes(
  guard: Guard,
  { origin, path, method }: Dispatcher.DispatchOptions,
  handler: Dispatcher.DispatchHandler,
): Dispatcher.DispatchHandler {
  const passOn = handler.onResponseStart?.bind(handler);
  handler.onResponseStart = (controller, status, headers, ...more) => {
    const location = REDIRECTS.has(status) ? locationOf(headers, `${origin}${path}`) : undefined;
    if (location === undefined || !hasOtherScheme(location)) passOn?.(controller, status, headers, ...more);
    else controller.abort(guard.refuse(location, method, 'request_target'));
  };
  return handler;
}

/** Where a response leads; undefined where that is no URL. */
function locationOf({ location }: { readonly location?: string | string[] }, base: string): string | undefined {
  try {
    return location === undefined ? undefined : new URL(`${location}`, base).href;
  } catch {
    return undefined;
  }
}
