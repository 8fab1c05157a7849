/**
 * Asks pagegate before a request is made, and fails closed: only an `allow`, or a person's approval of what is flagged, lets a request
 * through. Everything else is a refusal: another verdict, another status, no answer in time, a failure of the guard itself.
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

/** The record of a domain that a verdict depends on, and whether it is that of the host itself. */
export interface MissingRecord {
  readonly missing: string;
  readonly isOwn: boolean;
}

/** Gives verdicts without asking, as `LocalVerdicts` does. */
export interface LocalJudge {
  /** The server's verdict on this data; the record it takes; undefined where only the server can tell. */
  judge(url: string, method: string, data: string): Judgment | MissingRecord | undefined;
  /** Takes the record out of an answer about a URL or a domain. */
  learn(url: string, answer: Answer): void;
  /** The data changed. */
  forget(): void;
}

export interface GuardOptions {
  /** Where pagegate listens, such as `https://pagegate.example.net:8443`. Plain http only on loopback, see `plainHttp`. */
  readonly server: string;
  /** The API key … */
  readonly key?: string | undefined;
  /** … or a file that holds it and nothing else, and that others may not read. */
  readonly keyFile?: string | undefined;
  /** Certificates to trust instead of the system's, PEM. */
  readonly ca?: string | Buffer | undefined;
  readonly plainHttp?: boolean | undefined;
  /** Longest time for a verdict, retries included; 2,000 milliseconds unless told. */
  readonly timeoutMs?: number | undefined;
  /** For how long a verdict is kept, in seconds; 300 unless told, 0 for never. Data that changed ends it earlier. */
  readonly cacheSeconds?: number | undefined;
  /** How many verdicts are kept; 10,000 unless told. */
  readonly cacheEntries?: number | undefined;
  /** Judges on kept records, so that one lookup serves a domain: what `readLocalVerdicts` of `pagegate-guard/local` gives. */
  readonly local?: LocalJudge | undefined;
  /** Hosts that may lead to exactly these addresses although they are not public. */
  readonly exceptions?: AddressExceptions | undefined;
  /** Asks a person about a request that is flagged. Without it, what is flagged is refused. */
  readonly approve?: ((decision: Decision) => Promise<boolean>) | undefined;
  /** Told of every decision: for metrics. */
  readonly onDecision?: ((decision: Decision) => void) | undefined;
  /** Takes one line for each decision, see {@link decisionLine}. */
  readonly log?: ((line: string) => void) | undefined;
  /** Lines hold whole URLs. */
  readonly logFullUrl?: boolean | undefined;
}

export interface RequestOptions {
  /** The HTTP method that is meant; GET unless told. */
  readonly method?: string | undefined;
}

/** A longer URL or method is not asked about: the server would not read it. */
const VALUE_MAX_BYTES = LIMITS.valueBytes.value;
/** A file with an API key holds nothing else; a key has at most 256 characters. */
const KEY_FILE_MAX_BYTES = 4_096;
/** Questions that wait for their answer. */
const PENDING_MAX = 1_024;
/** Records that one verdict may cost; names with more domains above them are asked about themselves. */
const LOCAL_ROUNDS_MAX = 8;

/** Asks pagegate before a request is made; only a complete answer with `allow` lets it through. One guard serves a program. */
export class Guard {
  /** Where a host may lead, for points that make the connection themselves. */
  readonly addresses: AddressCheck;
  readonly #options: GuardOptions;
  readonly #endpoint: Endpoint;
  readonly #cache: VerdictCache;
  readonly #pending = new Map<string, Promise<Answer>>();
  /** Domains whose records are being asked for. */
  readonly #records = new Map<string, Promise<Answer>>();
  /** What the last answer said about the data that it was given on. */
  #data = '';
  #isClosed = false;

  /** @throws TypeError where an option cannot be used, Error where the key file cannot be read: nothing starts half-configured. */
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

  /** The decision about a request. Rejects only with what `onDecision` or `log` throws. Asks no person: what is flagged comes back as `flag`. */
  async check(url: string | URL, options: RequestOptions = {}): Promise<Decision> {
    const decision = await this.#decide(url, options);
    this.#report(decision);
    return decision;
  }

