/** A JSON reader that remembers where each value stood, so that a complaint can point at its line. */

/** Deeper nesting than this is refused: no document here needs ten levels. */
export const DEPTH_MAX = 32;
/** More values in one document are refused: each place is remembered. Ten thousand entries of a register have about 400,000. */
const VALUES_MAX = 1_000_000;
/** More repetitions are refused at once: each is remembered with its path, which may be nearly as long as the document. */
const REPEATED_MAX = 100;

/** What is wrong with a text that is no JSON, and where. */
export interface JsonProblem {
  /** The line, from 1. */
  readonly line: number;
  /** The column, from 1, in UTF-16 code units. */
  readonly column: number;
  readonly message: string;
}

/** A name that an object has twice: JSON.parse would silently keep the later one. */
export interface RepeatedName {
  readonly pointer: string;
  readonly line: number;
}

/** A parsed text with the places of its values. */
export interface JsonSource {
  readonly value: unknown;
  /** JSON pointer → line from 1; of an object's member, the line of its name. */
  readonly lines: ReadonlyMap<string, number>;
  readonly repeated: readonly RepeatedName[];
}

export interface ReadOptions {
  /** The number of the text's first line in its file; 1 without it. */
  readonly firstLine?: number;
  /** False where nobody asks where the values stood: `lines` stays empty, and any number of values is read. */
  readonly places?: boolean;
}

const BLANK = /[ \t\r\n]*/y;
const SCALAR = /-?[0-9][0-9.eE+-]*|true|false|null/y;

class JsonReader {
  readonly lines = new Map<string, number>();
  readonly repeated: RepeatedName[] = [];
  readonly #text: string;
  readonly #keepsPlaces: boolean;
  #at = 0;
  #line: number;
  #lineStart = 0;

  constructor(text: string, { firstLine = 1, places = true }: ReadOptions) {
    this.#text = text;
    this.#keepsPlaces = places;
    this.#line = firstLine;
  }

  document(): unknown {
    const value = this.#value('', 0);
    this.#skipBlank();
    if (this.#at < this.#text.length) this.#fail('unexpected text after the value');
    return value;
  }

  #fail(message: string): never {
    const problem: JsonProblem = { line: this.#line, column: this.#at - this.#lineStart + 1, message };
    throw new JsonSyntaxError(problem);
  }

  #skipBlank(): void {
    BLANK.lastIndex = this.#at;
    const end = this.#at + (BLANK.exec(this.#text)?.[0].length ?? 0);
    for (let i = this.#at; i < end; i += 1) {
      if (this.#text[i] !== '\n') continue;
      this.#line += 1;
      this.#lineStart = i + 1;
    }
    this.#at = end;
  }

  #value(pointer: string, depth: number): unknown {
    if (depth > DEPTH_MAX) this.#fail(`nested deeper than ${DEPTH_MAX} levels`);
    this.#skipBlank();
    if (this.#keepsPlaces && !this.lines.has(pointer)) this.lines.set(pointer, this.#line);
    if (this.lines.size > VALUES_MAX) this.#fail(`more than ${VALUES_MAX} values; split the file`);
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object(pointer, depth);
      case '[':
        return this.#array(pointer, depth);
      case '"':
        return this.#string();
      default:
        return this.#scalar();
    }
  }

  #string(): string {
    const end = this.#closingQuote();
    if (end === -1) this.#fail('expected a string that ends with a quotation mark');
    const token = this.#text.slice(this.#at, end + 1);
    const value = this.#decode(token, 'a string with an invalid escape or a raw control character') as string;
    this.#at += token.length;
    return value;
  }

  /** The index of the quotation mark that ends the string that begins here: the first one after an even run of backslashes. */
  #closingQuote(): number {
    let end = this.#text.indexOf('"', this.#at + 1);
    while (end !== -1) {
      let backslashes = 0;
      while (this.#text[end - 1 - backslashes] === '\\') backslashes += 1;
      if (backslashes % 2 === 0) return end;
      end = this.#text.indexOf('"', end + 1);
    }
    return -1;
  }

  #scalar(): unknown {
    SCALAR.lastIndex = this.#at;
    const token = SCALAR.exec(this.#text)?.[0];
    if (token === undefined) this.#fail(this.#at < this.#text.length ? 'expected a value' : 'the text ends too early');
    const value = this.#decode(token, `"${token}" is no number`);
    if (value === Infinity || value === -Infinity) this.#fail('the number is larger than any that can be kept');
    this.#at += token.length;
    return value;
  }

  #decode(token: string, complaint: string): unknown {
    try {
      return JSON.parse(token);
    } catch {
      return this.#fail(complaint);
    }
  }

  #object(pointer: string, depth: number): object {
    // Object.create(null) would not be a plain object to the validator; defineProperty keeps "__proto__" an ordinary name.
    const object: Record<string, unknown> = {};
    this.#at += 1;
    this.#skipBlank();
    if (this.#take('}')) return object;
    do {
      this.#skipBlank();
      if (this.#text[this.#at] !== '"') this.#fail('expected a name in quotation marks');
      const line = this.#line;
      const name = this.#string();
      const member = `${pointer}/${escapePointer(name)}`;
      if (Object.hasOwn(object, name)) this.repeated.push({ pointer: member, line });
      if (this.repeated.length > REPEATED_MAX) this.#fail(`names are repeated more than ${REPEATED_MAX} times`);
      if (this.#keepsPlaces) this.lines.set(member, line);
      this.#skipBlank();
      if (!this.#take(':')) this.#fail('expected ":"');
      const value = this.#value(member, depth + 1);
      Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
      this.#skipBlank();
    } while (this.#take(','));
    if (!this.#take('}')) this.#fail('expected "," or "}"');
    return object;
  }

  #array(pointer: string, depth: number): unknown[] {
    const array: unknown[] = [];
    this.#at += 1;
    this.#skipBlank();
    if (this.#take(']')) return array;
    do {
      array.push(this.#value(`${pointer}/${array.length}`, depth + 1));
      this.#skipBlank();
    } while (this.#take(','));
    if (!this.#take(']')) this.#fail('expected "," or "]"');
    return array;
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }
}

class JsonSyntaxError extends Error {
  readonly problem: JsonProblem;

  constructor(problem: JsonProblem) {
    super(problem.message);
    this.problem = problem;
  }
}

/** A name as one step of a JSON pointer (RFC 6901). */
export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** A JSON pointer as people write it: `/exceptions/0/expires` → `exceptions[0].expires`. */
export function fieldPath(pointer: string): string {
  let path = '';
  for (const step of pointer.split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (/^(?:0|[1-9][0-9]*)$/.test(name)) path += `[${name}]`;
    else path += path === '' ? name : `.${name}`;
  }
  return path;
}

/** Reads one JSON document. */
export function readJson(text: string, options: ReadOptions = {}): JsonSource | { readonly problem: JsonProblem } {
  const reader = new JsonReader(text, options);
  try {
    return { value: reader.document(), lines: reader.lines, repeated: reader.repeated };
  } catch (error) {
    if (error instanceof JsonSyntaxError) return { problem: error.problem };
    throw error;
  }
}
