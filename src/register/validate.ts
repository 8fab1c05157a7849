/** Validates agent register files against their schema. Each finding names file, line, entry and field. */
import { readFileSync } from 'node:fs';
import { type ErrorObject, Ajv2020 as Validator } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describeSchemaError, pointerOf, shortJson } from '../json/schema-problem.ts';
import { escapePointer, fieldPath, type JsonSource, readJson } from '../json/strict-json.ts';
import { LIMITS } from '../limits.ts';
import { readSmallFile } from '../platform/small-file.ts';

const SCHEMA = JSON.parse(
  readFileSync(new URL('../../data/schema/agent-register.schema.json', import.meta.url), 'utf8'),
) as { readonly properties: { readonly exceptions: { readonly items: { readonly properties: object } } } };
const FIELDS = Object.keys(SCHEMA.properties);
const EXCEPTION_FIELDS = Object.keys(SCHEMA.properties.exceptions.items.properties);

/** One finding. An error makes the file invalid. A warning is about something that the schema allows but a person should check. */
export interface RegisterFinding {
  readonly severity: 'error' | 'warning';
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** Number of the entry in the file, from 1; absent if the finding is about the whole file. */
  readonly entry?: number;
  /** The entry's agent_id, if it has one. */
  readonly agent_id?: string;
  /** Path of the field, for example `exceptions[0].expires`; empty if the finding is about the whole entry. */
  readonly field: string;
  readonly message: string;
}

/** The result for a set of files. */
export interface RegisterReport {
  readonly valid: boolean;
  readonly files: number;
  readonly entries: number;
  readonly errors: number;
  readonly warnings: number;
  /** In the order of files, entries and lines; at most a thousand. */
  readonly findings: readonly RegisterFinding[];
}

interface Entry {
  readonly file: string;
  readonly number: number;
  readonly pointer: string;
  readonly source: JsonSource;
  readonly value: unknown;
}

type Report = (finding: RegisterFinding) => void;

/** Reads a register file, up to the size limit; `-` is standard input. @throws PagegateError register_unreadable */
export function readRegisterFile(path: string): Uint8Array {
  return readSmallFile(path, { code: 'register_unreadable', maxBytes: LIMITS.registerBytes.value, stdin: true });
}

/** Collects the findings of several files, because an agent_id should be unique across all of them. */
export class RegisterValidator {
  readonly #check = compileSchema();
  readonly #findings: RegisterFinding[] = [];
  readonly #ids = new Map<string, Entry>();
  #files = 0;
  #entries = 0;
  #errors = 0;
  #warnings = 0;

  /** Validates the content of one file: a JSON object, an array of objects, or one object per line (NDJSON). */
  add(file: string, contents: Uint8Array): void {
    this.#files += 1;
    const report: Report = (finding) => this.#note(finding);
    for (const entry of entriesOf(file, contents, report)) {
      this.#entries += 1;
      this.#validate(entry, report);
    }
  }

  report(): RegisterReport {
    return {
      valid: this.#errors === 0,
      files: this.#files,
      entries: this.#entries,
      errors: this.#errors,
      warnings: this.#warnings,
      findings: this.#findings,
    };
  }

  #note(finding: RegisterFinding): void {
    if (finding.severity === 'error') this.#errors += 1;
    else this.#warnings += 1;
    if (this.#findings.length < LIMITS.registerFindings.value) this.#findings.push(finding);
  }

  #validate(entry: Entry, report: Report): void {
    for (const { pointer, line } of entry.source.repeated) {
      if (pointer !== entry.pointer && !pointer.startsWith(`${entry.pointer}/`)) continue;
      report({ ...at(entry, pointer), severity: 'error', line, message: 'is there twice; keep one' });
    }
    const valid = this.#check(entry.value);
    for (const problem of valid ? [] : distinct(this.#check.errors ?? [])) {
      report({ ...at(entry, entry.pointer + pointerOf(problem)), severity: 'error', message: findingOf(problem) });
    }
    if (isObject(entry.value)) for (const finding of adviceFor(entry, entry.value)) report(finding);
    this.#checkUnique(entry, report);
  }

  #checkUnique(entry: Entry, report: Report): void {
    const id = agentId(entry.value);
    if (id === undefined) return;
    const first = this.#ids.get(id);
    if (first === undefined) {
      this.#ids.set(id, entry);
      return;
    }
    const where = `${first.file}:${at(first, `${first.pointer}/agent_id`).line}`;
    report({
      ...at(entry, `${entry.pointer}/agent_id`),
      severity: 'warning',
      message: `${id} is also the id of the entry at ${where}`,
    });
  }
}

function compileSchema(): ReturnType<Validator['compile']> {
  const ajv = new Validator({ allErrors: true, strict: true, verbose: true });
  addFormats.default(ajv, ['date']);
  return ajv.compile(SCHEMA);
}

const empty = (file: string): RegisterFinding => {
  const message = 'is empty; expected at least one entry';
  return { severity: 'error', file, line: 1, field: '', message };
};

