/** What a guard decided about one request, and the error of a request that was refused. */
import { HTTP_TOKEN } from '../network/http-syntax.ts';

/** Longer methods are not shown; there are none. */
const METHOD_MAX_LENGTH = 32;

/** `error` means that there is no verdict: pagegate was not asked, or gave none that can be used. */
export type GuardVerdict = 'allow' | 'deny' | 'flag' | 'error';

/** The answer to: may this request be made? */
export interface Decision {
  readonly method: string;
  /** The URL as it was asked about. */
  readonly url: string;
  readonly verdict: GuardVerdict;
  /** The layer that decided, as pagegate names it; `guard` where the guard itself refused. */
  readonly layer: string;
  /** The entry that decided; for the layer `guard` one of {@link GUARD_IDS}, or `status_` and an HTTP status. */
  readonly id: string;
  /** What a person, or a model, should know. */
  readonly note: string;
  /** The domain that pagegate judged; empty where it gave no verdict. */
  readonly domain: string;
  readonly found: boolean;
  /** `<index generation>.<policy revision>` of the verdict; empty where pagegate gave none. */
  readonly data: string;
  /** `lookup` cost one lookup; `cache` and `local` cost none; `guard` is a refusal of the guard's own. */
  readonly source: 'lookup' | 'cache' | 'local' | 'guard';
  /** A person approved what was flagged. */
  readonly approved: boolean;
  readonly latencyMs: number;
}

/** Why a guard itself refuses, by id: the note that goes with it. */
export const GUARD_IDS = {
  timeout: 'pagegate did not answer in time. Nothing is fetched without a verdict; try again later.',
  unreachable: 'pagegate cannot be reached. Nothing is fetched without a verdict; try again later.',
  busy: 'Too many requests wait for a verdict. Try again later.',
  closed: 'The guard is closed.',
  bad_answer: 'What answered is not pagegate, or its answer is damaged. Nothing is fetched without a verdict.',
  wrong_domain: 'The answer is about another domain than the one asked about.',
  bad_request: 'The URL or the method cannot be asked about: it is too long, or not one.',
  inside_address: 'The host leads to an address that is not public. This is policy: a retry will not help.',
  host_header: 'A header of the request names another place than its URL. This is policy: a retry will not help.',
  request_target: 'Only http and https URLs can be fetched, written in ASCII, with a path that begins with a slash.',
  ambiguous_path:
    'Sites read the path in different ways: it has dot segments, a backslash or a number sign. Ask for the URL that is meant.',
  service_worker:
    'A service worker has pages fetched that nobody could judge, so there are none. This is policy: a retry will not help.',
} as const;

export type GuardId = keyof typeof GUARD_IDS;

/** Whether a request may be made. */
export function isAllowed(decision: Decision): boolean {
  return decision.verdict === 'allow' || decision.approved;
}

/** One sentence about a decision that a model can act on. Names the origin and leaves out the rest of the URL, which may be secret. */
export function refusalText(decision: Decision): string {
  const { method, verdict, layer, id, note } = decision;
  const person = verdict === 'flag' ? ' A person has to approve it first.' : '';
  // What is no method may be any text, which a reader would take for pagegate's.
  const request = HTTP_TOKEN.test(method) && method.length <= METHOD_MAX_LENGTH ? method : 'a request to';
  return `pagegate refused ${request} ${originOf(decision.url)}: ${verdict} (${layer}/${id}). ${note}${person}`;
}

function originOf(url: string): string {
  try {
    const { protocol, host } = new URL(url);
    return host === '' ? 'this address' : `${protocol}//${host}`;
  } catch {
    return 'this address';
  }
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** A refusal as a web page, for a point that has to show something in the place of the page. */
export function refusalPage(decision: Decision): string {
  const { verdict, layer, id } = decision;
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Refused by pagegate</title></head><body>',
    `<h1>Refused by pagegate</h1><p>${escaped(refusalText(decision))}</p>`,
    `<dl><dt>verdict</dt><dd>${escaped(verdict)}</dd><dt>layer</dt><dd>${escaped(layer)}</dd>`,
    `<dt>id</dt><dd>${escaped(id)}</dd></dl></body></html>\n`,
  ].join('');
}

/** A request was refused. It was not made. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  /** Clients that try again tell by the code of an error whether that is of use: undici's retry does so for every error without one. */
  readonly code = 'PAGEGATE_REFUSED';
  readonly decision: Decision;

  /** @param decision why; its origin and note become the message. */
  constructor(decision: Decision) {
    super(refusalText(decision));
    this.decision = decision;
  }

  get verdict(): GuardVerdict {
    return this.decision.verdict;
  }

  get layer(): string {
    return this.decision.layer;
  }

  get id(): string {
    return this.decision.id;
  }

  get note(): string {
    return this.decision.note;
  }
}

/** The refusal that an error is, or was caused by: `fetch` wraps what stopped it. */
export function refusalIn(error: unknown): RefusedError | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (at instanceof RefusedError) return at;
  }
  return undefined;
}
