/**
 * Asks pagegate before a request is made, and fails closed: only an `allow`, or a person's approval of a `flag`, lets a request through.
 * Everything else is a refusal: another verdict, another status, no answer in time, a failure of the guard itself.
 */
import type { Stats } from 'node:fs';
import { LIMITS } from '../limits.ts';
import { HTTP_TOKEN } from '../network/http-syntax.ts';
import { readSmallFile } from '../platform/small-file.ts';
import { AddressCheck, type AddressExceptions } from './addresses.ts';
import { type Answer, denial, type Judgment, noVerdict } from './ask/answer.ts';
import { VerdictCache } from './ask/cache.ts';
import { Endpoint } from './ask/endpoint.ts';
import { decisionLine } from './decision-line.ts';
import { type Decision, type GuardId, isAllowed, RefusedError } from './refusal.ts';
import { namesOtherScheme } from './request/scheme.ts';

/** The domain whose record is missing for a local verdict, and whether it is the host itself or a parent domain. */
export interface MissingRecord {
  readonly missing: string;
  readonly isOwn: boolean;
}

/** Gives verdicts without a lookup, as `LocalVerdicts` does. */
export interface LocalJudge {
  /** Returns the verdict that the server gives on this data, or the record that is missing for it. Undefined if only the server can judge. */
  judge(url: string, method: string, data: string): Judgment | MissingRecord | undefined;
  /** Stores the record in an answer about a URL or a domain. */
  learn(url: string, answer: Answer): void;
  /** Drops all records, because the server's data has changed. */
  forget(): void;
}

export interface GuardOptions {
  /** URL of pagegate, such as `https://pagegate.example.net:8443`. Plain http only on loopback, see `plainHttp`. */
  readonly server: string;
  /** The API key … */
  readonly key?: string | undefined;
  /** … or a file that holds only the key and that other users may not read. */
  readonly keyFile?: string | undefined;
  /** Certificates to trust instead of the system's, PEM. */
  readonly ca?: string | Buffer | undefined;
  readonly plainHttp?: boolean | undefined;
  /** Longest time for a verdict including retries, in milliseconds. Default: 2,000. */
  readonly timeoutMs?: number | undefined;
  /** How long a verdict is cached, in seconds. Default: 300; 0 turns the cache off. A change of the server's data empties the cache earlier. */
  readonly cacheSeconds?: number | undefined;
  /** How many verdicts are cached. Default: 10,000. */
  readonly cacheEntries?: number | undefined;
  /** Judges with cached records, so that one lookup serves a whole domain: the result of `readLocalVerdicts` from `pagegate-guard/local`. */
  readonly local?: LocalJudge | undefined;
  /** Hosts that may resolve to exactly these addresses although they are not public. */
  readonly exceptions?: AddressExceptions | undefined;
  /** Asks a person about a flagged request. Without it, flagged requests are refused. */
  readonly approve?: ((decision: Decision) => Promise<boolean>) | undefined;
  /** Called with every decision, for metrics. */
  readonly onDecision?: ((decision: Decision) => void) | undefined;
  /** Called with one log line for each decision, see {@link decisionLine}. */
  readonly log?: ((line: string) => void) | undefined;
  /** Log lines contain full URLs. */
  readonly logFullUrl?: boolean | undefined;
}

export interface RequestOptions {
  /** The HTTP method of the request. Default: GET. */
  readonly method?: string | undefined;
}

/** A longer URL or method is not looked up, because the server would not accept it. */
const VALUE_MAX_BYTES = LIMITS.valueBytes.value;
/** Largest size of a file with an API key, which has at most 256 characters. */
const KEY_FILE_MAX_BYTES = 4_096;
/** Most lookups that wait for their answer. */
const PENDING_MAX = 1_024;
/** Most records that are looked up for one verdict. If that is not enough, for a host with many parent domains, the URL itself is looked up. */
const LOCAL_ROUNDS_MAX = 8;

