/**
 * The endpoint. A request passes these steps in order. Each step has its own failure status, and only the last one costs a lookup:
 *
 *     burst limit 429 → path 404 → method 405 → body 400 → key 400/401 → activation 403 → input 400 → index 503 → quota 403 → 200
 */
import { performance } from 'node:perf_hooks';
import type { Config } from '../../config/config.ts';
import { type ErrorCode, PagegateError } from '../../errors.ts';
import type { Meter } from '../../ledger/meter.ts';
import type { Account } from '../../ledger/quota.ts';
import { isInAny, type Network, parseNetworks } from '../../network/address.ts';
import { evaluate } from '../../policy/evaluate.ts';
import type { WorkerMetrics } from '../admin/metric-counters.ts';
import { type Log, requestFailureFields } from '../log.ts';
import { RecordEvidence } from '../record-evidence.ts';
import type { ActiveData } from '../swap/active-data.ts';
import type { JudgedUrl } from '../swap/kept-answers.ts';
import type { HttpRequest, HttpResponse } from '../uws.ts';
import { AnswerWriter } from './answer-body.ts';
import type { BurstLimiter } from './burst-limit.ts';
import { ClosingConnections } from './connection-close.ts';
import type { DecisionLog } from './decision-log.ts';
import { endAnswer } from './end-answer.ts';
import { inputRefusal, readTarget } from './input.ts';
import { parseQuery, type Query } from './query.ts';
import { type RefusalOptions, refusalStatus, sendRefusal } from './refusal.ts';
import type { RefusalLog } from './refusal-log.ts';
import { RequestCounters } from './request-counters.ts';
import { copySender, RequestHeaders, type Sender } from './request-headers.ts';

const CHECK_PATH = '/api/check';
/** Statuses that depend on the caller. They are logged, see {@link RefusalLog}. */
const LOGGED: ReadonlySet<number> = new Set([401, 403, 429]);

export interface CheckParts {
  readonly config: Config;
  readonly meter: Meter;
  readonly burst: BurstLimiter;
  readonly metrics: WorkerMetrics;
  readonly log: Log;
  readonly decisions: DecisionLog | undefined;
  /** Called for every 401, 403 and 429. */
  readonly refusals?: RefusalLog;
  /** Returns the data in use; undefined before the first index. */
  readonly served: () => ActiveData | undefined;
  /** Called if a lookup finds damage in the index. */
  readonly onDamage: (error: PagegateError) => void;
  /** Number of this worker's connections that have been closed so far. */
  readonly closedConnections: () => number;
  /** Whether the server is stopping. Then answers also close their connection. */
  readonly isDraining: () => boolean;
}

/** A request and its response. */
interface Exchange {
  readonly res: HttpResponse;
  readonly method: string;
  /** Overwritten by the next request, so a request that waits keeps a copy. */
  readonly sender: Sender;
}

/** A request whose key and query have been read. */
interface Question extends Exchange {
  sender: Sender;
  readonly rawQuery: string;
  readonly query: Query;
  readonly key: string;
  readonly startedMs: number;
  /** Set when it first waits for a reservation. */
  waiting: Waiting | undefined;
}

interface Waiting {
  readonly sinceMs: number;
  readonly resume: (isReserved: boolean) => void;
}

interface CheckRefusal extends RefusalOptions {
  /** Name of the refused account, if the key is known. */
  readonly account?: string;
}

/** Answers the requests of a worker. */
export class CheckHandler {
  readonly #parts: CheckParts;
  readonly #exempt: readonly Network[];
  readonly #subdomains: 'exact' | 'parent';
  readonly #writer = new AnswerWriter();
  readonly #headers: RequestHeaders;
  readonly #counters: RequestCounters;
  readonly #closing = new ClosingConnections();
  #inFlight = 0;

  constructor(parts: CheckParts) {
    this.#parts = parts;
    this.#headers = new RequestHeaders(parseNetworks(parts.config.burst.trusted_proxies));
    this.#counters = new RequestCounters(parts.metrics);
    this.#exempt = parseNetworks(parts.config.burst.exempt);
    this.#subdomains = parts.config.index.subdomains;
  }

