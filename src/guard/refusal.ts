/** The decision of a guard about one request, and the error of a refused request. */
import { HTTP_TOKEN } from '../network/http-syntax.ts';

/** Longer methods are not shown; no registered method is as long. */
const METHOD_MAX_LENGTH = 32;

/** `error` means that there is no verdict: pagegate was not asked, or its answer cannot be used. */
export type GuardVerdict = 'allow' | 'deny' | 'flag' | 'error';

/** The decision whether a request may be made. */
export interface Decision {
  readonly method: string;
  /** The URL as the caller gave it. */
  readonly url: string;
  readonly verdict: GuardVerdict;
  /** The layer that decided, as pagegate names it; `guard` if the guard itself refused. */
  readonly layer: string;
  /** Id of the policy entry that decided; for the layer `guard`, one of {@link GUARD_IDS}, or `status_` and an HTTP status. */
  readonly id: string;
  /** Explanation for a person or a model. */
  readonly note: string;
  /** The domain that pagegate judged; empty if it gave no verdict. */
  readonly domain: string;
  readonly found: boolean;
  /** `<index generation>.<policy revision>` of the verdict; empty if pagegate gave none. */
  readonly data: string;
  /** `lookup` cost one lookup; `cache` and `local` cost none; `guard` is a refusal by the guard itself. */
  readonly source: 'lookup' | 'cache' | 'local' | 'guard';
  /** Whether a person approved the flagged request. */
  readonly approved: boolean;
  readonly latencyMs: number;
}

/** Reasons for refusals by the guard itself: the note for each id. */
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

/** Returns a text about a decision that a model can act on. It names the origin and leaves out the rest of the URL, which may be secret. */
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

/** Returns a refusal as a web page, for enforcement points that must show something instead of the requested page. */
export function refusalPage(decision: Decision): string {
  const { verdict, layer, id } = decision;
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Refused by pagegate</title></head><body>',
    `<h1>Refused by pagegate</h1><p>${escaped(refusalText(decision))}</p>`,
    `<dl><dt>verdict</dt><dd>${escaped(verdict)}</dd><dt>layer</dt><dd>${escaped(layer)}</dd>`,
    `<dt>id</dt><dd>${escaped(id)}</dd></dl></body></html>\n`,
  ].join('');
}

/** The error of a request that was refused and therefore not made. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  /** Keeps clients from retrying: they decide by the code of an error, and undici's retry interceptor retries every error without one. */
  readonly code = 'PAGEGATE_REFUSED';
  readonly decision: Decision;

  /** @param decision the refused decision; the origin of its URL and its note become part of the message. */
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

/** Returns the refusal that an error is or was caused by, since `fetch` wraps errors; undefined if there is none. */
export function refusalIn(error: unknown): RefusedError | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (at instanceof RefusedError) return at;
  }
  return undefined;
}
