/** The coding agents' hook as a program: documented inputs, malformed ones, and a pagegate that is unreachable, slow or refuses. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerHook } from '../../tools/integrations/hook/answer.ts';
import { closeLater, createGuard, createJudge, KEY } from './support.ts';

const HOOK = fileURLToPath(new URL('../../tools/integrations/hook/', import.meta.url));
let folder: string;
let keyFile: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pagegate-hook-'));
  keyFile = join(folder, 'agent.key');
  writeFileSync(keyFile, `${KEY}\n`, { mode: 0o600 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A tool call in the format of Claude Code. */
const call = (input: unknown, fields: object = {}): string =>
  JSON.stringify({
    session_id: 'abc123',
    transcript_path: '/tmp/transcript.jsonl',
    cwd: '/tmp',
    permission_mode: 'default',
    hook_event_name: 'PreToolUse',
    tool_name: 'WebFetch',
    tool_input: input,
    tool_use_id: 'toolu_01',
    ...fields,
  });
const webFetch = (url: string) => call({ url, prompt: 'What does it say?' });

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function ended(child: ChildProcess): Promise<Ended> {
  let [stdout, stderr] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk) => {
    stderr += chunk;
  });
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })));
}

function hook(input: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<Ended> {
  const child = spawn(join(HOOK, 'pagegate-hook'), args, { env });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  return ended(child);
}
const argsFor = (server: string, timeoutMs = '3500') => [
  '--server',
  server,
  '--key-file',
  keyFile,
  '--timeout-ms',
  timeoutMs,
];

/** How Claude Code interprets the result: anything except exit code 2 or an output that denies or asks lets the call pass. */
function outcome({ code, stdout }: Ended): string {
  if (code === 2) return 'blocked';
  if (code !== 0 || stdout === '') return 'passes';
  const { hookSpecificOutput } = JSON.parse(stdout) as { hookSpecificOutput: Record<string, string> };
  expect(hookSpecificOutput).toMatchObject({ hookEventName: 'PreToolUse' });
  expect(hookSpecificOutput['permissionDecisionReason']?.length).toBeGreaterThan(20);
  return hookSpecificOutput['permissionDecision'] ?? 'passes';
}

describe('the verdict', () => {
  test.each([
    ['allow', 'passes', ''],
    ['deny', 'deny', 'pagegate refused GET https://a.example: deny (rules/deny_id). Note of deny.'],
    ['flag', 'ask', 'A person has to approve it first.'],
  ])('%s: the call %s', async (verdict, expected, reason) => {
    const judge = await createJudge(() => verdict);
    const answer = await hook(webFetch('https://a.example/page?x=1'), argsFor(judge.url));
    expect({ outcome: outcome(answer), code: answer.code }).toEqual({ outcome: expected, code: 0 });
    expect(answer.stdout).toContain(reason);
    expect(judge.asked).toEqual(['GET https://a.example/page?x=1']);
  });

  test.each([
    ['default', 'ask'],
    ['acceptEdits', 'ask'],
    ['plan', 'deny'],
    ['auto', 'deny'],
    ['dontAsk', 'deny'],
    ['bypassPermissions', 'deny'],
    ['one of tomorrow', 'deny'],
    [undefined, 'deny'],
    [['default'], 'deny'],
  ])('flag, in the permission mode %j: %s', async (permission_mode, expected) => {
    const judge = await createJudge(() => 'flag');
    const { guard } = createGuard(judge.url);
    const { hookSpecificOutput: output } = await answerHook(
      guard,
      call({ url: 'https://a.example/' }, { permission_mode }),
    );
    expect(output?.permissionDecision).toBe(expected);
    expect(output?.permissionDecisionReason).toContain('A person has to approve it first.');
    const isSaid = output?.permissionDecisionReason.includes('In this permission mode nobody is asked.');
    expect(isSaid).toBe(expected === 'deny');
  });

  test('refuses a URL that is neither http nor https without a lookup', async () => {
    const judge = await createJudge(() => 'allow');
    for (const url of ['data:text/html,x', 'FTP://a.example/x', 'file:///etc/passwd']) {
      const answer = await hook(webFetch(url), argsFor(judge.url));
      expect(outcome(answer)).toBe('deny');
      expect(answer.stdout).toContain('deny (guard/request_target)');
    }
    expect(judge.asked).toEqual([]);
  });

  test('is for the method that the tool names', async () => {
    const judge = await createJudge((_url, method) => (method === 'GET' ? 'allow' : 'deny'));
    const input = call({ url: 'https://a.example/', method: 'POST' }, { tool_name: 'mcp__http__request' });
    expect(outcome(await hook(input, argsFor(judge.url)))).toBe('deny');
  });

  test('is logged if a log file is configured, and a decision that cannot be logged is a refusal', async () => {
    const judge = await createJudge(() => 'allow');
    const file = join(folder, 'decisions.ndjson');
    for (let i = 0; i < 2; i++) {
      await hook(webFetch('https://a.example/'), [...argsFor(judge.url), '--decision-log', file]);
    }
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ verdict: 'allow' }, { host: 'a.example' }]);
    const answer = await hook(webFetch('https://a.example/'), [...argsFor(judge.url), '--decision-log', '/nowhere/x']);
    expect(outcome(answer)).toBe('deny');
  });
});

