/**
 * What callers hand to a `fetch`, as undici's takes it: it knows the objects of its own classes alone, and would send a FormData of the
 * platform as the text `[object FormData]`.
 */
import { type BodyInit, FormData, Request, type RequestInit } from 'undici';

/** Up to here a body is read before it is sent: then it has a length, and can be sent again where a redirect asks for that. */
const READ_MAX_BYTES = 1024 * 1024;

/** A FormData of whatever library as one of undici's; anything else stays what it is. */
export function bodyOf(body: BodyInit | null = null): BodyInit | null {
  if (!isOtherFormData(body)) return body;
  const own = new FormData();
  // A Blob is told from a text at run time.
  for (const [name, value] of body) own.append(name, value as string);
  return own;
}

function isOtherFormData(body: unknown): body is Iterable<readonly [string, unknown]> {
  if (typeof body !== 'object' || body === null || body instanceof FormData) return false;
  return Symbol.iterator in body && (body as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag] === 'FormData';
}

/**
 * A Request of the platform's own fetch, as one of undici's; anything else as the text that it is read as, once and for all. `init` is
 * what will be given beside it, and takes precedence.
 *
 * @throws the reason of a signal that is aborted; TypeError where the body of a Request was read before
 */
export async function requestOf(input: unknown, { body: given, signal }: RequestInit): Promise<string | Request> {
  if (input instanceof Request) return input;
  if (!(input instanceof globalThis.Request)) return `${input}`;
  // All but `keepalive`, which means nothing outside of a browser, and which undici takes with no body that is a stream.
  const { url, method, redirect, integrity, mode, credentials, cache, referrer, referrerPolicy } = input;
  const fields = {
    method,
    signal: input.signal,
    redirect,
    integrity,
    mode,
    credentials,
    cache,
    referrer,
    referrerPolicy,
  };
  if (given == null && input.bodyUsed) throw new TypeError('Body is unusable: it has been read');
  const body = given == null && input.body !== null ? await readBody(input.body, signal ?? input.signal) : null;
  const init = { ...fields, headers: [...input.headers], ...(body !== null && { body, duplex: 'half' }) };
  return new Request(url, init as ConstructorParameters<typeof Request>[1]);
}

/** The bytes of a body, or, where it is a large one, a stream of them. What a platform's Request was given it shows as a stream alone. */
async function readBody(body: ReadableStream<Uint8Array>, signal: AbortSignal) {
  signal.throwIfAborted();
  const reader = body.getReader();
  // A body that comes slowly is not waited for; whoever fetches with this signal finds it aborted.
  const stop = (): void => void reader.cancel(signal.reason).catch(() => {});
  signal.addEventListener('abort', stop, { once: true });
  const chunks: Uint8Array[] = [];
  try {
    for (let sizeBytes = 0; sizeBytes <= READ_MAX_BYTES; ) {
      const { done, value } = await reader.read();
      if (done) return Buffer.concat(chunks);
      chunks.push(value);
      sizeBytes += value.length;
    }
  } finally {
    signal.removeEventListener('abort', stop);
  }
  reader.releaseLock();
  return resumed(chunks, body);
}

async function* resumed(chunks: readonly Uint8Array[], rest: ReadableStream<Uint8Array>) {
  yield* chunks;
  yield* rest;
}
