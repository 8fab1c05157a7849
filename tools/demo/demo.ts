/**
 * `make demo`: shows the whole product with the commands that a person would type. The state is kept in var/demo, so that a second run is fast
 * and `make serve` can use it.
 */

import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DAY_MS } from '../../src/times.ts';
import { ServerProcess } from '../chaos/server-process.ts';
import { freePort } from '../free-port.ts';
import { fetchesOf, showGuardedFetches, startSite } from './guard-demo.ts';
import { QUESTIONS, type Question } from './questions.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const STATE = join(ROOT, 'var/demo');
const CONFIG = join(STATE, 'pagegate.json');
const VENDOR_KEY = join(STATE, 'vendor/demo-vendor');
const DROP = join(STATE, 'drop');
const SAMPLE = join(ROOT, 'data/sample');
const GUARD_POLICY = join(STATE, 'guard-policy.json');
const ACCOUNT = 'demo';

const paint = (code: number, text: string): string => (process.stdout.isTTY ? `\x1b[${code}m${text}\x1b[0m` : text);
const say = (text = ''): void => void process.stdout.write(`${text}\n`);
const heading = (text: string): void => say(`\n${paint(1, text)}`);

function shownLine(args: readonly string[]): string {
  const shown = args.map((arg) => (arg.startsWith(ROOT) ? relative(ROOT, arg) : arg));
  return paint(36, `$ npx pagegate ${shown.map((arg) => (/\s/.test(arg) ? `"${arg}"` : arg)).join(' ')}`);
}

/** Runs the program and shows its command line. If it fails, the demo ends with the program's error message. */
function pagegate(args: readonly string[], capture = false): string {
  say(shownLine(args));
  const result = spawnSync(join(ROOT, 'src/pagegate'), args, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', capture ? 'pipe' : 'inherit', 'inherit'],
  });
  if (result.status !== 0) throw new Error(`pagegate ${args[0]} ended with ${result.status ?? result.signal}`);
  return result.stdout ?? '';
}

const withConfig = (...args: string[]): string[] => [...args, '--config', CONFIG];

/** Acts as the vendor, with a throwaway key: signs the drop and an evaluation license for its dataset. */
function prepareVendor(): void {
  heading('1. The vendor: a throwaway key, a signed drop, a signed evaluation license');
  if (existsSync(join(STATE, 'license.json'))) {
    say('   made by an earlier run; `make clean` starts over');
    return;
  }
  mkdirSync(join(STATE, 'vendor'), { recursive: true, mode: 0o700 });
  mkdirSync(DROP, { recursive: true });
  for (const name of readdirSync(SAMPLE)) {
    copyFileSync(join(SAMPLE, name), join(DROP, name));
    chmodSync(join(DROP, name), 0o644);
  }
  const trusted = { 'demo-vendor': 'vendor/demo-vendor.public.pem' };
  const config = {
    state_dir: 'state',
    license: { trusted_keys: trusted },
    refresh: { trusted_keys: trusted, drop: 'drop' },
  };
  writeFileSync(CONFIG, `${JSON.stringify(config, null, 2)}\n`);
  const { dataset } = JSON.parse(readFileSync(join(DROP, 'manifest.json'), 'utf8')) as { dataset: string };
  const privateKey = `${VENDOR_KEY}.private.pem`;
  if (!existsSync(privateKey)) pagegate(['license', 'keygen', '--out', VENDOR_KEY]);
  pagegate(['drop', 'sign', DROP, '--key', privateKey]);
  const license = pagegate(
    [
      'license',
      'issue',
      '--key',
      privateKey,
      '--key-name',
      'demo-vendor',
      '--licensee',
      'Demo',
      '--dataset',
      dataset,
    ].concat(['--refreshes-until', new Date(Date.now() + 365 * DAY_MS).toISOString().slice(0, 10)]),
    true,
  );
  writeFileSync(join(STATE, 'license.json'), license);
}

/** Installs the license and builds the index, unless an earlier run has done so. */
function prepareIndex(): void {
  heading('2. The index: the license is installed, the drop is checked, built, verified and put in place');
  if (existsSync(join(STATE, 'state/index/current'))) {
    say('   built by an earlier run');
    pagegate(withConfig('generations', 'list'));
    return;
  }
  pagegate(withConfig('license', 'install', join(STATE, 'license.json')));
  pagegate(withConfig('refresh', DROP));
}

