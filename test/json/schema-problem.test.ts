/** The errors of a schema as text: where, what was expected, what was found. */
import { Ajv2020 as Validator } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect, it } from 'vitest';
import { describeSchemaError, pointerOf } from '../../src/json/schema-problem.ts';

const validator = new Validator({ verbose: true, allowUnionTypes: true });
addFormats.default(validator, ['date', 'date-time']);

it.each<[string, object, unknown, string, string]>([
  ['a missing field', { required: ['a/b'] }, {}, '/a~1b', 'is required and missing'],
  ['an unknown field', { additionalProperties: false }, { x: 1 }, '', 'has "x", which is not one of its fields'],
  ['one that no part knows', { unevaluatedProperties: false }, { x: 1 }, '', 'has "x", which is not one of its fields'],
  ['a type', { items: { type: 'string' } }, ['a', 5], '/1', 'must be a string, got 5'],
  ['one of two types', { type: ['integer', 'null'] }, 'x', '', 'must be an integer or null, got "x"'],
  ['a fixed text', { const: 'v/1' }, 'v/2', '', 'must be "v/1", got "v/2"'],
  ['one of several', { enum: ['a', 'b'] }, 'c', '', 'must be one of a, b; got "c"'],
  ['a form', { pattern: '^a$' }, 'b\n', '', 'must match ^a$; got "b\\n"'],
  ['the name of a field', { propertyNames: { pattern: '^a$' } }, { b: 1 }, '', 'must match ^a$; got "b"'],
  ['a day', { format: 'date' }, 'x', '', 'must be a date, YYYY-MM-DD; got "x"'],
  ['a moment', { format: 'date-time' }, 'x', '', 'must be a time like 2026-11-21T00:00:00Z; got "x"'],
  ['a short text', { minLength: 2 }, 'x', '', 'must have 2 or more characters; got "x"'],
  ['a long text', { maxLength: 2 }, 'x'.repeat(99), '', `must have 2 or fewer characters; got "${'x'.repeat(56)}...`],
  ['a text that can just be shown whole', { const: 1 }, 'x'.repeat(58), '', `must be 1, got "${'x'.repeat(58)}"`],
  ['one that is a character longer', { const: 1 }, 'x'.repeat(59), '', `must be 1, got "${'x'.repeat(56)}...`],
  ['an empty list', { minItems: 1 }, [], '', 'must have 1 or more entries; got []'],
  ['a long list', { maxItems: 1 }, [1, 2], '', 'must have 1 or fewer entries'],
  ['a small number', { minimum: 1 }, 0, '', 'must be at least 1; got 0'],
  ['a large number', { maximum: 1 }, 2, '', 'must be at most 1; got 2'],
  ['anything else', { multipleOf: 2 }, 3, '', 'must be multiple of 2; got 3'],
])('%s', (_what, schema, value, pointer, words) => {
  const validate = validator.compile(schema);
  expect(validate(value)).toBe(false);
  const problem = validate.errors!.at(0)!;
  expect([pointerOf(problem), describeSchemaError(problem)]).toEqual([pointer, words]);
});
