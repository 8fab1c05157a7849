/** The clients of a run with refreshes: they send requests without a pause, over HTTP or HTTPS, and check every answer. */
import http from 'node:http';
import https from 'node:https';
import { freePort } from '../free-port.ts';
import { activate, domainOf, type Installation, pageOf } from '../installation.ts';
import { leaveNothing } from './leftovers.ts';
import { ServerProcess } from './server-process.ts';

/** The longest time that an answer may take. */
const ANSWER_DEADLINE_MS = 30_000;

interface Answer {
  readonly status: number;
  readonly body: string;
}

interface Body {
  readonly found: boolean;
  readonly verdict: string;
  readonly page_types: Readonly<Record<string, string>>;
  readonly matched: { readonly layer: string; readonly id: string };
}

export interface ClientsOptions {
  readonly port: number;
  readonly isTls: boolean;
  /** Number of domains in the index. */
  readonly domains: number;
  /** The first API key; {@link RefreshClients.key} can be changed later. */
  readonly key: string;
}

class RefreshClients {
  requests = 0;
  answered = 0;
  cut = 0;
  wrong = 0;
  readonly examples: string[] = [];
  /** The API key of all requests from now on. */
  key: string;
  /** Revisions from which an answer may come now. */
  allowed: readonly number[] = [1];
  /** Whether connections may be cut now, because a worker is being killed. */
  cutsExpected = false;
  readonly port: number;
  readonly #domains: number;
  readonly #get: typeof https.get;
  readonly #agent: http.Agent;
  #latencies: number[] = [];
  #running = true;

  constructor({ port, isTls, domains, key }: ClientsOptions) {
    this.port = port;
    this.#domains = domains;
    this.key = key;
    this.#get = isTls ? https.get : http.get;
    const options = { keepAlive: true, maxSockets: 64 };
    this.#agent = isTls ? new https.Agent({ ...options, rejectUnauthorized: false }) : new http.Agent(options);
  }

  /** Runs `count` clients until they are stopped. */
  async run(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#loop()));
    this.#agent.destroy();
  }

  stop(): void {
    this.#running = false;
  }

  /** Returns the latencies since the previous call, in milliseconds. */
  takeLatencies(): number[] {
    const taken = this.#latencies;
    this.#latencies = [];
    return taken;
  }

  async #loop(): Promise<void> {
    for (let turn = 0; this.#running; turn += 1) {
      const cutsExpected = this.cutsExpected;
      const started = performance.now();
      this.requests += 1;
      const before = this.allowed;
      const problem = await this.#askKind(turn % 4, before).catch((error: NodeJS.ErrnoException) => error);
      if (problem instanceof Error) {
        // Only errors of the connection have a code. An incomplete answer, or none in time, is always wrong.
        if ((cutsExpected || this.cutsExpected) && problem.code !== undefined) this.cut += 1;
        else this.#note(`connection: ${problem.code ?? problem.message}`);
        continue;
      }
      this.#latencies.push(performance.now() - started);
      if (problem !== '') this.#note(problem);
    }
  }

  #note(problem: string): void {
    this.wrong += 1;
    if (this.examples.length < 20) this.examples.push(problem);
  }

  /** Sends a request of one of four kinds. Returns a description of what is wrong with the answer, or an empty string. */
  async #askKind(kind: number, before: readonly number[]): Promise<string> {
    const domain = domainOf(Math.floor(Math.random() * this.#domains));
    const queries = [
      `domain=${domain}`,
      `url=${encodeURIComponent(`https://${domain}/x`)}&method=POST`,
      `url=${encodeURIComponent('http://169.254.169.254/latest/meta-data/')}`,
      `domain=unknown-${domain.replaceAll('.', '-')}.org`,
    ];
    const { status, body } = await this.#ask(`/api/check?${queries[kind]}`);
    if (status !== 200) return `${queries[kind]}: status ${status} ${body.slice(0, 120)}`;
    this.answered += 1;
    const answer = JSON.parse(body) as Body;
    const known = kind < 2;
    if (answer.found !== known) return `${queries[kind]}: found is ${answer.found}`;
    const verdict = ['allow', 'deny', 'deny', 'flag'][kind]!;
    if (answer.verdict !== verdict) return `${queries[kind]}: ${answer.verdict} by ${JSON.stringify(answer.matched)}`;
    const page = answer.page_types['pricing'];
    const pages = [...before, ...this.allowed].map((revision) => pageOf(domain, revision));
    return !known || pages.includes(page ?? '') ? '' : `${queries[kind]}: ${page}`;
  }

  #ask(path: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: this.port, path, agent: this.#agent, timeout: ANSWER_DEADLINE_MS };
      const request = this.#get({ ...options, headers: { 'x-api-key': this.key } }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          body += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
        response.on('error', reject);
      });
      request.on('error', reject);
      request.on('timeout', () => request.destroy(new Error(`no answer within ${ANSWER_DEADLINE_MS} ms`)));
    });
  }
}

/** Returns the current API key of an account. */
export async function readKey(place: Installation, account: string): Promise<string> {
  const { json, stderr } = await place.pagegate('key', 'show', account);
  if (json.key === undefined) throw new Error(`no key: ${stderr}`);
  return json.key;
}

export interface Served {
  readonly server: ServerProcess;
  /** The clients, with their own account. They are not started yet. */
  readonly clients: RefreshClients;
  /** How long the first refresh took, in milliseconds. */
  readonly refreshMs: number;
}

/** Serves an installation's first revision while a task runs, and removes everything afterwards. */
export async function withClients<T>(
  place: Installation,
  options: {
    readonly account: string;
    readonly workers: number;
    readonly domains: number;
    readonly isTls: boolean;
  },
  task: (served: Served) => Promise<T>,
): Promise<T> {
  const { account, workers, domains, isTls } = options;
  leaveNothing(place.root);
  let server: ServerProcess | undefined;
  let clients: RefreshClients | undefined;
  try {
    const started = performance.now();
    await activate(place, { revision: 1, domains });
    const refreshMs = performance.now() - started;
    const plan = ['--plan', 'custom', '--limit', '1000000000', '--reference', account];
    await place.pagegate('account', 'create', account);
    await place.pagegate('account', 'subscribe', account, ...plan);
    const key = await readKey(place, account);
    const port = await freePort();
    server = new ServerProcess(place.configFile, { port, workers }, ['--burst-exempt', '127.0.0.1']);
    await server.listening();
    clients = new RefreshClients({ port, isTls, domains, key });
    return await task({ server, clients, refreshMs });
  } finally {
    clients?.stop();
    await server?.stop();
    place.remove();
  }
}
