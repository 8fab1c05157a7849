/**
 * The hook as a program. With `--listen` it is a server for hooks of type http; otherwise it reads one tool call from standard input. If a hook
 * fails, the agent permits the call unless the exit code is 2. So every failure ends with this code.
 */
import { fstatSync, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';
import type { Guard } from '../../../src/guard/guard.ts';
import { http } from '../../../src/platform/http.ts';
import { ASK_OPTIONS, ASK_USAGE, guardOf } from '../ask-guard.ts';
import { isFromPage, listenOnLoopback } from '../loopback.ts';
import { answerHook, deny, type HookAnswer, INPUT_MAX_BYTES } from './answer.ts';

/** Less than the five seconds that the agent is configured to wait. */
const DEADLINE_MS = 4_000;
const BLOCKED = 2;

function block(reason: string): never {
  process.stderr.write(`pagegate refused this tool call: ${reason}\n`);
  process.exit(BLOCKED);
}

/** Ends a server that cannot start. */
function fail(reason: string): never {
  process.stderr.write(`pagegate-hook: ${reason}\n`);
  process.exit(BLOCKED);
}

process.on('uncaughtException', (error) => block(error.message));
process.on('unhandledRejection', (error) => block(String(error)));

async function readAll(stream: AsyncIterable<Buffer>): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of stream) {
    sizeBytes += chunk.length;
    if (sizeBytes > INPUT_MAX_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function answerOnce(guard: Guard): Promise<void> {
  setTimeout(() => block('the hook ran out of time.'), DEADLINE_MS).unref();
  const input = await readAll(process.stdin);
  if (input === undefined) block('the hook was given too much.');
  const answer = await answerHook(guard, input);
  guard.close();
  process.stdin.destroy();
  if (answer.hookSpecificOutput === undefined) return;
  // An answer written to /dev/null is lost. Node.js also uses /dev/null in place of a closed output.
  if (fstatSync(1).rdev === statSync('/dev/null').rdev) block(answer.hookSpecificOutput.permissionDecisionReason);
  process.stdout.on('error', (error) => block(error.message));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

/** Answers always with 200 and within the deadline: the agent treats any other status, or no answer, as a failed hook and permits the call. */
async function answerRequest(guard: Guard, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const late = new Promise<HookAnswer>((resolve) => {
    setTimeout(() => resolve(deny('The hook ran out of time.')), DEADLINE_MS).unref();
  });
  const answer = await Promise.race([late, answerPosted(guard, request)]);
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
}

async function answerPosted(guard: Guard, request: IncomingMessage): Promise<HookAnswer> {
  if (request.method !== 'POST' || isFromPage(request))
    return deny('Post a tool call here, from a program on this host.');
  const input = await readAll(request).catch(() => undefined);
  return input === undefined ? deny('The tool call is too large, or cut off.') : answerHook(guard, input);
}

async function listen(guard: Guard, place: string): Promise<void> {
  const server = http.createServer({ requestTimeout: 0 }, (request, response) => {
    answerRequest(guard, request, response).catch(() => response.destroy());
  });
  const bound = await listenOnLoopback(server, place).catch((error: Error) => fail(error.message));
  process.stderr.write(`pagegate-hook listens on ${bound}\n`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      server.close();
      server.closeAllConnections();
      guard.close();
    });
  }
}

/** Reads the options. Wrong options, including `--help`, end with exit code 2: a hook that ends with 0 permits the call. */
function readOptions() {
  try {
    return parseArgs({ options: { ...ASK_OPTIONS, listen: { type: 'string' } } }).values;
  } catch (error) {
    return block(`${(error as Error).message}. Usage: pagegate-hook ${ASK_USAGE} [--listen HOST:PORT]`);
  }
}

const values = readOptions();
if (values.listen === undefined) await answerOnce(guardOf(values, { cacheSeconds: 0 }));
else await listen(guardOf(values), values.listen);