const MALFORMED: readonly (readonly [string, string])[] = [
  ['nothing', ''],
  ['no JSON', 'https://a.example/'],
  ['half a JSON', '{"hook_event_name":"PreToolUse","tool_input":{"url":"https://a.ex'],
  ['null', 'null'],
  ['a list', '[]'],
  ['a text', '"https://a.example/"'],
  ['no event', JSON.stringify({ tool_input: { url: 'https://a.example/' } })],
  ['another event', call({ url: 'https://a.example/' }, { hook_event_name: 'PostToolUse' })],
  ['no input', call(undefined)],
  ['an input that is a text', call('https://a.example/')],
  ['no url', call({ prompt: 'x' })],
  ['a url that is a list', call({ url: ['https://a.example/'] })],
  ['an empty url', call({ url: ' ' })],
  ['a method that is not a text', call({ url: 'https://a.example/', method: 1 })],
  ['a method that is not a token', call({ url: 'https://a.example/', method: 'G E T' })],
  ['two megabytes', call({ url: 'https://a.example/', prompt: 'x'.repeat(2 << 20) })],
];

describe('a malformed input', () => {
  test.each(MALFORMED)('%s: refused', async (_name, input) => {
    const judge = await createJudge(() => 'allow');
    expect(outcome(await hook(input, argsFor(judge.url)))).toMatch(/^(?:deny|blocked)$/);
    expect(judge.asked).toEqual([]);
  });
});

const status = (code: number) => (response: ServerResponse) =>
  void response.writeHead(code, { 'retry-after': '30' }).end(`{"error":"code_${code}","message":"Message."}`);
const STATES: readonly (readonly [string, (response: ServerResponse) => unknown])[] = [
  ['slow', () => undefined],
  ['hangs up', (response) => void response.destroy()],
  ['answers 401', status(401)],
  ['answers 403', status(403)],
  ['answers 429', status(429)],
  ['answers 503', status(503)],
  ['answers nonsense', (response) => void response.end('ok')],
];

describe('pagegate', () => {
  test.each(STATES)('%s: refused', async (_name, answer) => {
    const judge = await createJudge((_url, _method, response) => answer(response) as undefined);
    const { code, ...rest } = await hook(webFetch('https://a.example/'), argsFor(judge.url));
    expect({ code, outcome: outcome({ code, ...rest }) }).toEqual({ code: 0, outcome: 'deny' });
  });

  test('is unreachable: refused', async () => {
    expect(outcome(await hook(webFetch('https://a.example/'), argsFor('http://127.0.0.1:1')))).toBe('deny');
  });
});