  /**
   * Resolves where a request may be made; a person is asked about what is flagged, where there is one to ask.
   *
   * @throws RefusedError
   */
  async enforce(url: string | URL, options: RequestOptions = {}): Promise<Decision> {
    const decision = await this.#decide(url, options);
    let approved = false;
    try {
      if (decision.verdict === 'flag') approved = (await this.#options.approve?.(decision)) === true && !this.#isClosed;
    } finally {
      // Also where the person fails, which refuses the request.
      this.#report({ ...decision, approved });
    }
    const decided = { ...decision, approved };
    if (!isAllowed(decided)) throw new RefusedError(decided);
    return decided;
  }

  /** The refusal of a request for a reason that pagegate cannot see. It is reported like any decision. */
  refuse(url: string, method: string, id: GuardId, detail = ''): RefusedError {
    const decision = { ...denial(id, detail), method, url, source: 'guard', approved: false, latencyMs: 0 } as const;
    this.#report(decision);
    return new RefusedError(decision);
  }

  /** Ends all connections; whoever waits, and whoever asks later, is refused. */
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

  /** The verdict on known records, as far as there are any; otherwise pagegate's. */
  async #judge(url: string, method: string): Promise<{ readonly judgment: Judgment; readonly isLocal: boolean }> {
    const { local } = this.#options;
    for (let round = 0; local !== undefined && round < LOCAL_ROUNDS_MAX; round++) {
      const said = local.judge(url, method, this.#data);
      if (said === undefined) break;
      if ('verdict' in said) return { judgment: said, isLocal: true };
      const { missing, isOwn } = said;
      const open = this.#records.get(missing);
      // The request itself brings its host's record along; whoever else waits for that record goes on with it.
      const answer = await (open ?? this.#askFor(missing, isOwn ? url : missing, isOwn ? method : 'GET'));
      if (answer.verdict === 'error' || (isOwn && open === undefined)) return { judgment: answer, isLocal: false };
      if (answer.facts === undefined) break;
    }
    return { judgment: await this.#ask(url, method), isLocal: false };
  }

  /** Asks about a URL for the sake of a domain's record; those who need the same record share the question. */
  #askFor(domain: string, url: string, method: string): Promise<Answer> {
    const asked = this.#ask(url, method).finally(() => this.#records.delete(domain));
    this.#records.set(domain, asked);
    return asked;
  }

  /** Asks pagegate; requests for the same verdict share one question. */
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
   * Keeps what an answer tells. One that was given on other data than the last one makes all that was kept void; but where the data has
   * changed since it was asked for, it may be the older of the two, and is not kept. Nor is one that does not say which data it was given
   * on: nobody would tell when that changes.
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

/** What a caller gave, as text; what cannot be one is empty, which nobody allows. */
function textOf(given: unknown): string {
  try {
    return String(given);
  } catch {
    return '';
  }
}

/** Whether the server would take a question: a method that is one, neither value too long. */
function isAskable(url: string, method: string): boolean {
  return HTTP_TOKEN.test(method) && method.length <= VALUE_MAX_BYTES && Buffer.byteLength(url) <= VALUE_MAX_BYTES;
}

function keyOf({ key, keyFile }: GuardOptions): string {
  if ((key === undefined) === (keyFile === undefined)) throw new TypeError('give either key or keyFile');
  return key ?? readApiKeyFile(keyFile!);
}

/**
 * The API key in a file, without the blanks around it.
 *
 * @throws Error where others may access the file
 * @throws PagegateError api_key_unreadable
 */
export function readApiKeyFile(path: string): string {
  const inspect = ({ mode }: Stats): void => {
    if ((mode & 0o007) !== 0) throw new Error(`${path}: others may access the API key; chmod o= it`);
  };
  const bytes = readSmallFile(path, { code: 'api_key_unreadable', maxBytes: KEY_FILE_MAX_BYTES, inspect });
  return bytes.toString('utf8').trim();
}
