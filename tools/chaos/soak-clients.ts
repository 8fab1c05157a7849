/** Clients of the soak: they ask without a pause over TLS, and believe nothing. */
import https from 'node:https';
import { domainOf, pageOf } from '../../test/refresh/deployment.ts';

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

export class SoakClients {
  requests = 0;
  answered = 0;
  cut = 0;
  wrong = 0;
  readonly examples: string[] = [];
  /** Sent with each request from now on. */
  key = '';
  /** Revisions that an answer may come from now. */
  allowed: readonly number[] = [];
  /** While a worker is being killed, a connection may be lost. */
  cutsExpected = false;
  readonly #port: number;
  readonly #domains: number;
  readonly #agent = new https.Agent({ keepAlive: true, rejectUnauthorized: false, maxSockets: 64 });
  #latencies: number[] = [];
  #running = true;

  constructor(port: number, domains: number) {
    this.#port = port;
    this.#domains = domains;
  }

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
        if (cutsExpected || this.cutsExpected) this.cut += 1;
        else this.#complain(`connection: ${problem.code ?? problem.message}`);
        continue;
      }
      this.#latencies.push(performance.now() - started);
      if (problem !== '') this.#complain(problem);
    }
  }

  #complain(problem: string): void {
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
    const { status, body } = await this.#get(`/api/check?${queries[kind]}`);
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

  #get(path: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: this.#port, path, agent: this.#agent };
      const request = https.get({ ...options, headers: { 'x-api-key': this.key } }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          body += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
        response.on('error', reject);
      });
      request.on('error', reject);
    });
  }
}
