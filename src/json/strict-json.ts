/** Parses JSON of other authors strictly: refuses what `JSON.parse` silently accepts, and reports where it is. */
import { type JSONPath, type JSONVisitor, printParseErrorCode, visit } from 'jsonc-parser';
import { type ErrorCode, PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';

/** Deeper nesting is refused: no document here needs ten levels. */
const DEPTH_MAX = LIMITS.jsonDepth.value;
/** The maximum number of values if the line of each is recorded. A register of ten thousand agents has about 400,000. */
const VALUES_MAX = LIMITS.jsonValues.value;
/** More repeated names end the parsing: each is kept with its path, which may be nearly as long as the document. */
const REPEATED_MAX = 100;
/** The maximum number of problems in one message. */
const PROBLEMS_MAX = 5;
/** The maximum length of a problem. It quotes names, and a name may be as long as the document. */
const PROBLEM_MAX_LENGTH = 500;
/** The maximum number of characters of a token that a problem quotes. */
const QUOTED_MAX_LENGTH = 40;

/** Why a text is not JSON, and where. */
export interface JsonProblem {
  /** Counts from 1. */
  readonly line: number;
  /** Counts from 1, in UTF-16 code units. */
  readonly column: number;
  readonly message: string;
}

/** A parsed JSON text with the lines of its values. */
export interface JsonSource {
  readonly value: unknown;
  /** JSON pointer (RFC 6901) → line, counting from 1; for a member of an object, the line of its name. Empty unless `places` is set. */
  readonly lines: ReadonlyMap<string, number>;
  /** Names that occur more than once in an object. `value` has only the last of each. */
  readonly repeated: readonly { readonly pointer: string; readonly line: number }[];
}

export interface ReadOptions {
  /** The number of the text's first line in its file; by default 1. */
  readonly firstLine?: number;
  /** Whether to record the line of each value. */
  readonly places?: boolean;
}

/**
 * Parses a JSON document in UTF-8, with or without a byte order mark.
 *
 * @param name name of the document in the message.
 * @throws PagegateError with the given code for bytes that are not UTF-8, text that is not JSON, a repeated name in an object, nesting
 * deeper than any document needs, and numbers that are too large for a double. `details.problems` has a line for each problem.
 */
export function parseDocument(bytes: Uint8Array, code: ErrorCode, name: string): unknown {
  const found = read(bytes);
  if ('value' in found) return found.value;
  const problems = found.problems.map((problem) =>
    problem.length > PROBLEM_MAX_LENGTH ? `${problem.slice(0, PROBLEM_MAX_LENGTH)}…` : problem,
  );
  const more = problems.length > PROBLEMS_MAX ? ` (and ${problems.length - PROBLEMS_MAX} more)` : '';
  const what = `${name} is not valid JSON: ${problems.slice(0, PROBLEMS_MAX).join('; ')}${more}.`;
  throw new PagegateError(code, what, { source: name, problems });
}

function read(bytes: Uint8Array): { readonly value: unknown } | { readonly problems: readonly string[] } {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { problems: ['it is not UTF-8 text'] };
  }
  if (text.trim() === '') return { problems: ['it is empty'] };
  const source = readJson(text);
  if ('problem' in source) {
    const { line, column, message } = source.problem;
    return { problems: [`line ${line}, column ${column}: ${message}`] };
  }
  if (source.repeated.length === 0) return source;
  // If a name occurs three times, report only its last line.
  const repeated = new Map(source.repeated.map(({ pointer, line }) => [pointer, line]));
  return { problems: [...repeated].map(([at, line]) => `${fieldPath(at)} is set more than once (line ${line})`) };
}

/** Messages by the library's name of the error. */
const MESSAGES: Readonly<Record<string, string>> = {
  InvalidSymbol: 'unexpected text',
  InvalidNumberFormat: 'the number is not valid',
  PropertyNameExpected: 'expected a name in quotation marks',
  ValueExpected: 'expected a value',
  ColonExpected: 'expected ":"',
  CommaExpected: 'expected ","',
  CloseBraceExpected: 'expected "," or "}"',
  CloseBracketExpected: 'expected "," or "]"',
  EndOfFileExpected: 'unexpected text after the value',
  InvalidCommentToken: 'comments are not JSON',
  UnexpectedEndOfComment: 'comments are not JSON',
  UnexpectedEndOfString: 'expected a string that ends with a quotation mark',
  UnexpectedEndOfNumber: 'the number is not valid',
  InvalidUnicode: 'a string with an invalid escape',
  InvalidEscapeCharacter: 'a string with an invalid escape',
  InvalidCharacter: 'a string with a raw control character',
};

