/** A request of `node:http` that waits for its verdict, and what it must not send beyond what was judged. */
import type { ClientRequest } from 'node:http';

/** A request, with the text of its head once its last header is set. It goes out as this text, whatever is changed later. */
export type HeldRequest = ClientRequest & { _header: string | null };

/**
 * The text of a request's head, once it is complete: a client may set headers after the request was made. There is no event for it; it
 * comes with the first write, at the latest with the end.
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

/** Ends a request that has no socket: its agent alone can tell it so. */
export function endUnsent(request: ClientRequest, error?: Error): void {
  (request as unknown as { onSocket(socket: undefined, error?: Error): void }).onSocket(undefined, error);
}

/** Ends a request at once if it is destroyed while it waits. The function that it returns stops this, and says whether the request still waits. */
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
 * Holds the body of a request to the length that its head says, and fails the request otherwise: what is beyond it would be another request
 * to the site, which nobody judged. Node.js checks that, too, if told so, but on Node.js 20 takes 7 and '7' for two lengths.
 */
export function keepToLength(request: HeldRequest): void {
  let bytes = 0;
  for (const name of ['write', 'end'] as const) {
    const send = request[name] as (...given: unknown[]) => unknown;
    const isFaulty = (): boolean => {
      const fault = request._header === null ? undefined : bodyFault(request._header, bytes, name === 'end');
      // Not thrown: whoever writes may be a pipe, where nobody could catch it.
      if (fault !== undefined) request.destroy(new Error(fault));
      return fault !== undefined;
    };
    const sendWithin = (...given: unknown[]): unknown => {
      const sizeBytes = sizeOf(given[0], given[1]);
      bytes += sizeBytes;
      // Unless told so, Node.js says no length for the body of a GET and its kin.
      if (sizeBytes > 0) request.useChunkedEncodingByDefault = true;
      const instead = name === 'end' ? request : false;
      if (isFaulty()) return instead;
      const sent = send.apply(request, given);
      // Where this completed the head, the request still waits for its verdict: nothing has gone out.
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

/** What is wrong with a body of so many bytes, so far or in all, beside its head. */
function bodyFault(head: string, bytes: number, isEnd: boolean): string | undefined {
  if (/\r\ntransfer-encoding:/i.test(head)) return undefined;
  const [, length] = /\r\ncontent-length: *([0-9]+)\r\n/i.exec(head) ?? [];
  if (length === undefined) return bytes > 0 ? 'the head of the request says no length for its body' : undefined;
  if (bytes <= Number(length) && (!isEnd || bytes === Number(length))) return undefined;
  return `the head of the request says ${length} bytes for its body, which has ${isEnd ? '' : 'at least '}${bytes}`;
}

/** Why nobody can tell where a body ends: the head says it twice, or in a way that sites read differently. */
export function lengthFaultIn(headers: readonly (readonly [name: string, value: string])[]): string | undefined {
  const said = headers.filter(([name]) => /^(?:content-length|transfer-encoding)$/i.test(name));
  if (said.length > 1) return 'the head of the request says two lengths for its body';
  const isPlain = said.every(([name, value]) => (/^c/i.test(name) ? /^[0-9]+$/ : /^chunked$/i).test(value));
  return isPlain
    ? undefined
    : 'the head of the request says the length of its body in another way than a number, or chunked';
}
