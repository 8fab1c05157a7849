/** Every response in the contract test also matches the OpenAPI document from which licensees generate clients. */
import { readFileSync } from 'node:fs';
import { Ajv2020 as Validator } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'vitest';
import type { RawResponse } from '../support/raw-http.ts';

const SCHEMAS: Readonly<Record<number, string>> = {
  200: '#/components/schemas/LookupRecord',
  400: '#/components/responses/BadRequest/content/application~1json/schema',
  401: '#/components/responses/Unauthorized/content/application~1json/schema',
  403: '#/components/responses/Forbidden/content/application~1json/schema',
  404: '#/components/responses/NotFound/content/application~1json/schema',
  405: '#/components/responses/MethodNotAllowed/content/application~1json/schema',
  429: '#/components/responses/RateLimited/content/application~1json/schema',
  503: '#/components/responses/Unavailable/content/application~1json/schema',
};

const ajv = new Validator({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema(JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')), 'openapi');
const validators = new Map(
  Object.entries(SCHEMAS).map(([status, pointer]) => [Number(status), ajv.compile({ $ref: `openapi${pointer}` })]),
);

/** Checks a response of the server against the document. */
export function expectDocumented(response: RawResponse): void {
  const validate = validators.get(response.status);
  if (validate === undefined) throw new Error(`status ${response.status} is not documented`);
  validate(JSON.parse(response.body));
  expect(validate.errors ?? [], `fits docs/openapi.json: ${response.body}`).toEqual([]);
}
