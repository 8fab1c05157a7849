/**
 * The one endpoint. A request goes down a staircase; each step has its failure, and only the last one costs a lookup:
 *
 *     burst guard 429 → body 400 → path 404, method 405 → key 400/401 → activation 403 → input 400 → index 503 → quota 403 → 200
 */
import { performance } from 'node:perf_hooks';
import type { Config } from '../../config/config.ts';
import { parseTarget, type Target } from '../../domain/target.ts';
import { type ErrorCode, PagegateError } from '../../errors.ts';
import type { AccountRef, ChargeOutcome, Meter } from '../../ledger/meter.ts';
import { type Address, addressFromBytes, isInAny, type Network, parseNetwork } from '../../network/address.ts';
import { evaluate } from '../../policy/evaluate.ts';
import type { Verdict } from '../../policy/types.ts';
import type { Counter, WorkerMetrics } from '../admin/metrics.ts';
import { RecordEvidence } from '../evidence.ts';
import { type Log, requestFailureFields } from '../log.ts';
import type { ActiveData } from '../process/active-data.ts';
import type { HttpRequest, HttpResponse } from '../uws.ts';
import { AnswerWriter, type Draft, keepDraft } from './answer.ts';
import type { BurstGuard } from './burst.ts';
import { clientAddress } from './client-address.ts';
import { ClosingGuard } from './closing.ts';
import type { DecisionLog } from './decision-log.ts';
import { PipeliningGuard } from './pipelining.ts';
import { parseQuery, type Query } from './query.ts';
import { type RefusalOptions, refusalStatus, sendRefusal } from './refusal.ts';

const CHECK_PATH = '/api/check';
const PARAMETER_ECHO_MAX_LENGTH = 64;
const HINTS: Partial<Record<ErrorCode, string>> = {
  unknown_parameter: 'Known are url, domain, method and api_key.',
};

export interface CheckParts {
  readonly config: Config;
  readonly meter: Meter;
  readonly burst: BurstGuard;
  readonly metrics: WorkerMetrics;
  readonly log: Log;
  readonly decisions: DecisionLog | undefined;
  /** What is served now; undefined before the first index. */
  readonly served: () => ActiveData | undefined;
  /** Open connections of this worker. */
  readonly connections: () => number;
  /** Connections of this worker that were closed so far. */
  readonly closedConnections: () => number;
  /** While the server stops, answers also close their connection. */
  readonly isDraining: () => boolean;
}

/** What the headers of a request say, read in one pass. */
interface Headers {
  keyCount: number;
  key: string;
  hasBody: boolean;
  forwarded: string;
  client: Address;
}

/** A request between its verdict and its charge. */
interface Pending {
  readonly res: HttpResponse;
  readonly served: ActiveData;
  readonly account: AccountRef;
  readonly method: string;
  readonly target: Target;
  readonly evidence: RecordEvidence;
  readonly verdict: Verdict;
  readonly startedMs: number;
  readonly judgedMs: number;
  draft: Draft;
  /** The charge was not known when the handler returned. */
  waiting: boolean;
  aborted: boolean;
  done: boolean;
}

export class CheckHandler {
  readonly #parts: CheckParts;
  readonly #exempt: readonly Network[];
  readonly #proxies: readonly Network[];
  readonly #subdomains: 'exact' | 'parent';
  readonly #writer = new AnswerWriter();
  /** The peer of the request at hand; overwritten by the next. */
  readonly #peer: Address = new Uint8Array(16);
  readonly #answered: Counter;
  readonly #verdicts = new WeakMap<Verdict, Counter>();
  readonly #headers: Headers = { keyCount: 0, key: '', hasBody: false, forwarded: '', client: new Uint8Array(16) };
  readonly #readHeader: (name: string, value: string) => void;
  readonly #pipelining = new PipeliningGuard();
  readonly #closing = new ClosingGuard();
  #inFlight = 0;
  /** A request waits for the disk inside its handler. */
  #isSettling = false;