  /** Requests that wait for a reservation. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Handles every request of the public port; never throws. */
  handle(res: HttpResponse, req: HttpRequest): void {
    const headers = this.#headers;
    const exchange = { res, method: req.getCaseSensitiveMethod(), sender: headers };
    let isAnswered = true;
    try {
      headers.readFrom(res, req);
      if (this.#closing.isBehind(headers.peer, this.#parts.closedConnections())) {
        this.#closing.drop(res);
        return;
      }
      const limited = this.#admit();
      const code = limited > 0 ? 'rate_limited' : this.#routeProblem(req.getUrl(), exchange.method);
      if (code === 'rate_limited') this.#refuse(exchange, code, { retryAfterSeconds: limited });
      else if (code !== undefined) this.#refuse(exchange, code);
      else isAnswered = this.#check(exchange, req.getQuery() ?? '');
    } catch (error) {
      this.#fail(exchange, error);
    }
    // A request that waits keeps its connection open, and the client's next requests on other connections are served.
    if (isAnswered && (headers.isLast || headers.hasBody))
      this.#closing.mark(headers.peer, this.#parts.closedConnections());
  }

  /** Applies the burst limit. Returns the seconds to wait, or 0 to continue. */
  #admit(): number {
    const { client } = this.#headers;
    if (this.#exempt.length > 0 && isInAny(client, this.#exempt)) return 0;
    return this.#parts.burst.admit(client);
  }

