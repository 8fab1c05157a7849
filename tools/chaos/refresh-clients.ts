/** The clients of a run that refreshes: they ask without a pause, plainly or over TLS, and believe nothing. */
import http from 'node:http';
import https from 'node:https';
import { freePort } from '../free-port.ts';
import { activate, domainOf, type Installation, pageOf } from '../installation.ts';
import { leaveNothing } from './leftovers.ts';
import { ServerProcess } from './server-process.ts';

/** No answer may take longer. */
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
  /** Domains of the index. */
  readonly domains: number;
  /** Sent with each request; may be changed. */
  readonly key: string;
}

class RefreshClients {
  requests = 0;
  answered = 0;
  cut = 0;
  wrong = 0;
  readonly examples: string[] = [];
  /** Sent with each request from now on. */
  key: string;
  /** Revisions that an answer may come from now. */
  allowed: readonly number[] = [1];
  /** While a worker is being killed, a connection may be lost. */
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

  /** So many clients ask until they are stopped. */
  async run(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#loop()));
    this.#agent.destroy();
  }

  stop(): void {
    this.#running = false;
  }

  /** Latencies in milliseconds since the last call. */
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
        // Only a connection's own errors have a code: half an answer and none in time are wrong at any moment.
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

  /** Asks a question of one of four kinds; answers what is wrong with the answer, or nothing. */
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

/** The key that an account has now. */
export async function readKey(place: Installation, account: string): Promise<string> {
  const { json, stderr } = await place.pagegate('key', 'show', account);
  if (json.key === undefined) throw new Error(`no key: ${stderr}`);
  return json.key;
}

export interface Served {
  readonly server: ServerProcess;
  /** With an account of its own; it does not ask yet. */
  readonly clients: RefreshClients;
  /** How long the first refresh took. */
  readonly refreshMs: number;
}

/** Serves an installation's first revision to clients while a task runs, and removes it all afterwards. */
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
