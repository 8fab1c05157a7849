/** How rows of the contract tables are written, requested and checked. */
import { expect } from 'vitest';
import { exchange, nextClient, type RawResponse, requestText } from '../support/raw-http.ts';
import type { Deployment } from './deployment.ts';
import { ANSWERS } from './fixture.ts';
import { expectDocumented } from './openapi.ts';

/** One row: a request and the response that the documents specify. */
export interface Row {
  /** The row's place in the document, so that a reader of the document finds the test. */
  readonly name: string;
  /** The raw query, without the key. */
  readonly query: string;
  readonly answer: Answer;
}

export type Answer =
  | {
      readonly status: 200;
      /** The text of the body; `#` stands for quota_remaining and `*` for the note. */
      readonly body: string;
    }
  | { readonly status: 400; readonly error: string; readonly reason: string | undefined };

/** The response for a domain of the drop, for example `('stripe.com', 'deny page_type_db/login')`. */
export function found(domain: string, verdict: string): Answer {
  const [head, tail] = ANSWERS[domain] as readonly [string, string];
  return { status: 200, body: `{${head},"quota_remaining":#,${verdictText(verdict)}${tail}}` };
}

/** The response for a domain that is not in the drop. */
export function unknown(domain: string, verdict: string): Answer {
  const head = `"domain":"${domain}","found":false,"page_types":{}`;
  return { status: 200, body: `{${head},"quota_remaining":#,${verdictText(verdict)}}` };
}

/** The response for bad input. `reason` is its `reason` field. */
export function bad(error: string, reason?: string): Answer {
  return { status: 400, error, reason };
}

function verdictText(verdict: string): string {
  const [, word, layer, id] = /^(allow|flag|deny) ([a-z_]+)\/([a-z0-9_.-]+)$/.exec(verdict) ?? [];
  if (id === undefined) throw new Error(`"${verdict}" is not of the form "deny rules/login"`);
  return `"verdict":"${word}","matched":{"layer":"${layer}","id":"${id}","note":"*"}`;
}

/** A request of a test. Each comes from a client address of its own, so that the burst limit does not apply. */
export interface Ask {
  readonly query: string;
  readonly key?: string;
  /** How the key is sent. Default: in the header. */
  readonly keyIn?: 'header' | 'query';
  readonly from?: string;
}

export async function ask(port: number, request: Ask): Promise<RawResponse> {
  const { query, key, keyIn = 'header', from = nextClient() } = request;
  const inQuery = key !== undefined && keyIn === 'query';
  const text = [query, inQuery ? `api_key=${key}` : ''].filter((part) => part !== '').join('&');
  const target = text === '' ? '/api/check' : `/api/check?${text}`;
  const headers = key !== undefined && !inQuery ? [['X-API-Key', key] as const] : [];
  const { responses } = await exchange(port, [requestText(target, headers)], { from });
  return responses[0] as RawResponse;
}

/** Replaces the two parts of a body that a table cannot state. */
export function masked(body: string): string {
  return body.replace(/"quota_remaining":\d+/, '"quota_remaining":#').replace(/"note":"(?:[^"\\]|\\.)+"/, '"note":"*"');
}

export function remainingIn(response: RawResponse): number {
  return Number(/"quota_remaining":(\d+)/.exec(response.body)?.[1]);
}

/** Sends a simple valid lookup, to check that the server still works. Returns what the account has left. */
export async function sane(port: number, key: string): Promise<number> {
  const response = await ask(port, { query: 'url=fixture-bare.com', key });
  expect(response.status, 'the server goes on').toBe(200);
  return remainingIn(response);
}

export function expectAnswer(response: RawResponse, answer: Answer): void {
  if (answer.status === 200) {
    expectDocumented(response);
    expect({ status: response.status, body: masked(response.body) }).toEqual(answer);
    expect(response.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-pagegate-data': expect.stringMatching(/^[0-9]+\.[0-9a-z]+$/) as string,
    });
  } else {
    expect(expectError(response, answer.status, answer.error)['reason']).toBe(answer.reason);
  }
}

/** Checks that an error is JSON with a stable code and a sentence. */
export function expectError(response: RawResponse, status: number, error: string): Record<string, unknown> {
  expect(response.headers['content-type']).toBe('application/json');
  expectDocumented(response);
  const body = JSON.parse(response.body) as Record<string, unknown>;
  expect({ status: response.status, error: body['error'] }).toEqual({ status, error });
  expect(body['message']).toMatch(/^\S.{10,}/);
  expect(Object.keys(body).slice(0, 2)).toEqual(['error', 'message']);
  return body;
}

/**
 * Checks a row with both parameter names, with the key in the header and in the query, on the Pro and on the Business plan. The bodies must be
 * identical except for quota_remaining, and only a 200 may be charged, once.
 */
export async function holdRow(deployment: Deployment, row: Row): Promise<void> {
  const { port, keys } = deployment;
  const queries = [row.query];
  if (/^url=(?!.*&(?:url|%75rl|domain)=)/.test(row.query)) queries.push(row.query.replace('url=', 'domain='));
  const charge = row.answer.status === 200 ? 1 : 0;
  const left = { pro: await sane(port, keys.pro), business: await sane(port, keys.business) };
  const bodies = new Set<string>();
  for (const query of queries) {
    for (const plan of ['pro', 'business'] as const) {
      for (const keyIn of ['header', 'query'] as const) {
        const response = await ask(port, { query, key: keys[plan], keyIn });
        expectAnswer(response, row.answer);
        left[plan] -= charge;
        if (charge === 1) expect(remainingIn(response), 'quota_remaining').toBe(left[plan]);
        // An error may name the affected parameter.
        bodies.add(
          response.body
            .replace(/"quota_remaining":\d+/, '"quota_remaining":#')
            .replace('"parameter":"domain"', '"parameter":"url"'),
        );
      }
    }
  }
  expect(bodies.size, 'the same bytes under both names, both ways to send the key and on both plans').toBe(1);
  expect(await sane(port, keys.pro), 'charged for each 200 and for nothing else').toBe(left.pro - 1);
  expect(await sane(port, keys.business), 'charged for each 200 and for nothing else').toBe(left.business - 1);
}