describe('a hook that cannot work blocks', () => {
  test.each([
    ['no key file', ['--server', 'http://127.0.0.1:1']],
    ['a missing key file', ['--server', 'http://127.0.0.1:1', '--key-file', '/nowhere']],
    ['an unknown option', ['--unknown']],
    ['an invalid server', ['--server', 'x', '--key-file', '/nowhere']],
  ])('%s', async (_name, args) => {
    const answer = await hook(webFetch('https://a.example/'), args);
    expect(answer.code).toBe(2);
    expect(answer.stderr).toContain('refused this tool call');
  });

  test.each([
    ['closed', '>&-'],
    ['nothing', '>/dev/null'],
    ['full', '>/dev/full'],
  ])('with an output that is %s, if there is a message to write', async (_name, output) => {
    const judge = await createJudge((url) => (url.endsWith('/ok') ? 'allow' : 'deny'));
    for (const [path, code] of Object.entries({ '/ok': 0, '/login': 2 })) {
      const words = ['-c', `exec "$@" ${output}`, 'sh', join(HOOK, 'pagegate-hook'), ...argsFor(judge.url)];
      const child = spawn('/bin/sh', words);
      child.stdin.end(webFetch(`https://a.example${path}`));
      expect((await ended(child)).code, path).toBe(code);
    }
  });

  test('with input that never ends', async () => {
    const judge = await createJudge(() => 'allow');
    const child = spawn(join(HOOK, 'pagegate-hook'), argsFor(judge.url));
    child.stdin.write('{');
    const answer = await ended(child);
    expect([answer.code, answer.stderr]).toEqual([2, expect.stringContaining('ran out of time')]);
  });

  test('with a wrong option, or on a request for help, which lists the options', async () => {
    for (const word of ['--help', '--bogus']) {
      const { code, stderr } = await ended(spawn(join(HOOK, 'pagegate-hook'), [word]));
      expect(code).toBe(2);
      expect(stderr).toContain(`Unknown option '${word}'. Usage: pagegate-hook --key-file FILE [--server URL]`);
    }
  });

  test('as a killed program, with a defect, and without Node.js', async () => {
    const place = join(folder, 'copy/tools/integrations/hook');
    mkdirSync(place, { recursive: true });
    copyFileSync(join(HOOK, 'pagegate-hook'), join(place, 'pagegate-hook'));
    chmodSync(join(place, 'pagegate-hook'), 0o755);
    const run = (program: string, path = process.env['PATH']) => {
      writeFileSync(join(place, 'main.js'), program);
      return ended(spawn('/bin/sh', [join(place, 'pagegate-hook')], { env: { PATH: path } }));
    };
    for (const program of [
      'process.kill(process.pid, "SIGKILL")',
      'syntax error',
      'require("./nowhere")',
      'process.exit(1)',
    ]) {
      expect((await run(program)).code, program).toBe(2);
    }
    expect((await run('', '/usr/sbin')).code).toBe(2);
    expect((await run('')).code).toBe(0);
  });
});