/** Asks pagegate before a request is made; only a complete answer with `allow` lets it through. One guard serves a program. */
export class Guard {
  /** Decides to which addresses a host may resolve, for enforcement points that make the connection themselves. */
  readonly addresses: AddressCheck;
  readonly #options: GuardOptions;
  readonly #endpoint: Endpoint;
  readonly #cache: VerdictCache;
  readonly #pending = new Map<string, Promise<Answer>>();
  /** Lookups in progress for the record of a domain, by domain. */
  readonly #records = new Map<string, Promise<Answer>>();
  /** The data (`<index generation>.<policy revision>`) of the last answer. */
  #data = '';
  #isClosed = false;

  /** @throws TypeError if an option is not valid, Error if the key file cannot be read */
  constructor(options: GuardOptions) {
    const { server, ca, plainHttp, timeoutMs = 2_000, cacheSeconds = 300, cacheEntries = 10_000 } = options;
    if (!(cacheSeconds >= 0) || !(cacheEntries >= 0)) throw new TypeError('cacheSeconds, cacheEntries: from 0');
    for (const name of ['approve', 'onDecision', 'log'] as const) {
      if (!['function', 'undefined'].includes(typeof options[name])) throw new TypeError(`${name}: not a function`);
    }
    if (options.local !== undefined && typeof options.local?.judge !== 'function') {
      throw new TypeError('local: give what readLocalVerdicts returns');
    }
    this.#options = options;
    this.addresses = new AddressCheck(options.exceptions);
    this.#endpoint = new Endpoint({ server, key: keyOf(options), ca, plainHttp, timeoutMs });
    this.#cache = new VerdictCache(cacheSeconds * 1_000, cacheEntries);
  }

  /** Returns the decision about a request. Rejects only if `onDecision` or `log` throws. Does not call `approve`: a flagged request is a `flag`. */
  async check(url: string | URL, options: RequestOptions = {}): Promise<Decision> {
    const decision = await this.#decide(url, options);
    this.#report(decision);
    return decision;
  }

