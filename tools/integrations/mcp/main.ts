#!/usr/bin/env node
/** The MCP server as a program: over standard input and output, or with `--listen` over streamable HTTP on loopback. */
import { parseArgs } from 'node:util';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { createGuardedFetch } from '../../../src/guard/fetch.ts';
import type { Guard } from '../../../src/guard/guard.ts';
import { PROGRAM_VERSION } from '../../../src/version.ts';
import { ASK_OPTIONS, ASK_USAGE, guardOf, plain } from '../ask-guard.ts';
import { listenOnLoopback } from '../loopback.ts';
import { createHttpServer, HTTP_PATH } from './http-server.ts';
import { askPerson, createMcpServer, type McpOptions } from './server.ts';

const DEADLINE_MS = 30_000;
/** Time for a person's answer, which is awaited before the page is fetched. */
const PERSON_MS = 90_000;

const USAGE = `Usage: pagegate-mcp ${ASK_USAGE}
         [--listen HOST:PORT] [--ask-person]

Example:
  $ pagegate-mcp --server https://127.0.0.1:8443 --key-file /etc/pagegate/agent.key
`;

function readOptions() {
  const options = {
    ...ASK_OPTIONS,
    listen: { type: 'string' },
    'ask-person': { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  } as const;
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    process.stderr.write(`pagegate-mcp: ${(error as Error).message}. --help tells what there is.\n`);
    return process.exit(2);
  }
}

const values = readOptions();
if (values.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}
const deadlineMs = values['ask-person'] ? PERSON_MS + DEADLINE_MS : DEADLINE_MS;
const optionsFor = (guard: Guard): McpOptions => ({
  guard,
  guardedFetch: createGuardedFetch(guard),
  version: PROGRAM_VERSION,
  deadlineMs,
});

async function serveStdio(): Promise<void> {
  // Over standard input there is one host per server, so the question goes to the person who uses that host.
  const approve = values['ask-person']
    ? { approve: (decision: Parameters<typeof askPerson>[1]) => askPerson(server, decision, PERSON_MS) }
    : {};
  const guard = guardOf(values, approve);
  const server = createMcpServer(optionsFor(guard));
  // Invalid input cannot be answered, because it has no request id. After a message that is too long, the transport closes itself.
  server.server.onerror = ({ message }) => void process.stderr.write(`pagegate-mcp: ${plain(message)}\n`);
  server.server.onclose = () => {
    guard.close();
    process.exit(0);
  };
  process.stdin.on('end', () => void server.close());
  await server.connect(new StdioServerTransport());
}

async function serveHttp(place: string): Promise<void> {
  const guard = guardOf(values);
  const http = createHttpServer(optionsFor(guard));
  const bound = await listenOnLoopback(http, place);
  process.stderr.write(`pagegate-mcp listens on http://${bound}${HTTP_PATH}\n`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      http.close();
      http.closeAllConnections();
      guard.close();
    });
  }
}

try {
  if (values.listen === undefined) await serveStdio();
  else await serveHttp(values.listen);
} catch (error) {
  process.stderr.write(`pagegate-mcp: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 2;
}
