/**
 * Converts the arguments of a `fetch` to undici's types. undici recognizes only objects of its own classes: it would send a FormData of the
 * platform as the text `[object FormData]`.
 */
import { type BodyInit, FormData, Request, type RequestInit } from 'undici';

/** Bodies up to this size are read before they are sent. They then have a length and can be sent again after a redirect. */
const READ_MAX_BYTES = 1024 * 1024;

/** Converts a FormData of any library to undici's. Returns any other body unchanged. */
export function bodyOf(body: BodyInit | null = null): BodyInit | null {
  if (!isOtherFormData(body)) return body;
  const own = new FormData();
  // The value may also be a Blob; `append` distinguishes at run time.
  for (const [name, value] of body) own.append(name, value as string);
  return own;
}

function isOtherFormData(body: unknown): body is Iterable<readonly [string, unknown]> {
  if (typeof body !== 'object' || body === null || body instanceof FormData) return false;
  return Symbol.iterator in body && (body as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag] === 'FormData';
}

/**
 * Converts a Request of the platform's fetch to undici's. Converts any other input to text, only once, so that the same text is judged and
 * sent. `init` is passed to fetch together with the result and takes precedence.
 *
 * @throws the reason of an aborted signal; TypeError if the body of the Request was read before
 */
export async function requestOf(input: unknown, { body: given, signal }: RequestInit): Promise<string | Request> {
  if (input instanceof Request) return input;
  if (!(input instanceof globalThis.Request)) return `${input}`;
  // All fields except `keepalive`: it has no meaning outside of a browser, and undici does not accept it with a stream as body.
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

/** Returns the bytes of a body, or a stream if it is large. A platform Request exposes its body only as a stream. */
async function readBody(body: ReadableStream<Uint8Array>, signal: AbortSignal) {
  signal.throwIfAborted();
  const reader = body.getReader();
  // An abort ends the wait for a slow body. The fetch that follows then fails because of the aborted signal.
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