  /**
   * Resolves if a request may be made. Calls `approve` for a flagged request.
   *
   * @throws RefusedError
   */
  async enforce(url: string | URL, options: RequestOptions = {}): Promise<Decision> {
    const decision = await this.#decide(url, options);
    let approved = false;
    try {
      if (decision.verdict === 'flag') approved = (await this.#options.approve?.(decision)) === true && !this.#isClosed;
    } finally {
      // Also if `approve` fails, which refuses the request.
      this.#report({ ...decision, approved });
    }
    const decided = { ...decision, approved };
    if (!isAllowed(decided)) throw new RefusedError(decided);
    return decided;
  }

  /** Creates and reports the refusal of a request for a reason that pagegate cannot see. */
  refuse(url: string, method: string, id: GuardId, detail = ''): RefusedError {
    const decision = { ...denial(id, detail), method, url, source: 'guard', approved: false, latencyMs: 0 } as const;
    this.#report(decision);
    return new RefusedError(decision);
  }

  /** Closes all connections. Requests that wait, and later ones, are refused. */
  close(): void {
    this.#isClosed = true;
    this.#endpoint.close();
  }

  async #decide(givenUrl: string | URL, options?: RequestOptions): Promise<Decision> {
    const startedMs = performance.now();
    const url = textOf(givenUrl);
    const method = textOf(options?.method ?? 'GET').toUpperCase();
    const decision = (judgment: Judgment, source: Decision['source']): Decision => {
      const { verdict, layer, id, note, domain, found, data } = judgment;
      const latencyMs = performance.now() - startedMs;
      return { method, url, verdict, layer, id, note, domain, found, data, source, approved: false, latencyMs };
    };
    if (this.#isClosed) return decision(noVerdict('closed'), 'guard');
    if (!isAskable(url, method)) return decision(noVerdict('bad_request'), 'guard');
    if (namesOtherScheme(url)) return decision(denial('request_target'), 'guard');
    const kept = this.#cache.find(`${method} ${url}`);
    if (kept !== undefined) return decision(kept, 'cache');
    const { judgment, isLocal } = await this.#judge(url, method);
    if (this.#isClosed) return decision(noVerdict('closed'), 'guard');
    return decision(judgment, isLocal ? 'local' : judgment.layer === 'guard' ? 'guard' : 'lookup');
  }

  /** Returns the local verdict if the records for it are known or can be looked up; otherwise the server's verdict. */
  async #judge(url: string, method: string): Promise<{ readonly judgment: Judgment; readonly isLocal: boolean }> {
    const { local } = this.#options;
    for (let round = 0; local !== undefined && round < LOCAL_ROUNDS_MAX; round++) {
      const said = local.judge(url, method, this.#data);
      if (said === undefined) break;
      if ('verdict' in said) return { judgment: said, isLocal: true };
      const { missing, isOwn } = said;
      const open = this.#records.get(missing);
      // The lookup of the request itself returns its host's record. Other requests that wait for that record continue with it.
      const answer = await (open ?? this.#askFor(missing, isOwn ? url : missing, isOwn ? method : 'GET'));
      if (answer.verdict === 'error' || (isOwn && open === undefined)) return { judgment: answer, isLocal: false };
      if (answer.facts === undefined) break;
    }
    return { judgment: await this.#ask(url, method), isLocal: false };
  }

  /** Looks up a URL to get the record of a domain. Requests that need the same record share the lookup. */
  #askFor(domain: string, url: string, method: string): Promise<Answer> {
    const asked = this.#ask(url, method).finally(() => this.#records.delete(domain));
    this.#records.set(domain, asked);
    return asked;
  }

  /** Asks pagegate. Requests for the same verdict share one lookup. */
  #ask(url: string, method: string): Promise<Answer> {
    const key = `${method} ${url}`;
    const open = this.#pending.get(key);
    if (open !== undefined) return open;
    if (this.#pending.size >= PENDING_MAX) return Promise.resolve(noVerdict('busy'));
    const dataBefore = this.#data;
    const asked = this.#endpoint
      .ask(url, method)
      .then((answer) => {
        if (answer.verdict !== 'error') this.#learn(key, url, answer, dataBefore);
        return answer;
      })
      .finally(() => this.#pending.delete(key));
    this.#pending.set(key, asked);
    return asked;
  }

  /**
   * Caches an answer. If it comes from other data than the last one, everything cached before is dropped. But if the data has changed since the
   * lookup was sent, this answer may be the older one and is not cached. Nor is one that names no data: a change of it would go unnoticed.
   */
  #learn(key: string, url: string, { facts, retryMs: _retryMs, ...judgment }: Answer, dataBefore: string): void {
    if (judgment.data !== this.#data) {
      if (dataBefore !== this.#data) return;
      this.#data = judgment.data;
      this.#cache.clear();
      this.#options.local?.forget();
    }
    if (judgment.data === '') return;
    this.#cache.keep(key, judgment);
    this.#options.local?.learn(url, { ...judgment, facts });
  }

  #report(decision: Decision): void {
    this.#options.onDecision?.(decision);
    this.#options.log?.(decisionLine(decision, this.#options.logFullUrl));
  }
}

/** Converts a caller's value to text. A value that cannot be converted becomes empty, which is never allowed. */
function textOf(given: unknown): string {
  try {
    return String(given);
  } catch {
    return '';
  }
}

/** Whether the server would accept a lookup: the method is a valid token, and neither value is too long. */
function isAskable(url: string, method: string): boolean {
  return HTTP_TOKEN.test(method) && method.length <= VALUE_MAX_BYTES && Buffer.byteLength(url) <= VALUE_MAX_BYTES;
}

function keyOf({ key, keyFile }: GuardOptions): string {
  if ((key === undefined) === (keyFile === undefined)) throw new TypeError('give either key or keyFile');
  return key ?? readApiKeyFile(keyFile!);
}

/**
 * Reads the API key in a file, without surrounding whitespace.
 *
 * @throws Error if other users may access the file
 * @throws PagegateError api_key_unreadable
 */
export function readApiKeyFile(path: string): string {
  const inspect = ({ mode }: Stats): void => {
    if ((mode & 0o007) !== 0) throw new Error(`${path}: others may access the API key; chmod o= it`);
  };
  const options = {
    code: 'api_key_unreadable',
    secretOption: 'keyFile (--key-file)',
    maxBytes: KEY_FILE_MAX_BYTES,
  } as const;
  const bytes = readSmallFile(path, { ...options, inspect });
  return bytes.toString('utf8').trim();
}
