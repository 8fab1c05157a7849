/** What a schema finds wrong with a document, in words: where it is, what must stand there, and what was found. */
import type { ErrorObject } from 'ajv/dist/2020.js';
import { didYouMean } from './did-you-mean.ts';
import { escapePointer, fieldPath } from './strict-json.ts';

/** Longer values are cut in messages. */
const SHOWN_MAX_LENGTH = 60;

/** Texts of a known form, as people know them. */
const FORMATS: Readonly<Record<string, string>> = {
  date: 'a date, YYYY-MM-DD',
  'date-time': 'a time like 2026-11-21T00:00:00Z',
};

/** The place that is meant, as a JSON pointer; of a field that is missing, where it would stand. */
export function pointerOf({ keyword, instancePath, params }: ErrorObject): string {
  return keyword === 'required' ? `${instancePath}/${escapePointer(String(params['missingProperty']))}` : instancePath;
}

/** A place as people name it: `allow[0].path`, or the document as a whole. */
export const describePlace = (pointer: string): string => fieldPath(pointer) || 'the document';

/** What is wrong there; goes on after the name of the place. The validator must be `verbose`: else it does not tell what was found. */
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
      return missingOf(schema) ?? `${message}; ${got()}`;
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

/** What is wrong if every alternative only says which field must be there. */
function missingOf(schema: unknown): string | undefined {
  const names = (schema as readonly { readonly required?: readonly string[] }[]).map(({ required = [] }) => required);
  return names.every(({ length }) => length === 1) ? `must have one of ${names.flat().join(', ')}` : undefined;
}

function withArticle(type: string): string {
  return type === 'null' ? type : /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

/** A value as a message shows it: short, on one line, no control characters. */
export function shortJson(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN_MAX_LENGTH ? `${text.slice(0, SHOWN_MAX_LENGTH - 3)}...` : text;
}
