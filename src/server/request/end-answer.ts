/**
 * The end of an answer, for clients that read what they ask for and for those that do not. Where the buffers of a connection are full, the
 * transport keeps in memory without a limit what does not fit, or drops a whole body; then it ends the process, because the answer is not
 * finished (uWebSockets.js 20.57; uNetworking/uWebSockets.js#113 has its message). So a body is offered, and waits until it is taken.
 */
import type { HttpResponse } from '../uws.ts';

const nothing = (): void => {};

/**
 * Ends an answer with its body, and the connection with it where it is the last one. A body that does not fit waits, in memory of its own,
 * until the client has read what came before. A client that asks for more in the meantime loses its connection: the transport sees to that.
 */
export function endAnswer(res: HttpResponse, body: Uint8Array, isLast: boolean): void {
  // An answer may be unfinished when its handler returns if somebody is told of its end.
  if (isLast) {
    res.onAborted(nothing).end(body, true);
    return;
  }
  if (res.tryEnd(body, body.length)[1]) return;
  const start = res.onAborted(nothing).getWriteOffset();
  const rest = Uint8Array.from(body.subarray(start));
  res.onWritable((offset) => res.tryEnd(rest.subarray(offset - start), body.length)[0]);
}
