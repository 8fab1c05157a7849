/**
 * The hook as a program. With `--listen` it is a server for hooks of the type http; otherwise it reads one tool call from standard
 * input. A coding agent lets a call pass whose hook fails in any way but exit code 2, so that is what every failure ends with.
 */
import { fstatSync, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';
import type { Guard } from '../../../src/guard/guard.ts';
import { http } from '../../../src/platform/http.ts';
import { ASK_OPTIONS, ASK_USAGE, guardOf } from '../ask-guard.ts';
import { isFromPage, listenOnLoopback } from '../loopback.ts';
import { answerHook, deny, type HookAnswer, INPUT_MAX_BYTES } from './answer.ts';

/** Below the five seconds that the agent is told to wait. */
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
  // Nobody reads what goes to /dev/null, which Node.js also puts in the place of an output that is closed.
  if (fstatSync(1).rdev === statSync('/dev/null').rdev) block(answer.hookSpecificOutput.permissionDecisionReason);
  process.stdout.on('error', (error) => block(error.message));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

/** Always 200, and in time: the agent takes any other status, and no answer, for a failure of the hook, and lets the call pass. */
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

/** Also where help is asked for: a hook that ends with 0 lets the call pass. */
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
