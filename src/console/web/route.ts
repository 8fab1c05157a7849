/** Routes: what is asked of the console, who may ask it, and what comes back. */
import type { ConsoleContext } from '../context.ts';
import type { Role } from '../store/roles.ts';
import type { Session } from '../store/sessions.ts';
import type { Html } from './html.ts';
import type { Fields } from './request.ts';

/** One request, with who sent it. */
export interface Visit {
  readonly app: ConsoleContext;
  /** The path below the base path, beginning with a slash. */
  readonly path: string;
  /** Decoded parts of the path, by the names that the route gives them. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Fields;
  /** The fields of a POST; empty for a GET. */
  readonly form: Fields;
  /** Undefined where nobody is signed in. */
  readonly session: Session | undefined;
  /** Where the console is: every address of its own begins with it. */
  readonly base: string;
  /** What every form of this visitor must send back. */
  readonly csrf: string;
  /** The address of the browser, or of the proxy before it. */
  readonly address: string;
  /** Scheme, host and port under which the browser has the console; undefined where it does not say. Of a POST it is checked. */
  readonly origin: string | undefined;
  /** Aborted when the browser goes away. */
  readonly signal: AbortSignal;
}

/** A visit of somebody who is signed in. */
export interface SignedVisit extends Visit {
  readonly session: Session;
}

export interface Page {
  readonly kind: 'page';
  readonly title: string;
  readonly body: Html;
  readonly status?: number;
  /** What did not work, shown like a notice. */
  readonly problem?: string;
  /** Whether the browser asks for it once more, at once. */
  readonly isOpenedAgain?: boolean;
  /** Seconds after which the parts marked `data-live` are renewed by the script. */
  readonly renewSeconds?: number;
  /** More of the body, sent as it comes. */
  readonly more?: AsyncIterable<Html>;
}

export interface Redirect {
  readonly kind: 'redirect';
  /** A path below the base path. */
  readonly to: string;
  /** Shown once on the next page. */
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

/** What came of a change. A secret is shown once and kept nowhere. */
export interface Notice {
  readonly tone: 'good' | 'bad';
  readonly text: string;
  readonly secret?: string;
  /** What to do with the secret; where to keep it unless told otherwise. */
  readonly advice?: string;
}

interface Base {
  readonly method: 'GET' | 'POST';
  /** `/accounts/:name`. */
  readonly path: string;
}

/** Open to everybody, signed in or not. */
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

/** A value as a part of a path. */
export const pathSegment = (value: string | number): string => encodeURIComponent(String(value));

/** Finds the route of a path; `methods` are those that the path has. */
export function findRoute(
  routes: readonly Route[],
  method: string,
  path: string,
): { readonly route?: Route; readonly params: Readonly<Record<string, string>>; readonly methods: readonly string[] } {
  const fitting = routes.flatMap((route) => {
    const params = match(route.path, path);
    return params === undefined ? [] : [{ route, params }];
  });
  // What is named exactly comes before what is named by a parameter.
  const best = fitting.sort((a, b) => Object.keys(a.params).length - Object.keys(b.params).length);
  const found = best.find(({ route }) => route.method === method);
  return { ...(found ?? { params: {} }), methods: [...new Set(fitting.map(({ route }) => route.method))] };
}

function match(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [i, part] of wanted.entries()) {
    if (!part.startsWith(':')) {
      if (part !== given[i]) return undefined;
      continue;
    }
    const value = decode(given[i]!);
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
