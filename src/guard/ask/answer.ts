/** Reads what pagegate answered. Anything but a complete 200 with a known verdict about the right domain is a failure. */
import { type Decision, GUARD_IDS, type GuardId } from '../refusal.ts';

/** A verdict that may be kept: what a decision says, without the request it was asked for. */
export type Judgment = Pick<Decision, 'verdict' | 'layer' | 'id' | 'note' | 'domain' | 'found' | 'data'>;

/** What an answer tells of a domain that bears on verdicts. */
export interface Facts {
  readonly pages: readonly { readonly type: string; readonly url: string }[];
  readonly categories: readonly string[];
}

/** An answer, or why there is none. */
export interface Answer extends Judgment {
  /** Of the domain that answered; missing where the answer does not have them in the form they should have. */
  readonly facts?: Facts | undefined;
  /** The least time to wait before asking again, in milliseconds; given only where nothing was charged. */
  readonly retryMs?: number;
}

export interface HttpReply {
  readonly status: number;
  readonly data: string;
  readonly retryAfter: string;
  readonly body: string;
}

/** The guard's own judgment that there is no verdict. */
export function failure(id: GuardId, detail = ''): Answer {
  return ownJudgment('error', id, noteOf(id, detail));
}

/** The guard's own judgment that a request may never be made. */
export function denial(id: GuardId, detail = ''): Judgment {
  return ownJudgment('deny', id, noteOf(id, detail));
}

function ownJudgment(verdict: 'deny' | 'error', id: string, note: string): Judgment {
  return { verdict, layer: 'guard', id, note, domain: '', found: false, data: '' };
}

function noteOf(id: GuardId, detail: string): string {
  return detail === '' ? GUARD_IDS[id] : `${GUARD_IDS[id]} (${plain(detail)})`;
}

/** Text of others, made fit for a message of one line. */
function plain(text: unknown, lengthMax = 600): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
  return (typeof text === 'string' ? text : '').slice(0, lengthMax).replace(/[\0-\x1f\x7f-\x9f\u2028\u2029]/g, ' ');
}

/** Makes an answer of a reply to the question about `url`. */
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
    // Neither of the two is ever charged.
    if (status !== 429 && status !== 503) return answer;
    return { ...answer, retryMs: /^[0-9]{1,6}$/.test(reply.retryAfter) ? Number(reply.retryAfter) * 1_000 : 0 };
  }
  if (body === undefined) return failure('bad_answer');
  const { verdict, domain, matched } = body;
  if (verdict !== 'allow' && verdict !== 'deny' && verdict !== 'flag') return failure('bad_answer');
  if (typeof matched !== 'object' || matched === null || typeof domain !== 'string') return failure('bad_answer');
  if (!isAbout(domain, url)) return failure('wrong_domain', domain);
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

function factsIn(body: Readonly<Record<string, unknown>>): Facts | undefined {
  const { page_types: pageTypes, filtering_categories: categories = [] } = body;
  if (typeof pageTypes !== 'object' || pageTypes === null || !Array.isArray(categories)) return undefined;
  const pages = Object.entries(pageTypes).map(([type, url]) => ({ type, url: url as unknown }));
  if (![...categories, ...pages.map(({ url }) => url)].every((text) => typeof text === 'string')) return undefined;
  return { pages: pages as Facts['pages'], categories };
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether an answer about `domain` can be the answer for `url`: the domain is its host, or lies above it. */
function isAbout(domain: string, url: string): boolean {
  const host = hostOf(url);
  return host !== '' && domain !== '' && (host === domain || host.endsWith(`.${domain}`));
}

/** What names its scheme, as pagegate reads it: anything else is a bare domain, with or without a path. */
const HAS_SCHEME = /^\s*[a-z][a-z0-9+.-]*:\/\//i;

/** The host of a URL or of a bare domain, without its trailing dot; empty where there is none. */
function hostOf(value: string): string {
  const text = value.replace(/[\t\n\r]/g, '').trim();
  try {
    const { hostname } = new URL(HAS_SCHEME.test(text) ? text : `https://${text}`);
    // Schemes that the standard does not know keep their host as it was written.
    return hostname === '' ? '' : new URL(`https://${hostname}/`).hostname.replace(/\.$/, '');
  } catch {
    return '';
  }
}
