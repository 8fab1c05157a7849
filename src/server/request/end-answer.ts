/**
 * Ends an answer, with back-pressure for clients that do not read. If the buffers of a connection are full, the transport keeps the rest in
 * memory without a limit, or drops a whole body and then ends the process, because the answer is not finished (uWebSockets.js 20.57;
 * uNetworking/uWebSockets.js#113 has its message). So a body is offered, and waits until it is taken.
 */
import type { HttpResponse } from '../uws.ts';

const nothing = (): void => {};

/**
 * Ends an answer with its body, and closes the connection if it is the last one. A body that does not fit waits in its own memory until the
 * client has read the data before it. If the client sends another request meanwhile, the transport closes the connection.
 */
export function endAnswer(res: HttpResponse, body: Uint8Array, isLast: boolean): void {
  // The transport accepts an unfinished answer when the handler returns only if an abort handler is set.
  if (isLast) {
    res.onAborted(nothing).end(body, true);
    return;
  }
  if (res.tryEnd(body, body.length)[1]) return;
  const start = res.onAborted(nothing).getWriteOffset();
  const rest = Uint8Array.from(body.subarray(start));
  res.onWritable((offset) => res.tryEnd(rest.subarray(offset - start), body.length)[0]);
}
