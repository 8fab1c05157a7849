/** Clients as gateways are: they keep connections for as long as they may, or open one for each request, and retry nothing. */
import http from 'node:http';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { domainOf } from '../installation.ts';

/** No answer may take longer. */
const ANSWER_DEADLINE_MS = 20_000;

export interface SteadyOptions {
  readonly port: number;
  readonly isTls: boolean;
  readonly key: string;
  /** Clients that keep their connection and ask again at once. */
  readonly kept: number;
  /** Clients that keep their connection and ask now and then. */
  readonly slow: number;
  /** Clients that open a connection for each request. */
  readonly fresh: number;
}

/** Pauses of clients that keep their connections, and of those that ask now and then, in milliseconds. */
const PAUSE_MS = 40;
const SLOW_PAUSE_MS = 3_000;

export class SteadyClients {
  /** Requests that were sent. */
  asked = 0;
  /** Answers 200. */
  read = 0;
  /** What else became of requests, with how often. */
  readonly failures = new Map<string, number>();
  readonly #options: SteadyOptions;
  readonly #agents: http.Agent[] = [];
  #isStopped = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: SteadyOptions) {
    this.#options = options;
  }

  start(): void {
    const { kept, slow, fresh, isTls } = this.#options;
    const { Agent } = isTls ? https : http;
    const many = (count: number, pauseMs: number, keepAlive: boolean): Promise<void>[] =>
      Array.from({ length: count }, () => {
        // One agent for each client: each has a connection of its own.
        const agent = new Agent({ keepAlive, maxSockets: 1, ...(isTls ? { rejectUnauthorized: false } : {}) });
        this.#agents.push(agent);
        return this.#loop(agent, pauseMs);
      });
    this.#running = Promise.all([
      ...many(kept, PAUSE_MS, true),
      ...many(slow, SLOW_PAUSE_MS, true),
      ...many(fresh, PAUSE_MS, false),
    ]);
  }

  /** Ends after the requests that are under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
    for (const agent of this.#agents) agent.destroy();
  }

  async #loop(agent: http.Agent, pauseMs: number): Promise<void> {
    while (!this.#isStopped) {
      this.asked += 1;
      const outcome = await this.#ask(agent).catch((error: NodeJS.ErrnoException) => error.code ?? error.message);
      if (outcome === '200') this.read += 1;
      else this.failures.set(outcome, (this.failures.get(outcome) ?? 0) + 1);
      await sleep(Math.random() * pauseMs);
    }
  }

  /** Resolves with the status of an answer that was read whole. */
  #ask(agent: http.Agent): Promise<string> {
    const { port, isTls, key } = this.#options;
    const { get } = isTls ? https : http;
    return new Promise((resolve, reject) => {
      const path = `/api/check?domain=${domainOf(0)}`;
      const options = { host: '127.0.0.1', port, path, agent, headers: { 'x-api-key': key } };
      const request = get({ ...options, timeout: ANSWER_DEADLINE_MS }, (response) => {
        response.resume();
        response.on('end', () => resolve(String(response.statusCode)));
        response.on('error', reject);
      });
      request.on('error', reject);
      request.on('timeout', () => request.destroy(new Error('no answer in time')));
    });
  }
}
