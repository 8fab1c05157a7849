/** Holds a request of `node:http` until its verdict, and keeps it from sending more than was judged. */
import type { ClientRequest } from 'node:http';

/** A request. `_header` is the text of its head, set when the head is complete. This text is sent, even if headers are changed later. */
export type HeldRequest = ClientRequest & { _header: string | null };

/**
 * Resolves with the text of a request's head when it is complete: a client may set headers after it has created the request. Node.js has no event
 * for this, so the assignment of `_header` is intercepted. It comes with the first write, at the latest with `end`.
 */
export function headOf(request: HeldRequest): Promise<string> {
  if (request._header !== null) return Promise.resolve(request._header);
  return new Promise((resolve) => {
    const settle = (value: string | null): void => {
      if (value === null) return;
      Object.defineProperty(request, '_header', { value, writable: true, configurable: true, enumerable: true });
      resolve(value);
    };
    Object.defineProperty(request, '_header', { get: () => null, set: settle, configurable: true, enumerable: true });
  });
}

/** Ends a request that has no socket. Only its agent can do this, by calling `onSocket` without one. */
export function endUnsent(request: ClientRequest, error?: Error): void {
  (request as unknown as { onSocket(socket: undefined, error?: Error): void }).onSocket(undefined, error);
}

/** Ends a request at once if it is destroyed while it waits. The returned function stops this, and returns whether the request still waits. */
export function endWhenDestroyed(request: ClientRequest): () => boolean {
  const { destroy } = request;
  let isHeld = true;
  request.destroy = (error) => {
    const isFirst = !request.destroyed;
    destroy.call(request, error);
    if (isHeld && isFirst) endUnsent(request);
    return request;
  };
  return () => {
    isHeld = false;
    return !request.destroyed;
  };
}

/**
 * Fails a request whose body does not have the length declared in its head: bytes beyond it would be another request to the site, which was not
 * judged. Node.js has an option for this check, but on Node.js 20 it treats the lengths 7 and '7' as different.
 */
export function keepToLength(request: HeldRequest): void {
  let bytes = 0;
  for (const name of ['write', 'end'] as const) {
    const send = request[name] as (...given: unknown[]) => unknown;
    const isFaulty = (): boolean => {
      const fault = request._header === null ? undefined : bodyFault(request._header, bytes, name === 'end');
      // Not thrown: the writer may be a pipe, where no code could catch it.
      if (fault !== undefined) request.destroy(new Error(fault));
      return fault !== undefined;
    };
    const sendWithin = (...given: unknown[]): unknown => {
      const sizeBytes = sizeOf(given[0], given[1]);
      bytes += sizeBytes;
      // By default, Node.js declares no length for the body of a GET and similar methods.
      if (sizeBytes > 0) request.useChunkedEncodingByDefault = true;
      const instead = name === 'end' ? request : false;
      if (isFaulty()) return instead;
      const sent = send.apply(request, given);
      // If this call completed the head, nothing has been sent: the request still waits for its verdict.
      return isFaulty() ? instead : sent;
    };
    request[name] = sendWithin as never;
  }
}

function sizeOf(chunk: unknown, encoding: unknown): number {
  if (typeof chunk === 'string') {
    return Buffer.byteLength(chunk, (typeof encoding === 'string' ? encoding : 'utf8') as BufferEncoding);
  }
  return chunk instanceof Uint8Array ? chunk.byteLength : 0;
}

/** Returns why a body of this many bytes, so far or in total (`isEnd`), contradicts its head; undefined if it does not. */
function bodyFault(head: string, bytes: number, isEnd: boolean): string | undefined {
  if (/\r\ntransfer-encoding:/i.test(head)) return undefined;
  const [, length] = /\r\ncontent-length: *([0-9]+)\r\n/i.exec(head) ?? [];
  if (length === undefined) return bytes > 0 ? 'the head of the request says no length for its body' : undefined;
  if (bytes <= Number(length) && (!isEnd || bytes === Number(length))) return undefined;
  return `the head of the request says ${length} bytes for its body, which has ${isEnd ? '' : 'at least '}${bytes}`;
}

/** Returns why the end of a body is ambiguous: the head declares its length twice, or in a way that sites parse differently. */
export function lengthFaultIn(headers: readonly (readonly [name: string, value: string])[]): string | undefined {
  const said = headers.filter(([name]) => /^(?:content-length|transfer-encoding)$/i.test(name));
  if (said.length > 1) return 'the head of the request says two lengths for its body';
  const isPlain = said.every(([name, value]) => (/^c/i.test(name) ? /^[0-9]+$/ : /^chunked$/i).test(value));
  return isPlain
    ? undefined
    : 'the head of the request says the length of its body in another way than a number, or chunked';
}