  constructor(parts: CheckParts) {
    this.#parts = parts;
    this.#answered = parts.metrics.counter('requests_total{status="200"}');
    this.#exempt = networksOf(parts.config.burst.exempt);
    this.#proxies = networksOf(parts.config.burst.trusted_proxies);
    this.#subdomains = parts.config.index.subdomains;
    const headers = this.#headers;
    this.#readHeader = (name, value) => {
      if (name === 'x-api-key') {
        headers.keyCount += 1;
        headers.key = value;
      } else if (name === 'content-length') headers.hasBody ||= value !== '0';
      else if (name === 'transfer-encoding') headers.hasBody = true;
      else if (name === 'x-forwarded-for') headers.forwarded += headers.forwarded === '' ? value : `,${value}`;
    };
  }

  /** Requests that wait for their charge. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Handles every request of the public port; never throws. */
  handle(res: HttpResponse, req: HttpRequest): void {
    const method = req.getCaseSensitiveMethod();
    try {
      const wait = this.#admit(res, req);
      if (wait > 0) {
        this.#refuse(res, method, 'rate_limited', { retryAfterSeconds: wait, close: this.#headers.hasBody });
        return;
      }
      const code = this.#routeProblem(req.getUrl(), method);
      if (code !== undefined) {
        this.#refuse(res, method, code, { close: this.#headers.hasBody });
        return;
      }
      this.#check(res, req.getQuery() ?? '');
    } catch (error) {
      this.#fail(res, method, error);
    }
  }

  /** Reads the headers and asks the burst guard; returns the seconds to wait, 0 to go on. */
  #admit(res: HttpResponse, req: HttpRequest): number {
    const headers = this.#headers;
    headers.keyCount = 0;
    headers.key = '';
    headers.hasBody = false;
    headers.forwarded = '';
    req.forEach(this.#readHeader);
    const peer = addressFromBytes(res.getRemoteAddress(), this.#peer);
    // What stands behind a body is refused like it, or the connection would stay open.
    headers.hasBody ||= this.#closing.isBehind(peer, this.#parts.closedConnections());
    const client = clientAddress(peer, headers.forwarded, this.#proxies);
    headers.client = client;
    if (this.#exempt.length > 0 && isInAny(client, this.#exempt)) return 0;
    return this.#parts.burst.admit(client);
  }

  #routeProblem(path: string, method: string): ErrorCode | undefined {
    if (path !== CHECK_PATH) return 'not_found';
    if (method !== 'GET') return 'method_not_allowed';
    return this.#headers.hasBody ? 'body_not_allowed' : undefined;
  }

  #check(res: HttpResponse, rawQuery: string): void {
    const startedMs = performance.now();
    const query = parseQuery(rawQuery);
    const keyProblem = this.#keyProblem(query);
    if (keyProblem !== undefined) {
      this.#refuse(res, 'GET', keyProblem);
      return;
    }
    const key = this.#headers.keyCount === 1 ? this.#headers.key : (query.apiKey ?? '');
    const caller = this.#parts.meter.authenticate(key);
    if (caller.kind === 'unknown') {
      this.#refuse(res, 'GET', 'unknown_key');
      return;
    }
    if (!caller.activated) {
      this.#refuse(res, 'GET', 'not_activated', { fields: { ...caller.quota } });
      return;
    }
    const target = readTarget(query);
    if (typeof target === 'string') {
      this.#refuse(res, 'GET', target, inputOptions(target, query));
      return;
    }
    const served = this.#parts.served();
    if (served === undefined) {
      this.#refuse(res, 'GET', 'no_index');
      return;
    }
    const method = query.method === undefined ? 'GET' : query.method.toUpperCase();
    const evidence = new RecordEvidence(served.index, target, this.#subdomains, this.#writer);
    this.#writer.begin(served.index, evidence.handle, evidence.domain);
    const verdict = evaluate(served.policy, { url: target.url, method }, evidence);
    const draft = this.#writer.draft(served.index, evidence.handle, verdict);
    const judgedMs = performance.now();
    this.#parts.metrics.lookup.observe((judgedMs - startedMs) / 1_000);
    const { account } = caller;
    this.#charge({
      res,
      served,
      account,
      method,
      target,
      evidence,
      verdict,
      startedMs,
      judgedMs,
      draft,
      waiting: false,
      aborted: false,
      done: false,
    });
  }

  #keyProblem(query: Query): ErrorCode | undefined {
    const count = this.#headers.keyCount + query.apiKeyCount;
    if (count === 0) return 'missing_key';
    if (count > 1) return this.#headers.keyCount === 0 ? 'repeated_parameter' : 'conflicting_credentials';
    if (this.#headers.keyCount === 0 && query.apiKey === undefined) return 'unknown_key';
    const key = this.#headers.keyCount === 1 ? this.#headers.key : query.apiKey;
    return key === '' ? 'missing_key' : undefined;
  }

  #charge(pending: Pending): void {
    const { meter } = this.#parts;
    const { client } = this.#headers;
    try {
      meter.charge(pending.account, (outcome) => this.#answer(pending, outcome));
      if (!pending.done && this.#pipelining.shouldWait(client, this.#parts.connections(), this.#inFlight))
        this.#settle();
    } catch (error) {
      // The failure is answered by the caller; a charge that is certain later must not answer again.
      pending.aborted = true;
      throw error;
    }
    if (pending.done) return;
    const seen = client.slice();
    pending.draft = keepDraft(pending.draft);
    pending.served.take();
    this.#inFlight += 1;
    const { turn } = this.#pipelining;
    pending.res.onAborted(() => {
      pending.aborted = true;
      if (turn === this.#pipelining.turn) this.#pipelining.remember(seen);
      this.#parts.metrics.count('aborted_total');
    });
    pending.waiting = true;
  }

  #settle(): void {
    this.#isSettling = true;
    try {
      this.#parts.meter.settle();
    } finally {
      this.#isSettling = false;
    }
  }

  #answer(pending: Pending, outcome: ChargeOutcome): void {
    if (pending.waiting && this.#isSettling) {
      // The transport gathers the writes of one connection at a time, now of the one whose request is being handled.
      setImmediate(() => this.#answer(pending, outcome));
      return;
    }
    pending.done = true;
    const { metrics } = this.#parts;
    if (pending.waiting) this.#inFlight -= 1;
    metrics.charge.observe((performance.now() - pending.judgedMs) / 1_000);
    try {
      if (!pending.aborted) {
        if (pending.waiting) pending.res.cork(() => this.#send(pending, outcome));
        else this.#send(pending, outcome);
      }
      if (outcome.charged) this.#record(pending);
    } catch (error) {
      this.#parts.log('error', 'answer_failed', requestFailureFields(error));
    } finally {
      if (pending.waiting) pending.served.drop();
    }
  }

  #send(pending: Pending, outcome: ChargeOutcome): void {
    const { res, served, draft } = pending;
    if (outcome.charged) {
      this.#answered.value += 1;
      res.writeHeader('content-type', served.headers);
      res.end(this.#writer.finish(draft, outcome.remaining), this.#parts.isDraining());
    } else this.#refuse(res, 'GET', outcome.error, outcome.quota === undefined ? {} : { fields: { ...outcome.quota } });
  }

  #record({ account, method, target, evidence, verdict, served, startedMs }: Pending): void {
    this.#counterOf(verdict).value += 1;
    this.#parts.decisions?.record({
      account: account.id,
      method,
      url: target.url,
      domain: evidence.domain,
      found: evidence.answered,
      verdict,
      policy: served.policy,
      data: served.tag,
      latencyMs: performance.now() - startedMs,
    });
  }

  #counterOf(verdict: Verdict): Counter {
    let counter = this.#verdicts.get(verdict);
    if (counter === undefined) {
      const name = `verdicts_total{verdict="${verdict.verdict}",layer="${verdict.layer}"}`;
      counter = this.#parts.metrics.counter(name);
      this.#verdicts.set(verdict, counter);
    }
    return counter;
  }

  #refuse(res: HttpResponse, method: string, code: ErrorCode, options: RefusalOptions = {}): void {
    this.#parts.metrics.count(`requests_total{status="${refusalStatus(code)}"}`);
    if (options.close === true) this.#closing.mark(this.#peer, this.#parts.closedConnections());
    const close = options.close === true || this.#parts.isDraining();
    sendRefusal(res, code, { ...options, close, bodiless: method === 'HEAD' });
  }

  #fail(res: HttpResponse, method: string, error: unknown): void {
    const { log, metrics } = this.#parts;
    const code = error instanceof PagegateError && refusalStatus(error.code) === 503 ? error.code : 'internal';
    const counter = code === 'record_corrupt' ? 'record_failures_total' : 'internal_failures_total';
    if (code !== 'ledger_unavailable') metrics.count(counter);
    log('error', 'request_failed', requestFailureFields(error));
    this.#refuse(res, method, code);
  }
}

