/** The MCP server over streamable HTTP. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { isFromPage } from '../loopback.ts';
import { createMcpServer, type McpOptions } from './server.ts';

export const HTTP_PATH = '/mcp';

/** Creates a server that does not listen yet. All calls share one guard and its connections. */
export function createHttpServer(options: McpOptions): Server {
  return createServer((request, response) => {
    answer(options, request, response).catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      response.destroy();
    });
  });
}

/** Answers a request with a new MCP server: it is stateless between requests. */
async function answer(options: McpOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (isFromPage(request)) {
    response.writeHead(403).end();
    return;
  }
  if (request.url !== HTTP_PATH) {
    response.writeHead(404).end();
    return;
  }
  if (request.method !== 'POST') {
    response.writeHead(405, { allow: 'POST' }).end();
    return;
  }
  const server = createMcpServer(options);
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
  response.on('close', () => void server.close());
  await server.connect(transport as Transport);
  await transport.handleRequest(request, response);
}