describe('over HTTP', () => {
  async function start(server: string, timeoutMs?: string): Promise<string> {
    const child = spawn(join(HOOK, 'pagegate-hook'), [...argsFor(server, timeoutMs), '--listen', '127.0.0.1:0']);
    const finished = ended(child);
    const port = await new Promise<string>((resolve) => {
      let text = '';
      child.stderr.on('data', (chunk) => {
        text += chunk;
        const found = /listens on 127\.0\.0\.1:([0-9]+)/.exec(text)?.[1];
        if (found !== undefined) resolve(found);
      });
    });
    closeLater(async () => {
      child.kill('SIGTERM');
      expect(await finished).toMatchObject({ code: 0 });
    });
    return `http://127.0.0.1:${port}/`;
  }
  const post = async (url: string, body: string, headers: Record<string, string> = {}): Promise<Ended> => {
    const response = await fetch(url, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
    });
    const text = await response.text();
    return { code: response.status === 200 ? 0 : 1, stdout: text === '{}' ? '' : text, stderr: '' };
  };

  test('the same inputs get the same answers, always with status 200; verdicts are cached', async () => {
    const judge = await createJudge((url) => url.slice('https://'.length).split('.')[0]);
    const url = await start(judge.url);
    const outcomes: string[] = [];
    for (const name of ['allow', 'deny', 'flag', 'allow'])
      outcomes.push(outcome(await post(url, webFetch(`https://${name}.example/`))));
    expect(outcomes).toEqual(['passes', 'deny', 'ask', 'passes']);
    expect(judge.asked).toHaveLength(3);
    for (const [name, input] of MALFORMED) expect(outcome(await post(url, input)), name).toBe('deny');
  });

  test.each(STATES)('pagegate %s: refused', async (_name, answer) => {
    const judge = await createJudge((_url, _method, response) => answer(response) as undefined);
    expect(outcome(await post(await start(judge.url), webFetch('https://a.example/')))).toBe('deny');
  });

  test('pagegate is unreachable: refused', async () => {
    expect(outcome(await post(await start('http://127.0.0.1:1'), webFetch('https://a.example/')))).toBe('deny');
  });

  /** Sends a POST with its own Host header, which `fetch` does not allow. */
  const postAs = (url: string, host: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const sent = request(url, { method: 'POST', headers: { host } }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => resolve(`${response.statusCode} ${text}`));
      });
      sent.on('error', reject).end(webFetch('https://a.example/'));
    });

  test('a request under another host name gets no information and costs nothing', async () => {
    const judge = await createJudge(() => 'allow');
    const url = await start(judge.url);
    const { port } = new URL(url);
    for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1', '127.0.0.1:1'])
      expect(await postAs(url, host)).toMatch(/^200 .*"permissionDecision":"deny".*from a program on this host/);
    expect(judge.asked).toEqual([]);
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`]) expect(await postAs(url, host)).toBe('200 {}');
  });

  test.each(['0.0.0.0:0', '192.0.2.1:9292', '[::]:0', 'example.com:9292', '127.0.0.1:', '127.0.0.1:65536', '9292'])(
    'does not listen on %s',
    async (place) => {
      const child = spawn(join(HOOK, 'pagegate-hook'), [...argsFor('http://127.0.0.1:1'), '--listen', place]);
      child.stderr.on('data', (text) => /listens on/.test(`${text}`) && child.kill());
      expect(await ended(child)).toMatchObject({
        code: 2,
        stderr:
          'pagegate-hook: --listen is 127.0.0.1:PORT: this server does not authenticate its clients, so only loopback is allowed\n',
      });
    },
  );

  test('reports in one line that another program uses the port, and what to do', async () => {
    const { port } = await createJudge(() => 'allow');
    const place = `127.0.0.1:${port}`;
    const child = spawn(join(HOOK, 'pagegate-hook'), [...argsFor('http://127.0.0.1:1'), '--listen', place]);
    expect(await ended(child)).toMatchObject({
      code: 2,
      stderr: `pagegate-hook: cannot listen on ${place}: another program listens there; end it, or name another port with --listen\n`,
    });
  });

  test('a page in a browser gets no information', async () => {
    const judge = await createJudge(() => 'allow');
    const url = await start(judge.url);
    expect(outcome(await post(url, webFetch('https://a.example/'), { origin: 'https://evil.example' }))).toBe('deny');
    expect(judge.asked).toEqual([]);
  });
});

describe('the configuration', () => {
  test.each(['settings.json', 'settings.http.json'])('%s blocks if the hook fails', (name) => {
    const settings = JSON.parse(readFileSync(join(HOOK, name), 'utf8')) as {
      hooks: { PreToolUse: readonly { matcher: string; hooks: readonly object[] }[] };
    };
    expect(settings.hooks.PreToolUse).toMatchObject([
      { matcher: 'WebFetch', hooks: [{ timeout: 5, onFailure: 'block' }] },
    ]);
  });
});
