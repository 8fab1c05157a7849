/** Routes of the console: the request, the roles that may make it, and the reply. */
import type { ConsoleContext } from '../context.ts';
import type { Role } from '../store/roles.ts';
import type { Session } from '../store/sessions.ts';
import type { Html } from './html.ts';
import type { Fields } from './request.ts';

/** A request with its session. */
export interface Visit {
  readonly app: ConsoleContext;
  /** The path below the base path, beginning with a slash. */
  readonly path: string;
  /** Decoded path parameters, by their names in the route. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Fields;
  /** The fields of a POST; empty for a GET. */
  readonly form: Fields;
  /** Undefined if nobody is signed in. */
  readonly session: Session | undefined;
  /** The base path: every path of the console begins with it. */
  readonly base: string;
  /** The token that every form of this page must send back. */
  readonly csrf: string;
  /** The address of the browser, or of the proxy in front of it. */
  readonly address: string;
  /** Scheme, host and port by which the browser reaches the console; undefined if it does not send them. Checked for a POST. */
  readonly origin: string | undefined;
  /** Aborted when the browser goes away. */
  readonly signal: AbortSignal;
}

/** A visit with a session. */
export interface SignedVisit extends Visit {
  readonly session: Session;
}

export interface Page {
  readonly kind: 'page';
  readonly title: string;
  readonly body: Html;
  readonly status?: number;
  /** The error message, shown like a notice. */
  readonly problem?: string;
  /** Whether the browser requests the page again at once. */
  readonly isOpenedAgain?: boolean;
  /** Seconds after which the script renews the parts marked `data-live`. */
  readonly renewSeconds?: number;
  /** The rest of the body, sent in parts as it is produced. */
  readonly more?: AsyncIterable<Html>;
}

export interface Redirect {
  readonly kind: 'redirect';
  /** A path below the base path. */
  readonly to: string;
  /** Shown once, on the page at `to`. */
  readonly notice?: Notice;
  /** A new session's token; an empty one ends the session. */
  readonly session?: string;
}

/** A file to save. */
export interface Download {
  readonly kind: 'download';
  readonly name: string;
  readonly type: string;
  readonly body: AsyncIterable<string>;
}

export type Reply = Page | Redirect | Download;

/** The outcome of a change. A secret is shown once and stored nowhere. */
export interface Notice {
  readonly tone: 'good' | 'bad';
  readonly text: string;
  readonly secret?: string;
  /** What to do with the secret; by default, where to keep it. */
  readonly advice?: string;
}

interface Base {
  readonly method: 'GET' | 'POST';
  /** `/accounts/:name`. */
  readonly path: string;
}

/** A route that needs no session. */
export interface OpenRoute extends Base {
  readonly roles: 'anybody';
  readonly handle: (visit: Visit) => Promise<Reply> | Reply;
}

export interface SignedRoute extends Base {
  readonly roles: readonly Role[];
  readonly handle: (visit: SignedVisit) => Promise<Reply> | Reply;
}

export type Route = OpenRoute | SignedRoute;

export const STAFF: readonly Role[] = ['operator', 'viewer'];
export const OPERATOR: readonly Role[] = ['operator'];
export const ACCOUNT: readonly Role[] = ['account'];
export const EVERY_ROLE: readonly Role[] = ['operator', 'viewer', 'account'];

/** Returns a value as a path segment. */
export const pathSegment = (value: string | number): string => encodeURIComponent(String(value));

/** Finds the route for a method and a path; `methods` are the methods of all routes for this path. */
export function findRoute(
  routes: readonly Route[],
  method: string,
  path: string,
): { readonly route?: Route; readonly params: Readonly<Record<string, string>>; readonly methods: readonly string[] } {
  const matching = routes.flatMap((route) => {
    const params = match(route.path, path);
    return params === undefined ? [] : [{ route, params }];
  });
  // Literal segments have precedence over parameters.
  const best = matching.sort((a, b) => Object.keys(a.params).length - Object.keys(b.params).length);
  const found = best.find(({ route }) => route.method === method);
  return { ...(found ?? { params: {} }), methods: [...new Set(matching.map(({ route }) => route.method))] };
}

function match(pattern: string, path: string): Record<string, string> | undefined {
  const parts = pattern.split('/');
  const segments = path.split('/');
  if (parts.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [i, part] of parts.entries()) {
    if (!part.startsWith(':')) {
      if (part !== segments[i]) return undefined;
      continue;
    }
    const value = decode(segments[i]!);
    if (value === undefined || value === '') return undefined;
    params[part.slice(1)] = value;
  }
  return params;
}

function decode(text: string): string | undefined {
  try {
    const value = decodeURIComponent(text);
    return /[\0/\\]/.test(value) ? undefined : value;
  } catch {
    return undefined;
  }
}
