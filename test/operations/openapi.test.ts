/** The OpenAPI document: valid, and consistent with the error table and the vocabulary. */
import { readFileSync } from 'node:fs';
import { Ajv2020 as Validator } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { parseTarget } from '../../src/domain/target.ts';
import { ERRORS } from '../../src/errors.ts';
import { pageTypes } from '../../src/record/vocabulary.ts';
import { PROGRAM_VERSION } from '../../src/version.ts';

interface Json {
  readonly [name: string]: Json;
}

const taxonomy = (name: string): Json =>
  JSON.parse(readFileSync(new URL(`../../data/taxonomies/${name}`, import.meta.url), 'utf8'));
const namesIn = (json: Json, field: string): unknown[] =>
  (json['categories'] as unknown as Json[]).map((entry) => entry[field]);
const taxonomies = {
  iabPaths: namesIn(taxonomy('iab-content-3.1.json'), 'path'),
  filteringNames: namesIn(taxonomy('filtering-59.json'), 'name'),
};

const text = readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8');
const document = JSON.parse(text) as Json;

const VALIDATOR = '@seriousme/openapi-schema-validator';

const isInstalled = (name: string): boolean => {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
};

/** Resolves `#/a/b`. Throws if it does not exist. */
function resolve(ref: string): Json {
  let node: Json | undefined = document;
  for (const name of ref.slice(2).split('/')) node = node?.[name.replaceAll('~1', '/').replaceAll('~0', '~')];
  if (node === undefined) throw new Error(`${ref} leads nowhere`);
  return node;
}

const ajv = new Validator({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema(document, 'openapi');
const schemaNames = Object.keys(resolve('#/components/schemas'));
const validatorOf = (pointer: string) => ajv.compile({ $ref: `openapi${pointer}` });

describe('docs/openapi.json', () => {
  test('is OpenAPI 3.1 and has this version of the program', () => {
    expect(String(document['openapi'])).toMatch(/^3\.1\./);
    expect(document['info']?.['version']).toBe(PROGRAM_VERSION);
    expect(Object.keys(document['paths']!)).toEqual(['/api/check']);
    expect(Object.keys(resolve('#/paths/~1api~1check'))).toEqual(['get']);
  });

  test('has no broken reference and no unused component', () => {
    const refs = [...text.matchAll(/"\$ref":\s*"([^"]+)"/g)].map((match) => match[1]!);
    expect(refs.length).toBeGreaterThan(10);
    for (const ref of refs) expect(() => resolve(ref)).not.toThrow();
    const unused = Object.entries(document['components']!)
      .filter(([group]) => group !== 'securitySchemes')
      .flatMap(([group, members]) => Object.keys(members).map((name) => `#/components/${group}/${name}`))
      .filter((pointer) => !refs.includes(pointer));
    expect(unused).toEqual([]);
  });

  test.runIf(isInstalled(VALIDATOR))('is valid against the OpenAPI 3.1 schema', async () => {
    const { Validator: OpenApiValidator } = (await import(VALIDATOR)) as {
      Validator: new () => { validate(document: unknown): Promise<{ valid: boolean; errors?: unknown }> };
    };
    expect(await new OpenApiValidator().validate(JSON.parse(text))).toEqual({ valid: true });
    const broken = { ...JSON.parse(text), paths: { 'no-slash': {} } };
    expect((await new OpenApiValidator().validate(broken)).valid).toBe(false);
  });

  test('has only schemas that compile', () => {
    for (const name of schemaNames) expect(() => validatorOf(`#/components/schemas/${name}`)).not.toThrow();
  });

  test('has examples that match their schema', () => {
    const validate = validatorOf('#/components/schemas/LookupRecord');
    const examples = Object.values(resolve('#/components/examples'));
    expect(examples.length).toBeGreaterThan(1);
    for (const example of examples) expect(validate(example['value']) ? [] : validate.errors).toEqual([]);
  });

  test('has examples with names of the taxonomies', () => {
    const record = resolve('#/components/examples/denied')['value']!;
    expect(taxonomies.iabPaths).toContain(record['iab_category']);
    for (const name of record['filtering_categories'] as unknown as string[])
      expect(taxonomies.filteringNames).toContain(name);
  });

  test('lists the reasons for bad input', () => {
    const values = [
      ' ',
      'https://a^b/',
      '127.0.0.1',
      'localhost',
      'https://a..b/',
      `${'a'.repeat(64)}.com`,
      'xn--\u{1F4A9}.com',
      'a@b',
    ];
    const reasons = values.map((value) => {
      const target = parseTarget(value);
      return 'problem' in target ? target.problem : '';
    });
    expect(resolve('#/components/schemas/Error')['properties']!['reason']!['enum']).toEqual(reasons);
  });

  test.each([
    ['a found:false with page types', { found: false, page_types: { login: 'https://a.example/' } }],
    ['a found:false with a language', { found: false, language: 'en' }],
    ['a page type of no vocabulary', { found: true, page_types: { teapot: 'https://a.example/' } }],
    ['an unknown verdict', { verdict: 'maybe' }],
    ['a rank of 0', { found: true, global_rank: 0 }],
    ['no quota', { quota_remaining: undefined }],
  ])('refuses a record with %s', (_name, change) => {
    const good = structuredClone(resolve('#/components/examples/not_found')['value']) as object;
    const validate = validatorOf('#/components/schemas/LookupRecord');
    expect(validate({ ...good })).toBe(true);
    expect(validate(JSON.parse(JSON.stringify({ ...good, ...change })))).toBe(false);
  });

  test('lists the page types of the vocabulary, in its order', () => {
    expect(resolve('#/components/schemas/PageType')['enum']).toEqual(pageTypes('full').map((type) => type.name));
  });

  const codesOf = (status: number): string[] =>
    Object.entries(ERRORS)
      .filter(([, entry]) => 'status' in entry && entry.status === status)
      .map(([code]) => code)
      .sort();

  test.each([
    [400, resolve('#/components/schemas/BadRequestCode')['enum']],
    [503, resolve('#/components/schemas/UnavailableCode')['enum']],
    [403, resolve('#/components/schemas/QuotaError')['properties']!['error']!['enum']],
    [401, ['missing_key', 'unknown_key']],
    [429, ['rate_limited']],
  ])('lists the error codes of status %i in the table', (status, codes) => {
    expect([...(codes as unknown as string[])].sort()).toEqual(codesOf(status));
  });

  test('has every status of the table, and those of the transport', () => {
    const statuses = new Set(
      Object.values(ERRORS).flatMap((entry) => ('status' in entry ? [String(entry.status)] : [])),
    );
    const documented = Object.keys(resolve('#/paths/~1api~1check/get/responses')).filter((status) => status !== '200');
    expect([...statuses, '431', '505'].sort()).toEqual(documented.sort());
  });
});
