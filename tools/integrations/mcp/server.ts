/** The MCP server: one tool that tells the verdict about a URL, and one that fetches a page only where that allows it. */
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
  /** Longest time for a page, a person's answer included. */
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

/** The end of the call that a request is made for: a question about it is of no use afterwards. */
const callSignal = new AsyncLocalStorage<AbortSignal>();

/** A server with its two tools, not connected to anything yet. */
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
 * Asks the person behind an MCP host whether a page that is flagged may be fetched. A host that cannot ask, or has no answer within
 * the time, approves nothing. Where the call is given up that the page is for, so is the question.
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
  // The first request of a session has the id 0, and hosts on the SDK do not notice when that one is withdrawn
  // (modelcontextprotocol/typescript-sdk#2283). Once no host runs on version 1 of it, this can go.
  server.ping().catch(() => {});
  const signal = callSignal.getStore();
  const options = { timeout: timeoutMs, ...(signal !== undefined && { signal }) };
  const answer = await server.elicitInput(question, options).catch(() => undefined);
  return answer?.action === 'accept' && answer.content?.['fetch'] === true;
}