function* entriesOf(file: string, contents: Uint8Array, report: Report): Generator<Entry> {
  let text: string;
  try {
    // The decoder drops a byte order mark.
    text = new TextDecoder('utf-8', { fatal: true }).decode(contents);
  } catch {
    report({ severity: 'error', file, line: 1, field: '', message: 'is not UTF-8 text' });
    return;
  }
  if (text.trim() === '') {
    report(empty(file));
    return;
  }
  if (isLines(text)) {
    yield* entriesOfLines(file, text, report);
    return;
  }
  const source = readJson(text, { places: true });
  if ('problem' in source) {
    const { line, column, message } = source.problem;
    report({ severity: 'error', file, line, field: '', message: `is not JSON: ${message} (column ${column})` });
  } else if (Array.isArray(source.value)) {
    if (source.value.length === 0) report(empty(file));
    for (const [i, value] of source.value.entries()) yield { file, number: i + 1, pointer: `/${i}`, source, value };
  } else {
    yield { file, number: 1, pointer: '', source, value: source.value };
  }
}

/** Whether a text is NDJSON: its first line is a complete object, and more text follows. */
function isLines(text: string): boolean {
  const start = text.trimStart();
  const end = start.indexOf('\n');
  if (end === -1 || !start.startsWith('{') || start.slice(end).trim() === '') return false;
  return !('problem' in readJson(start.slice(0, end)));
}

function* entriesOfLines(file: string, text: string, report: Report): Generator<Entry> {
  let number = 0;
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    number += 1;
    const source = readJson(line, { firstLine: i + 1, places: true });
    if ('problem' in source) {
      const message = `is not JSON: ${source.problem.message} (column ${source.problem.column})`;
      report({ severity: 'error', file, line: i + 1, entry: number, field: '', message });
      continue;
    }
    yield { file, number, pointer: '', source, value: source.value };
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function agentId(value: unknown): string | undefined {
  const id = isObject(value) ? value['agent_id'] : undefined;
  return typeof id === 'string' ? id : undefined;
}

/** The location of a finding. A missing field has no line; the line of the object that should contain it is used. */
function at(entry: Entry, pointer: string): Omit<RegisterFinding, 'severity' | 'message'> {
  const id = agentId(entry.value);
  let known = pointer;
  while (known !== '' && !entry.source.lines.has(known)) known = known.slice(0, known.lastIndexOf('/'));
  return {
    file: entry.file,
    line: entry.source.lines.get(known) ?? 1,
    entry: entry.number,
    ...(id === undefined ? {} : { agent_id: id }),
    field: fieldPath(pointer.slice(entry.pointer.length)),
  };
}

/** Keeps one problem per field: `anyOf` and its branches, or a format and its pattern, report the same problem twice. */
function distinct(problems: readonly ErrorObject[]): ErrorObject[] {
  const byField = new Map<string, ErrorObject>();
  for (const problem of problems) {
    const pointer = pointerOf(problem);
    if (!byField.has(pointer) || problem.keyword === 'anyOf') byField.set(pointer, problem);
  }
  return [...byField.values()];
}

/** The message for a schema problem. Dates need their own, because they have a pattern beside their format, and some may be null. */
function findingOf(problem: ErrorObject): string {
  if (problem.schemaPath.includes('date'))
    return describeSchemaError({ ...problem, keyword: 'format', params: { format: 'date' } });
  if (problem.keyword === 'anyOf') return `must be a date, YYYY-MM-DD, or null; got ${shortJson(problem.data)}`;
  return describeSchemaError(problem);
}

/** Warnings about what the schema cannot decide, but the maintainer of a register wants to know. */
function* adviceFor(entry: Entry, value: Readonly<Record<string, unknown>>): Generator<RegisterFinding> {
  const { owner, credential_lifetime: lifetime, exceptions } = value;
  yield* unknownFields(entry, entry.pointer, value, FIELDS);
  for (const [i, exception] of Array.isArray(exceptions) ? exceptions.entries() : [])
    yield* unknownFields(entry, `${entry.pointer}/exceptions/${i}`, exception, EXCEPTION_FIELDS);
  if (typeof owner === 'string' && owner.trim() === '') {
    const place = at(entry, `${entry.pointer}/owner`);
    yield { ...place, severity: 'warning', message: 'is blank; one named person is expected' };
  }
  if (typeof lifetime === 'string' && !/^[0-9]+ ?(?:ms|s|m|h|d|w)$/.test(lifetime)) {
    const place = at(entry, `${entry.pointer}/credential_lifetime`);
    yield {
      ...place,
      severity: 'warning',
      message: `is no duration such as 15m, 1h or 8h; got ${shortJson(lifetime)}`,
    };
  }
}

function* unknownFields(
  entry: Entry,
  pointer: string,
  value: unknown,
  known: readonly string[],
): Generator<RegisterFinding> {
  for (const name of isObject(value) ? Object.keys(value) : []) {
    if (known.includes(name)) continue;
    const place = at(entry, `${pointer}/${escapePointer(name)}`);
    yield { ...place, severity: 'warning', message: 'is no field of the register; is it misspelled?' };
  }
}