/** Creates the demo account on the plan Pro. Returns its key. */
function prepareAccount(): string {
  heading('3. The account: a paid plan issues the key and activates it');
  if (!existsSync(join(STATE, 'state/ledger/ledger.sqlite'))) {
    pagegate(withConfig('account', 'create', ACCOUNT));
    pagegate(withConfig('account', 'subscribe', ACCOUNT, '--plan', 'pro', '--reference', 'DEMO-1'), true);
  }
  pagegate(withConfig('account', 'show', ACCOUNT));
  const shown = JSON.parse(pagegate(withConfig('key', 'show', ACCOUNT, '--json'), true)) as { key: string };
  return shown.key;
}

/** Sends one request and prints it with its answer. Returns whether the answer is the expected one. */
async function ask(origin: string, question: Question, accountKey: string): Promise<boolean> {
  const target = `/api/check?${new URLSearchParams(question.query)}`;
  heading(question.title);
  say(paint(36, `GET ${target}`));
  const response = await fetch(origin + target, { headers: { 'X-API-Key': question.key ?? accountKey } });
  const body = (await response.json()) as { readonly verdict?: string };
  const good = response.status === question.status && body.verdict === question.verdict;
  const expected = good ? '' : ` — expected ${question.status} ${question.verdict ?? ''}`;
  say(`${paint(good ? 32 : 31, `HTTP ${response.status}`)}${expected}`);
  for (const line of JSON.stringify(body, null, 2).split('\n')) say(`  ${line}`);
  return good;
}

/** Shows the agent's side. Returns how many fetches did not have the expected outcome. */
async function showGuard(origin: string, key: string, sitePort: number): Promise<number> {
  heading("5. The guard: an agent's own fetch, which asks first");
  say(
    '   The names are public; a resolver of the demo leads them to a site on loopback, and nothing outside is called.',
  );
  say(paint(36, 'const guardedFetch = createGuardedFetch(new Guard({ server, key }));'));
  return showGuardedFetches(origin, key, fetchesOf(sitePort), (text, line, isExpected) => {
    const [title = '', code = ''] = text.split('\n');
    heading(title);
    say(paint(36, code));
    say(`  ${paint(isExpected ? 32 : 31, line)}`);
  });
}

/** Permits the port of the demo's site besides 80 and 443, because the site cannot listen on port 80. */
function allowPort(port: number): void {
  const policy = { format: 'pagegate-policy/1', override: { rules: { port: { allowed: [80, 443, port] } } } };
  writeFileSync(GUARD_POLICY, `${JSON.stringify(policy, null, 2)}\n`);
}

function sayHowToGoOn(key: string): void {
  heading('How to go on');
  say('make serve                      serve this index and this account on http://127.0.0.1:8080 until Ctrl-C, then:');
  say(
    `curl -sG --noproxy '*' -H 'X-API-Key: ${key}' http://127.0.0.1:8080/api/check --data-urlencode 'url=https://www.netlify.com/pricing/'`,
  );
  say('npx pagegate explain --config var/demo/pagegate.json https://www.twitch.tv/login      what each layer said');
  say('npx pagegate inspect var/demo/state/index/current/index.pgx                              what the file holds');
  say('npx pagegate --help             everything else; README.md and docs/ say more');
}

async function main(): Promise<void> {
  prepareVendor();
  prepareIndex();
  const key = prepareAccount();
  heading('4. The server: real questions over HTTP');
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const site = await startSite();
  allowPort(site.port);
  const flags = ['--policy', GUARD_POLICY, '--port', String(port), '--admin-port', '0'];
  say(shownLine(withConfig('serve', ...flags)));
  const server = new ServerProcess(CONFIG, {}, flags);
  let wrong = 0;
  try {
    await server.listening();
    for (const question of QUESTIONS) wrong += (await ask(origin, question, key)) ? 0 : 1;
    wrong += await showGuard(origin, key, site.port);
  } finally {
    site.close();
    await server.stop();
  }
  if (wrong > 0) throw new Error(`${wrong} answers are not the ones expected`);
  sayHowToGoOn(key);
}

try {
  await main();
} catch (error) {
  say(`\nThe demo stopped: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