/** Ends the parsing at the first problem. */
class Refused extends Error {
  readonly problem: JsonProblem;

  constructor(line: number, column: number, message: string) {
    super(message);
    this.problem = { line, column, message };
  }
}

/** Parses one JSON document. */
export function readJson(text: string, options: ReadOptions = {}): JsonSource | { readonly problem: JsonProblem } {
  const reading = new Reading(text, options);
  try {
    visit(text, reading.visitor, { disallowComments: true });
    return { value: JSON.parse(text), lines: reading.lines, repeated: reading.repeated };
  } catch (error) {
    if (error instanceof Refused) return { problem: error.problem };
    // The two parsers agree on what JSON is. If they ever differ, the stricter one wins.
    if (error instanceof SyntaxError)
      return { problem: { line: options.firstLine ?? 1, column: 1, message: error.message } };
    throw error;
  }
}

/** Collects lines and repeated names while the library visits a text. The library counts lines and columns from 0. */
class Reading {
  readonly lines = new Map<string, number>();
  readonly repeated: { readonly pointer: string; readonly line: number }[] = [];
  readonly visitor: JSONVisitor = {
    onObjectBegin: (_at, _length, line, column, path) => {
      this.#open(line, column, path);
      this.#names.push(new Set());
    },
    onObjectProperty: (name, _at, _length, line, column, parent) => this.#member(name, line, column, parent),
    onObjectEnd: () => {
      this.#depth -= 1;
      this.#names.pop();
    },
    onArrayBegin: (_at, _length, line, column, path) => this.#open(line, column, path),
    onArrayEnd: () => {
      this.#depth -= 1;
    },
    onLiteralValue: (value, _at, _length, line, column, path) => {
      if (value === Infinity || value === -Infinity)
        this.#refuse(line, column, 'the number is larger than any that can be kept');
      this.#notePlace(line, column, path);
    },
    onError: (error, at, length, line, column) => {
      const token = this.#text.slice(at, at + Math.min(length, QUOTED_MAX_LENGTH));
      const got = at < this.#text.length ? JSON.stringify(token) : 'the end';
      this.#refuse(line, column, `${MESSAGES[printParseErrorCode(error)] ?? 'unexpected text'}, got ${got}`);
    },
  };
  readonly #text: string;
  readonly #firstLine: number;
  readonly #keepsPlaces: boolean;
  /** Names seen so far in each open object, the outermost first. */
  readonly #names: Set<string>[] = [];
  #depth = 0;

  constructor(text: string, { firstLine = 1, places = false }: ReadOptions) {
    this.#text = text;
    this.#firstLine = firstLine;
    this.#keepsPlaces = places;
  }

  #refuse(line: number, column: number, message: string): never {
    throw new Refused(line + this.#firstLine, column + 1, message);
  }

  #open(line: number, column: number, path: () => JSONPath): void {
    this.#depth += 1;
    if (this.#depth > DEPTH_MAX + 1) this.#refuse(line, column, `nested deeper than ${DEPTH_MAX} levels`);
    this.#notePlace(line, column, path);
  }

  #member(name: string, line: number, column: number, parent: () => JSONPath): void {
    const names = this.#names.at(-1)!;
    if (names.has(name)) {
      this.repeated.push({ pointer: pointerOf([...parent(), name]), line: line + this.#firstLine });
      if (this.repeated.length > REPEATED_MAX)
        this.#refuse(line, column, `names are repeated more than ${REPEATED_MAX} times`);
    }
    names.add(name);
    if (this.#keepsPlaces) this.lines.set(pointerOf([...parent(), name]), line + this.#firstLine);
  }

  /** Records the line of a value. For a member of an object, the line of its name is already there and stays. */
  #notePlace(line: number, column: number, path: () => JSONPath): void {
    if (!this.#keepsPlaces) return;
    const pointer = pointerOf(path());
    if (!this.lines.has(pointer)) this.lines.set(pointer, line + this.#firstLine);
    if (this.lines.size > VALUES_MAX) this.#refuse(line, column, `more than ${VALUES_MAX} values; split the file`);
  }
}

const pointerOf = (path: JSONPath): string => path.map((step) => `/${escapePointer(String(step))}`).join('');

/** Escapes a name for use as one step of a JSON pointer (RFC 6901). */
export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** Converts a JSON pointer to a readable path: `/exceptions/0/expires` → `exceptions[0].expires`. */
export function fieldPath(pointer: string): string {
  let path = '';
  for (const step of pointer.split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (/^(?:0|[1-9][0-9]*)$/.test(name)) path += `[${name}]`;
    else path += path === '' ? name : `.${name}`;
  }
  return path;
}
