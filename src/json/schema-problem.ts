/** Describes a schema error: its place in the document, what is expected there, and what was found. */
import type { ErrorObject } from 'ajv/dist/2020.js';
import { didYouMean } from './did-you-mean.ts';
import { escapePointer, fieldPath } from './strict-json.ts';

/** Longer values are truncated in messages. */
const SHOWN_MAX_LENGTH = 60;

/** Descriptions of the formats that schemas use. */
const FORMATS: Readonly<Record<string, string>> = {
  date: 'a date, YYYY-MM-DD',
  'date-time': 'a time like 2026-11-21T00:00:00Z',
};

/** Returns the place of an error as a JSON pointer. For a missing field, this is where the field would be. */
export function pointerOf({ keyword, instancePath, params }: ErrorObject): string {
  return keyword === 'required' ? `${instancePath}/${escapePointer(String(params['missingProperty']))}` : instancePath;
}

/** Returns a place in readable form: `allow[0].path`, or `the document` for the whole document. */
export const describePlace = (pointer: string): string => fieldPath(pointer) || 'the document';

/** Returns the rest of a sentence that begins with the place. The validator must be `verbose`; otherwise errors do not include the value found. */
export function describeSchemaError({ keyword, params, message, data, schema, parentSchema }: ErrorObject): string {
  const limit = String(params['limit']);
  const got = (): string => `got ${shortJson(data)}`;
  switch (keyword) {
    case 'required':
      return 'is required and missing';
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return notAField(String(params['additionalProperty'] ?? params['unevaluatedProperty']), parentSchema);
    case 'anyOf':
      return missingAlternatives(schema) ?? `${message}; ${got()}`;
    case 'type':
      return `must be ${String(params['type']).split(',').map(withArticle).join(' or ')}, ${got()}`;
    case 'const':
      return `must be ${shortJson(params['allowedValue'])}, ${got()}`;
    case 'enum':
      return `must be one of ${(params['allowedValues'] as unknown[]).join(', ')}; ${got()}`;
    case 'pattern':
      return `must match ${String(params['pattern'])}; ${got()}`;
    case 'format':
      return `must be ${FORMATS[String(params['format'])] ?? String(params['format'])}; ${got()}`;
    case 'minLength':
      return `must have ${limit} or more characters; ${got()}`;
    case 'maxLength':
      return `must have ${limit} or fewer characters; ${got()}`;
    case 'minItems':
      return `must have ${limit} or more entries; ${got()}`;
    case 'maxItems':
      return `must have ${limit} or fewer entries`;
    case 'minimum':
      return `must be at least ${limit}; ${got()}`;
    case 'maximum':
      return `must be at most ${limit}; ${got()}`;
    default:
      return `${message ?? keyword}; ${got()}`;
  }
}

function notAField(name: string, parent: ErrorObject['parentSchema']): string {
  const known = Object.keys((parent?.['properties'] as object | undefined) ?? {});
  return `has ${shortJson(name)}, which is not one of its fields${didYouMean(name, known)}`;
}

/** Returns the description of an `anyOf` whose alternatives each require a single field; undefined for any other `anyOf`. */
function missingAlternatives(schema: unknown): string | undefined {
  const names = (schema as readonly { readonly required?: readonly string[] }[]).map(({ required = [] }) => required);
  return names.every(({ length }) => length === 1) ? `must have one of ${names.flat().join(', ')}` : undefined;
}

function withArticle(type: string): string {
  return type === 'null' ? type : /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

/** Formats a value for a message: short, on one line, without control characters. */
export function shortJson(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN_MAX_LENGTH ? `${text.slice(0, SHOWN_MAX_LENGTH - 3)}...` : text;
}