/** The configuration was checked: each is a network. */
const networksOf = (texts: readonly string[]): Network[] => texts.map((text) => parseNetwork(text)!);

/** The target that the query names, or the code of what is wrong with it. */
function readTarget(query: Query): Target | ErrorCode {
  if (query.problem !== undefined) return query.problem;
  const value = query.url ?? query.domain;
  if (value === undefined) return 'missing_input';
  const target = parseTarget(value);
  if ('problem' in target) return problemCode(target.problem);
  if (query.url !== undefined && query.domain !== undefined) {
    const other = parseTarget(query.domain);
    if ('problem' in other) return problemCode(other.problem);
    if (other.key !== target.key) return 'conflicting_input';
  }
  return target;
}

function problemCode(problem: string): ErrorCode {
  return problem === 'too_long' || problem === 'value_too_long' ? 'input_too_long' : 'bad_input';
}

function inputOptions(code: ErrorCode, { parameter }: Query): RefusalOptions {
  const hint = HINTS[code];
  const name =
    parameter.length > PARAMETER_ECHO_MAX_LENGTH ? `${parameter.slice(0, PARAMETER_ECHO_MAX_LENGTH)}…` : parameter;
  return { ...(parameter === '' ? {} : { fields: { parameter: name } }), ...(hint === undefined ? {} : { hint }) };
}
