/** Parses pagegate's answer. Anything except a complete 200 with a known verdict about the right domain is a failure. */
import { type Decision, GUARD_IDS, type GuardId } from '../refusal.ts';

/** A verdict that may be cached: the fields of a decision that do not depend on the single request. */
export type Judgment = Pick<Decision, 'verdict' | 'layer' | 'id' | 'note' | 'domain' | 'found' | 'data'>;

/** The data about a domain in an answer that verdicts depend on. */
export interface DomainFacts {
  readonly pages: readonly { readonly type: string; readonly url: string }[];
  readonly categories: readonly string[];
}

/** A verdict, or the reason why there is none. */
export interface Answer extends Judgment {
  /** Data about the domain in the answer; missing if the answer does not have them in the expected form. */
  readonly facts?: DomainFacts | undefined;
  /** Shortest time to wait before a retry, in milliseconds. Only set if nothing was charged. */
  readonly retryMs?: number;
}

export interface HttpReply {
  readonly status: number;
  readonly data: string;
  readonly retryAfter: string;
  readonly body: string;
}

/** Creates the guard's own answer that there is no verdict. */
export function noVerdict(id: GuardId, detail = ''): Answer {
  return ownJudgment('error', id, noteOf(id, detail));
}

/** Creates the guard's own judgment that a request is never permitted. */
export function denial(id: GuardId, detail = ''): Judgment {
  return ownJudgment('deny', id, noteOf(id, detail));
}

function ownJudgment(verdict: 'deny' | 'error', id: string, note: string): Judgment {
  return { verdict, layer: 'guard', id, note, domain: '', found: false, data: '' };
}

function noteOf(id: GuardId, detail: string): string {
  return detail === '' ? GUARD_IDS[id] : `${GUARD_IDS[id]} (${plain(detail)})`;
}

/** Makes untrusted text fit for a one-line message: cuts it and replaces control characters. Empty if it is not a string. */
function plain(text: unknown, lengthMax = 600): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
  return (typeof text === 'string' ? text : '').slice(0, lengthMax).replace(/[\0-\x1f\x7f-\x9f\u2028\u2029]/g, ' ');
}

/** Parses the HTTP reply to the lookup of `url`. */
export function readAnswer(reply: HttpReply, url: string): Answer {
  const { status } = reply;
  const body = objectIn(reply.body);
  if (status !== 200) {
    const reason = [plain(body?.['error'], 60), plain(body?.['message'])].filter((text) => text !== '').join(': ');
    const answer = ownJudgment(
      'error',
      `status_${status}`,
      `pagegate answered with status ${status}${reason === '' ? '.' : `, ${reason}`} Nothing is fetched without a verdict.`,
    );
    // A lookup answered with 429 or 503 is never charged.
    if (status !== 429 && status !== 503) return answer;
    return { ...answer, retryMs: /^[0-9]{1,6}$/.test(reply.retryAfter) ? Number(reply.retryAfter) * 1_000 : 0 };
  }
  if (body === undefined) return noVerdict('bad_answer');
  const { verdict, domain, matched } = body;
  if (verdict !== 'allow' && verdict !== 'deny' && verdict !== 'flag') return noVerdict('bad_answer');
  if (typeof matched !== 'object' || matched === null || typeof domain !== 'string') return noVerdict('bad_answer');
  if (!isAbout(domain, url)) return noVerdict('wrong_domain', domain);
  const { layer, id, note } = matched as Record<string, unknown>;
  return {
    verdict,
    layer: plain(layer, 60),
    id: plain(id, 120),
    note: plain(note),
    domain: plain(domain),
    found: body['found'] === true,
    data: plain(reply.data, 120),
    facts: factsIn(body),
  };
}

function factsIn(body: Readonly<Record<string, unknown>>): DomainFacts | undefined {
  const { page_types: pageTypes, filtering_categories: categories = [] } = body;
  if (typeof pageTypes !== 'object' || pageTypes === null || !Array.isArray(categories)) return undefined;
  const pages = Object.entries(pageTypes).map(([type, url]) => ({ type, url: url as unknown }));
  if (![...categories, ...pages.map(({ url }) => url)].every((text) => typeof text === 'string')) return undefined;
  return { pages: pages as DomainFacts['pages'], categories };
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether an answer about `domain` can belong to `url`: the domain is the URL's host or a parent of it. */
function isAbout(domain: string, url: string): boolean {
  const host = hostOf(url);
  return host !== '' && domain !== '' && (host === domain || host.endsWith(`.${domain}`));
}

/** A value with a scheme, as pagegate parses it. Any other value is a bare domain, with or without a path. */
const HAS_SCHEME = /^\s*[a-z][a-z0-9+.-]*:\/\//i;

/** Returns the host of a URL or of a bare domain, without its trailing dot; empty if there is none. */
function hostOf(value: string): string {
  const text = value.replace(/[\t\n\r]/g, '').trim();
  try {
    const { hostname } = new URL(HAS_SCHEME.test(text) ? text : `https://${text}`);
    // For schemes that the URL standard does not know, the parser leaves the host as written. So it is parsed again as an https host.
    return hostname === '' ? '' : new URL(`https://${hostname}/`).hostname.replace(/\.$/, '');
  } catch {
    return '';
  }
}