  #routeProblem(path: string, method: string): ErrorCode | undefined {
    if (path !== CHECK_PATH) return 'not_found';
    if (method !== 'GET') return 'method_not_allowed';
    return this.#headers.hasBody ? 'body_not_allowed' : undefined;
  }

  /** Returns whether the request was answered; otherwise it waits for a reservation. */
  #check(exchange: Exchange, rawQuery: string): boolean {
    const { res, method, sender } = exchange;
    const headers = this.#headers;
    const startedMs = performance.now();
    const query = parseQuery(rawQuery);
    const keyProblem = headers.keyProblem(query);
    if (keyProblem !== undefined) {
      const isRepeated = keyProblem === 'repeated_parameter';
      return this.#refuse(exchange, keyProblem, isRepeated ? { fields: { parameter: 'api_key' } } : {});
    }
    const key = headers.keyCount === 1 ? headers.key : (query.apiKey ?? '');
    return this.#answer({ res, method, sender, rawQuery, query, key, startedMs, waiting: undefined });
  }

  /** Returns whether the question was answered; otherwise it waits for a reservation. */
  #answer(question: Question): boolean {
    const { res, key, startedMs } = question;
    const { meter, metrics } = this.#parts;
    const caller = meter.authenticate(key);
    if (caller.kind === 'unknown') return this.#refuse(question, 'unknown_key');
    const { account } = caller;
    if (!caller.activated)
      return this.#refuse(question, 'not_activated', { fields: { ...caller.quota }, account: account.name });
    const served = this.#parts.served();
    const kept = served?.answers.get(question.rawQuery);
    if (kept !== undefined) this.#writer.writeKept(served!.answers, kept);
    const judged = kept ?? this.#judge(question, served);
    if (served === undefined || judged === undefined) return true;
    // The wait has its own metric.
    if (question.waiting === undefined) metrics.lookup.observe((performance.now() - startedMs) / 1_000);
    // Nothing below can fail, so a charged lookup is always answered, in the same turn.
    const outcome = meter.charge(account);
    if (outcome === 'wait') return this.#wait(question, account);
    if (outcome === 'ledger_unavailable') return this.#refuse(question, outcome);
    if (typeof outcome === 'string')
      return this.#refuse(question, outcome, { fields: { ...meter.quotaLeft(account) }, account: account.name });
    this.#counters.answered(judged.verdict);
    res.writeHeader('content-type', served.headers);
    endAnswer(res, this.#writer.finish(outcome), question.sender.isLast || this.#parts.isDraining());
    this.#record(account, judged, served, startedMs);
    return true;
  }

  /** Judges a question and writes its answer without the quota. Undefined if it was refused. */
  #judge(question: Question, served: ActiveData | undefined): JudgedUrl | undefined {
    const { query } = question;
    const target = readTarget(query);
    if ('problem' in target) {
      this.#refuse(question, target.problem, inputRefusal(target));
      return undefined;
    }
    if (served === undefined) {
      this.#refuse(question, 'no_index');
      return undefined;
    }
    const { url } = target;
    const method = query.method === undefined ? 'GET' : query.method.toUpperCase();
    const evidence = new RecordEvidence(served.index, target, this.#subdomains, this.#writer);
    const { domain, answered: found } = evidence;
    this.#writer.begin(served.index, evidence.handle, domain);
    const verdict = evaluate(served.policy, { url, method }, evidence);
    this.#writer.writeVerdict(verdict);
    const judged = { method, url, domain, found, verdict };
    // A query that contains a key is not cached: other keys send other queries.
    if (query.apiKeyCount === 0 && served.answers.isTurn())
      this.#writer.keepIn(served.answers, question.rawQuery, judged);
    return judged;
  }

  /** Keeps a question until more lookups are reserved, then runs it anew, because everything may have changed meanwhile. */
  #wait(question: Question, account: Account): false {
    question.waiting ??= this.#keep(question);
    this.#parts.meter.wait(account, question.waiting.sinceMs, question.waiting.resume);
    return false;
  }

  #keep(question: Question): Waiting {
    const { metrics } = this.#parts;
    const sinceMs = performance.now();
    question.sender = copySender(question.sender);
    this.#inFlight += 1;
    let isAborted = false;
    question.res.onAborted(() => {
      isAborted = true;
      metrics.count('aborted_total');
    });
    const resume = (isReserved: boolean): void => {
      let isAnswered = true;
      if (!isAborted) {
        question.res.cork(() => {
          try {
            isAnswered = isReserved ? this.#answer(question) : this.#refuse(question, 'ledger_unavailable');
          } catch (error) {
            this.#fail(question, error);
          }
        });
      }
      if (!isAnswered) return;
      this.#inFlight -= 1;
      metrics.wait.observe((performance.now() - sinceMs) / 1_000);
    };
    return { sinceMs, resume };
  }

  #record(account: Account, judged: JudgedUrl, served: ActiveData, startedMs: number): void {
    this.#parts.decisions?.record({
      account: account.name,
      method: judged.method,
      url: judged.url,
      domain: judged.domain,
      found: judged.found,
      verdict: judged.verdict,
      policy: served.policy,
      data: served.tag,
      latencyMs: performance.now() - startedMs,
    });
  }

  /** Sends a refusal. Always returns true: the request is answered. */
  #refuse({ res, method, sender }: Exchange, code: ErrorCode, options: CheckRefusal = {}): true {
    this.#counters.refused(code);
    if (LOGGED.has(refusalStatus(code))) this.#parts.refusals?.note(code, options.account, sender.client);
    const close = sender.hasBody || sender.isLast || this.#parts.isDraining();
    sendRefusal(res, code, { ...options, close, bodiless: method === 'HEAD' });
    return true;
  }

  #fail(exchange: Exchange, error: unknown): void {
    const { log, metrics } = this.#parts;
    const code = error instanceof PagegateError && refusalStatus(error.code) === 503 ? error.code : 'internal';
    const counter = code === 'record_corrupt' ? 'record_failures_total' : 'internal_failures_total';
    if (code !== 'ledger_unavailable') metrics.count(counter);
    log('request_failed', requestFailureFields(error));
    if (error instanceof PagegateError && code === 'record_corrupt') this.#parts.onDamage(error);
    this.#refuse(exchange, code);
  }
}
