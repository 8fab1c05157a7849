/** Clients that behave like gateways: they keep connections as long as possible, or open one per request, and never retry. */
import http from 'node:http';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { domainOf } from '../installation.ts';

/** The longest time that an answer may take. */
const ANSWER_DEADLINE_MS = 20_000;

export interface SteadyOptions {
  readonly port: number;
  readonly isTls: boolean;
  readonly key: string;
  /** Number of clients that keep their connection and pause only briefly. */
  readonly kept: number;
  /** Number of clients that keep their connection and make long pauses. */
  readonly slow: number;
  /** Number of clients that open a connection for each request. */
  readonly fresh: number;
}

/** The longest pause of clients, and of slow clients, in milliseconds. */
const PAUSE_MS = 40;
const SLOW_PAUSE_MS = 3_000;

export class SteadyClients {
  /** Number of requests sent. */
  asked = 0;
  /** Number of 200 answers. */
  read = 0;
  /** All other outcomes of requests, and how often each occurred. */
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
        // One agent per client, so that each has its own connection.
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

  /** Ends after the requests in flight. */
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

  /** Sends a request. Resolves with the status of the complete answer. */
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
