/** Checks responses of a real server against the OpenAPI document: every status in it, body and headers. */
import { readFileSync } from 'node:fs';
import { Ajv2020 as Validator } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, read, startTestServer, type TestServer } from '../support/server.ts';

const document = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8'));
const ajv = new Validator({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema(document, 'openapi');

const OPERATION = document.paths['/api/check'].get;
const RECORD = document.components.schemas.LookupRecord;

/** Follows a reference of the document, if the value is one. */
const follow = (value: { $ref?: string }): { pointer: string; value: Record<string, unknown> } => {
  const pointer = value.$ref ?? '';
  const target = pointer
    .slice(2)
    .split('/')
    .reduce((node, name) => node[name], document);
  return { pointer, value: target };
};

/** Returns the differences between a response and the document. */
function problemsOf(answer: Answer): unknown[] {
  const status = String(answer.status);
  const response = OPERATION.responses[status];
  if (response === undefined) return [`status ${status} is not documented`];
  const isReference = response.$ref !== undefined;
  const { value } = isReference ? follow(response) : { value: response };
  const base = isReference ? response.$ref : `#/paths/~1api~1check/get/responses/${status}`;
  const validate = ajv.compile({ $ref: `openapi${base}/content/application~1json/schema` });
  const problems: unknown[] = validate(answer.body) ? [] : [...(validate.errors ?? [])];
  if (answer.headers.get('content-type') !== 'application/json') problems.push('content-type');
  for (const [name, given] of Object.entries((value['headers'] ?? {}) as Record<string, { $ref?: string }>)) {
    const header = given.$ref === undefined ? (given as Record<string, unknown>) : follow(given).value;
    const text = answer.headers.get(name);
    if (text === null) problems.push(`no header ${name}`);
    else if (!ajv.compile(header['schema'] as object)(text)) problems.push(`header ${name}: ${text}`);
  }
  return problems;
}

const ENTRIES = [
  {
    domain: 'full.example.com',
    language: 'en',
    page_types: { login: 'https://full.example.com/login', pricing: 'http://full.example.com/pricing' },
    iab_category: 'Business and Finance > Business > Business Banking & Finance',
    filtering_categories: ['Banking & Finance', 'Business'],
    open_page_rank: 7.52,
    global_rank: 331,
  },
  { domain: 'bare.example.com', page_types: {} },
];

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    entries: ENTRIES,
    accounts: { pro: { plan: 'pro' }, poor: { plan: 'custom', limit: 1 }, waiting: {} },
  });
});
afterAll(() => server.stop());

const withKey = (name: string) => ({ 'x-api-key': server.keys[name] ?? '' });

describe("the document matches the server's responses", () => {
  test.each([
    ['a full record', '?domain=full.example.com', true],
    ['a bare record', '?domain=bare.example.com', true],
    ['a verified login page', '?url=https%3A%2F%2Ffull.example.com%2Flogin', true],
    ['a write', '?url=https%3A%2F%2Ffull.example.com%2F&method=POST', true],
    ['a domain that is not found', '?domain=absent.example.org', false],
    ['an address', '?url=http%3A%2F%2F169.254.169.254%2Flatest', false],
  ])('200: %s', async (_name, query, found) => {
    const answer = await server.check(query);
    expect(answer.status).toBe(200);
    expect(answer.body.found).toBe(found);
    expect(problemsOf(answer)).toEqual([]);
    // The document allows additional fields; the server sends only documented ones.
    expect(Object.keys(answer.body).filter((key) => !(key in RECORD.properties))).toEqual([]);
  });

  test('the full record has every documented field, so that each is checked', async () => {
    const { body } = await server.check('?domain=full.example.com');
    expect(Object.keys(body)).toEqual(Object.keys(RECORD.properties));
  });

  test.each([
    ['nothing', '', 'missing_input'],
    ['no domain', '?domain=%20', 'bad_input'],
    ['bad percent', '?url=%zz', 'bad_encoding'],
    ['a repeated parameter', '?domain=a.example&domain=a.example', 'repeated_parameter'],
    ['an unknown parameter', '?url=https://a.example/?x=1&y=2', 'unknown_parameter'],
    ['two domains', '?url=a.example&domain=b.example', 'conflicting_input'],
    ['a method that is not a token', '?url=a.example&method=A%20B', 'bad_method'],
    ['a long value', `?url=${'a'.repeat(9000)}`, 'input_too_long'],
    ['two keys', '?url=a.example&api_key=x', 'conflicting_credentials'],
  ])('400: %s', async (_name, query, code) => {
    const answer = await server.check(query);
    expect(answer).toMatchObject({ status: 400, body: { error: code } });
    expect(problemsOf(answer)).toEqual([]);
  });

  test('401: no key, a wrong key', async () => {
    for (const headers of [{}, { 'x-api-key': 'pg_wrong' }]) {
      const answer = await server.check('?domain=bare.example.com', headers);
      expect(answer.status).toBe(401);
      expect(problemsOf(answer)).toEqual([]);
    }
  });

  test('403: not activated, and quota exhausted', async () => {
    const waiting = await server.check('?domain=bare.example.com', withKey('waiting'));
    expect(waiting).toMatchObject({ status: 403, body: { error: 'not_activated' } });
    expect(problemsOf(waiting)).toEqual([]);
    expect((await server.check('?domain=bare.example.com', withKey('poor'))).status).toBe(200);
    const poor = await server.check('?domain=bare.example.com', withKey('poor'));
    expect(poor).toMatchObject({ status: 403, body: { error: 'quota_exhausted' } });
    expect(problemsOf(poor)).toEqual([]);
  });

  test('429 and 503, with Retry-After', async () => {
    const other = await startTestServer({ config: { burst: { exempt: [], limit: 1 } } });
    try {
      const unavailable = await other.check('?domain=bare.example.com');
      expect(unavailable.status).toBe(503);
      expect(problemsOf(unavailable)).toEqual([]);
      const limited = await other.check('?domain=bare.example.com');
      expect(limited.status).toBe(429);
      expect(problemsOf(limited)).toEqual([]);
    } finally {
      await other.stop();
    }
  });

  test('the other paths answer as described', async () => {
    const headers = withKey('pro');
    const elsewhere = await read(await fetch(`${server.url}/elsewhere`, { headers }));
    expect([elsewhere.status, problemsOf(elsewhere)]).toEqual([404, []]);
    const posted = await read(await fetch(`${server.url}/api/check?domain=a.example`, { method: 'POST', headers }));
    expect([posted.status, problemsOf(posted)]).toEqual([405, []]);
  });

  test('a response that does not match is detected', async () => {
    const answer = await server.check('?domain=bare.example.com');
    expect(problemsOf({ ...answer, body: { ...answer.body, verdict: 'perhaps' } })).not.toEqual([]);
    expect(problemsOf({ ...answer, status: 418 })).not.toEqual([]);
  });
});
