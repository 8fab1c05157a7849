/** Reads cookies and forms of a request, within limits. */
import type { IncomingMessage } from 'node:http';
import { counted } from '../../counted.ts';
import { LIMITS } from '../../limits.ts';

const FIELDS_MAX = LIMITS.consoleFields.value;

/** A request that is refused, with its HTTP status. */
export class HttpRefusal extends Error {
  readonly status: number;
  /** Time until the request may be repeated; undefined if unknown. */
  readonly waitSeconds: number | undefined;

  constructor(status: number, message: string, waitSeconds?: number) {
    super(message);
    this.status = status;
    this.waitSeconds = waitSeconds;
  }
}

/** The answer to a form whose session has ended. */
export const signedOut = (): HttpRefusal =>
  new HttpRefusal(401, 'You are not signed in, or no longer. Nothing was changed: sign in, and do it again.');

export const tooManyTries = (what: string, waitSeconds: number): HttpRefusal =>
  new HttpRefusal(429, `${what} Try again in ${counted(Math.ceil(waitSeconds / 60), 'minute')}.`, waitSeconds);

/** Returns the value of a cookie; undefined if it is missing, duplicated or malformed. */
export function cookieOf(req: IncomingMessage, name: string): string | undefined {
  const found = (req.headers.cookie ?? '')
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`))
    .map((part) => part.slice(name.length + 1));
  return found.length === 1 && /^[\w-]{1,128}$/.test(found[0]!) ? found[0] : undefined;
}

/** The fields of a form or a query; each name occurs once. */
export class Fields {
  readonly #values = new Map<string, string>();

  /** @throws HttpRefusal 400 for a duplicate field, for too many fields, and for a NUL character */
  constructor(text: string) {
    for (const [name, value] of new URLSearchParams(text)) {
      if (this.#values.has(name)) throw new HttpRefusal(400, `The field "${name.slice(0, 40)}" is there twice.`);
      if (this.#values.size >= FIELDS_MAX) throw new HttpRefusal(400, `Expected at most ${FIELDS_MAX} fields.`);
      if (value.includes('\0') || name.includes('\0')) throw new HttpRefusal(400, 'A field has a NUL character.');
      this.#values.set(name, value);
    }
  }

  /** Returns the value of a field; empty if the field is missing. */
  get(name: string): string {
    return this.#values.get(name) ?? '';
  }

  /** Parses a whole number of at most 15 digits; undefined if the field is empty. @throws HttpRefusal 400 */
  whole(name: string): number | undefined {
    const text = this.get(name).trim().replaceAll(',', '');
    if (text === '') return undefined;
    if (!/^\d{1,15}$/.test(text))
      throw new HttpRefusal(400, `${name}: expected a whole number, got "${text.slice(0, 40)}".`);
    return Number(text);
  }

  get isEmpty(): boolean {
    return this.#values.size === 0;
  }

  /** Returns the fields as a query string. */
  toString(): string {
    return new URLSearchParams([...this.#values]).toString();
  }

  [Symbol.iterator](): IterableIterator<[string, string]> {
    return this.#values.entries();
  }
}

/** Reads and parses a form. @throws HttpRefusal 413, 415, and 400 for its fields */
export async function readForm(req: IncomingMessage): Promise<Fields> {
  const type = (req.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/x-www-form-urlencoded')
    throw new HttpRefusal(415, 'Expected a form (application/x-www-form-urlencoded).');
  if (Number(req.headers['content-length'] ?? 0) > LIMITS.consoleFormBytes.value) throw tooLarge();
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > LIMITS.consoleFormBytes.value) throw tooLarge();
    chunks.push(chunk);
  }
  return new Fields(Buffer.concat(chunks).toString('utf8'));
}

const tooLarge = (): HttpRefusal =>
  new HttpRefusal(413, `Expected a form of at most ${LIMITS.consoleFormBytes.value} bytes.`);
