/**
 * Makes requests only if pagegate allows them. The dispatcher itself asks for the verdict, directly before the connection. So it judges every
 * hop of a redirect, and interceptors composed around the dispatcher cannot bypass it.
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

/** A handler of either of undici's two kinds. */
type Handler = Dispatcher.DispatchHandler & { onError?(error: Error): void };

/**
 * An undici dispatcher that judges every request and checks every address. Interceptors added with `compose` (redirect, retry, cache) wrap
 * around it, so each of their requests passes the guard, in whatever order they are composed.
 */
export class GuardedAgent extends Agent {
  readonly #guard: Guard;

  /**
   * @param options the options of an undici Agent; `connect` may hold options of the TLS connection.
   * @throws TypeError if `guard` is not a Guard, or if `connect` or `factory` is a function that connects
   */
  constructor(guard: Guard, options: GuardedAgentOptions = {}) {
    if (typeof guard?.enforce !== 'function') throw new TypeError('guard: not a Guard');
    // Body bytes beyond the declared length would be another request, which was not judged.
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
    // Copy them: the caller may change its options while the verdict is awaited.
    const given: typeof options & { servername?: string } = { ...options };
    const target = readRequestTarget(given);
    if (typeof target === 'string') throw this.#guard.refuse(`${given.origin}`, given.method, target);
    const { url, headers, methods } = target;
    for (const method of methods) await this.#guard.enforce(url, { method });
    // Send exactly what was judged, not the caller's original options.
    const { query: _query, servername: _servername, ...rest } = given;
    super.dispatch({ ...rest, origin: url.origin, path: url.pathname + url.search, headers: headers.flat() }, handler);
  }
}

/** Returns the connection options, including those that are set beside `connect`: undici merges these only if it creates the connector itself. */
function connectOptionsIn(options: GuardedAgentOptions): ConnectOptions {
  const { allowH2, maxCachedSessions, connectTimeout, autoSelectFamily, autoSelectFamilyAttemptTimeout } = options;
  if (typeof options.connect === 'function' || (options as Agent.Options).factory !== undefined) {
    throw new TypeError('connect, factory: connections of your own would go past the guard; give options in connect');
  }
  const families = { autoSelectFamily, autoSelectFamilyAttemptTimeout };
  return { allowH2, maxCachedSessions, timeout: connectTimeout, ...families, ...options.connect } as ConnectOptions;
}

/**
 * Creates a `fetch` that makes no request and follows no redirect that the guard refuses. It rejects with the RefusedError itself, also if a URL
 * has a scheme other than http and https. Its responses are undici's.
 *
 * @throws TypeError if `agent` is not a GuardedAgent, such as its options: no request would be judged
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
    // undici answers such URLs (`data:`, `blob:`) itself, without the dispatcher.
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

/** Makes the handler refuse a redirect to another scheme; otherwise, `fetch` would report a network error. */
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

/** Returns the URL in a Location header; undefined if there is none or it is not valid. */
function locationOf({ location }: { readonly location?: string | string[] }, base: string): string | undefined {
  try {
    return location === undefined ? undefined : new URL(`${location}`, base).href;
  } catch {
    return undefined;
  }
}
