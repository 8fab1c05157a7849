/** The MCP server: one tool returns the verdict about a URL, and one fetches a page if the verdict allows it. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import type { Guard } from '../../../src/guard/guard.ts';
import { type Decision, isAllowed, RefusedError, refusalText } from '../../../src/guard/refusal.ts';
import { type FetchedPage, fetchPage, TEXT_MAX_LENGTH } from './page.ts';

export interface McpOptions {
  readonly guard: Guard;
  readonly guardedFetch: typeof fetch;
  readonly version: string;
  /** Longest time for a page including a person's answer, in milliseconds. */
  readonly deadlineMs: number;
}

const url = z.string().min(1).max(8_192).describe('The full URL, with its scheme.');
const VERDICT = {
  verdict: z.enum(['allow', 'deny', 'flag', 'error']),
  allowed: z.boolean().describe('Whether the request may be made. Only this counts.'),
  layer: z.string(),
  id: z.string().describe('The entry that decided.'),
  note: z.string(),
  domain: z.string(),
  found: z.boolean().describe('Whether the domain is classified.'),
};

/** Abort signal of the current tool call: when the call ends, a question to a person about it is withdrawn. */
const callSignal = new AsyncLocalStorage<AbortSignal>();

/** Creates a server with its two tools, not connected to a transport yet. */
export function createMcpServer({ guard, guardedFetch, version, deadlineMs }: McpOptions): McpServer {
  const server = new McpServer({ name: 'pagegate', title: 'pagegate', version });
  const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true };
  server.registerTool(
    'check_url',
    {
      title: 'Check a URL',
      description:
        'Says whether a URL may be requested with an HTTP method. Call it before anything is opened, sent or clicked by other tools. ' +
        'deny is policy: a retry will not help. flag needs a person.',
      inputSchema: { url, method: z.string().max(64).default('GET').describe('The HTTP method that is meant.') },
      outputSchema: VERDICT,
      annotations,
    },
    async ({ url: asked, method }) => verdictResult(await guard.check(asked, { method })),
  );
  server.registerTool(
    'fetch_page',
    {
      title: 'Fetch a page',
      description:
        'Fetches the text of a page by GET, where pagegate allows it. Every redirect is judged. A refusal says why and is no fault of the page.',
      inputSchema: { url, max_length: z.int().min(1).max(TEXT_MAX_LENGTH).default(TEXT_MAX_LENGTH) },
      outputSchema: {
        url: z.string().describe('Where the last redirect led.'),
        status: z.int(),
        content_type: z.string(),
        text: z.string(),
        truncated: z.boolean(),
      },
      annotations,
    },
    async ({ url: asked, max_length }, { signal }) => {
      try {
        const options = { lengthMax: max_length, deadlineMs, version, signal };
        return pageResult(await callSignal.run(signal, () => fetchPage(guardedFetch, asked, options)));
      } catch (error) {
        return failed(error);
      }
    },
  );
  return server;
}

function verdictResult(decision: Decision): CallToolResult {
  const { verdict, layer, id, note, domain, found } = decision;
  const allowed = isAllowed(decision);
  const text = allowed ? `allow (${layer}/${id}). ${note}` : refusalText(decision);
  return {
    content: [{ type: 'text', text }],
    structuredContent: { verdict, allowed, layer, id, note, domain, found },
  };
}

function pageResult(page: FetchedPage): CallToolResult {
  return {
    content: [{ type: 'text', text: page.text }],
    structuredContent: { ...page },
    isError: false,
  };
}

function failed(error: unknown): CallToolResult {
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
  const text =
    error instanceof RefusedError
      ? error.message
      : `The page could not be fetched: ${error instanceof Error ? error.message : String(error)}${cause}`;
  return { content: [{ type: 'text', text }], isError: true };
}

/**
 * Asks the person who uses an MCP host whether a flagged page may be fetched. If the host cannot ask, or does not answer in time, the page is not
 * approved. If the tool call is canceled, the question is withdrawn.
 */
export async function askPerson({ server }: McpServer, decision: Decision, timeoutMs: number): Promise<boolean> {
  if (server.getClientCapabilities()?.elicitation === undefined) return false;
  const question = {
    message: `${refusalText(decision)} Fetch ${decision.url} all the same?`,
    requestedSchema: {
      type: 'object' as const,
      properties: { fetch: { type: 'boolean' as const, title: 'Fetch this page', default: false } },
      required: ['fetch'],
    },
  };
  // The first request of a session has the id 0, and hosts that use the SDK ignore the cancellation of that one
  // (modelcontextprotocol/typescript-sdk#2283). Remove this ping when no host uses version 1 of the SDK.
  server.ping().catch(() => {});
  const signal = callSignal.getStore();
  const options = { timeout: timeoutMs, ...(signal !== undefined && { signal }) };
  const answer = await server.elicitInput(question, options).catch(() => undefined);
  return answer?.action === 'accept' && answer.content?.['fetch'] === true;
}
