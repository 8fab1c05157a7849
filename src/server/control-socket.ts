/**
 * The Unix socket for commands to a running server: reload, restart, drain, status. Request and reply are one line each with one JSON object.
 * Every process that may open the socket (mode 0660) may command the server; there is no other authentication.
 */
import { chmodSync, existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { fromSystem, PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { connectToPath, listenAtPath, NAME_MAX_BYTES } from '../network/unix-path.ts';
import { makeFolder } from '../platform/folders.ts';
import { failureFields } from './log.ts';
import { relayedError } from './relayed-error.ts';

export type ControlCommand = 'reload' | 'restart' | 'drain' | 'status';

export interface ControlRequest {
  readonly command: ControlCommand;
  /** How long a restart waits for the new server, in seconds. */
  readonly wait_seconds?: number;
}

/** Handles each command. The result is sent as JSON. */
export type ControlHandlers = { readonly [command in ControlCommand]: (request: ControlRequest) => Promise<unknown> };

/** The control socket of a running server. */
export interface ControlSocket {
  /** Stops listening, and removes the socket file unless another server has replaced it. */
  close(): void;
}

/** Longest request line, without its line feed. */
const REQUEST_MAX_BYTES = 256;
const REQUEST_TIMEOUT_MS = 5_000;

/** Prefix of a temporary socket name. The socket is created under it, then renamed to its path, so that it replaces the old one atomically. */
const TEMPORARY_NAME = '.control-';

/**
 * Listens on the socket.
 *
 * @param mayReplace replaces the socket even if another server answers on it.
 * @throws PagegateError server_running when another server answers there, listen_failed
 */
export async function listenControl(
  path: string,
  handlers: ControlHandlers,
  mayReplace = false,
): Promise<ControlSocket> {
  if (Buffer.byteLength(basename(path)) > NAME_MAX_BYTES)
    throw new PagegateError(
      'listen_failed',
      `The name of ${path} has more than ${NAME_MAX_BYTES} bytes; set admin.socket.`,
      { path },
    );
  const temporary = join(dirname(path), `${TEMPORARY_NAME}${process.pid}`);
  try {
    makeFolder(dirname(path), 0o750);
  } catch (error) {
    throw fromSystem('listen_failed', path, error);
  }
  if (!mayReplace) await removeStale(path);
  removeLeftovers(path);
  const server = createServer((socket) => serve(socket, handlers));
  server.maxConnections = LIMITS.socketConnections.value;
  try {
    await listenAtPath(server, temporary);
  } catch (error) {
    throw fromSystem('listen_failed', path, error);
  }
  const inode = statSync(temporary).ino;
  chmodSync(temporary, 0o660);
  renameSync(temporary, path);
  return {
    close: () => {
      server.close();
      if (statSync(path, { throwIfNoEntry: false })?.ino === inode) rmSync(path, { force: true });
    },
  };
}

/** Removes temporary sockets of processes that died before they renamed them. */
function removeLeftovers(path: string): void {
  for (const name of readdirSync(dirname(path))) {
    const pid = name.startsWith(TEMPORARY_NAME) ? Number(name.slice(TEMPORARY_NAME.length)) : Number.NaN;
    if (pid === process.pid || (pid > 0 && !existsSync(`/proc/${pid}`)))
      rmSync(join(dirname(path), name), { force: true });
  }
}

async function removeStale(path: string): Promise<void> {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isSocket()) throw new PagegateError('listen_failed', `${path} is in the way; it is no socket.`, { path });
  if (await isAnswered(path)) throw serverRunning(path);
  rmSync(path, { force: true });
}

/** Errors of a socket that a server listens on: too many connections are open or waiting, or the server has just ended. */
const BUSY: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET', 'EAGAIN']);

function isAnswered(path: string): Promise<boolean> {
  return new Promise<boolean>((resolve) => {
    const probe = connectToPath(path);
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(BUSY.has(error.code)));
    probe.once('connect', () => {
      resolve(true);
      probe.destroy();
    });
  });
}

const serverRunning = (path: string): PagegateError =>
  new PagegateError('server_running', `It answers on ${path}.`, { path });

/**
 * Refuses to start beside another running server. A server that is stopping is accepted: the start of the ledger writer waits for its end.
 *
 * @throws PagegateError server_running if another server answers on the socket
 */
export async function refuseSecondServer(path: string): Promise<void> {
  if (!(await isAnswered(path))) return;
  try {
    const status = (await askServer(path, 'status', REQUEST_TIMEOUT_MS)) as { readonly stopping?: boolean };
    if (status.stopping === true) return;
  } catch {
    // It has ended meanwhile, or it hangs.
    if (!(await isAnswered(path))) return;
  }
  throw serverRunning(path);
}

function serve(socket: Socket, handlers: ControlHandlers): void {
  let text = '';
  socket.setTimeout(REQUEST_TIMEOUT_MS, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    // Anything beyond the limit is dropped: a valid request ends before it.
    text = (text + chunk.toString('latin1')).slice(0, REQUEST_MAX_BYTES + 1);
    const end = text.indexOf('\n');
    if (end === -1 && text.length <= REQUEST_MAX_BYTES) return;
    socket.removeAllListeners('data');
    socket.setTimeout(0);
    void respond(socket, end === -1 ? '' : text.slice(0, end), handlers);
  });
}

async function respond(socket: Socket, line: string, handlers: ControlHandlers): Promise<void> {
  let reply: unknown;
  try {
    const request: unknown = JSON.parse(line);
    const command =
      typeof request === 'object' && request !== null && 'command' in request ? request.command : undefined;
    if (typeof command !== 'string' || !Object.hasOwn(handlers, command)) throw new PagegateError('usage');
    reply = { ok: true, result: await handlers[command as ControlCommand](request as ControlRequest) };
  } catch (error) {
    const { code, message } = failureFields(error instanceof SyntaxError ? new PagegateError('usage') : error);
    reply = { ok: false, error: code, message };
  }
  socket.end(`${JSON.stringify(reply)}\n`);
}

const REPLY_MAX_BYTES = 4 * 1024 * 1024;

const DENIED: ReadonlySet<string | undefined> = new Set(['EACCES', 'EPERM']);

/**
 * Sends a command to the server on this socket.
 *
 * @throws PagegateError server_not_running; server_busy; server_forbidden if this user may not open the socket; server_refused or the
 *   server's own restart error if the command failed
 */
export async function askServer(
  path: string,
  command: ControlCommand,
  timeoutMs = 150_000,
  options: Omit<ControlRequest, 'command'> = {},
): Promise<unknown> {
  const text = await new Promise<string>((resolve, reject) => {
    let received = '';
    const fail = (why: string, cause?: unknown): void => {
      socket.destroy();
      reject(new PagegateError('server_not_running', `${path}: ${why}.`, { path }, { cause }));
    };
    const socket = connectToPath(path);
    socket.once('connect', () => socket.write(`${JSON.stringify({ command, ...options })}\n`));
    socket.setTimeout(timeoutMs, () => fail('no answer in time'));
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      if (DENIED.has(cause.code)) reject(fromSystem('server_forbidden', path, cause));
      else if (BUSY.has(cause.code)) reject(fromSystem('server_busy', path, cause));
      else fail(cause.message, cause);
    });
    // A UTF-8 character may be split over two chunks.
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      received += chunk;
      if (received.length > REPLY_MAX_BYTES) fail('the answer is too long');
    });
    socket.on('end', () => resolve(received));
  });
  const reply = parseReply(text);
  // A failed restart has its own error codes.
  if (!reply.ok && reply.error?.startsWith('restart_'))
    throw relayedError(reply.error, reply.message ?? '', 'server_refused');
  if (!reply.ok) throw new PagegateError('server_refused', reply.message ?? '', { command });
  return reply.result;
}

interface Reply {
  readonly ok: boolean;
  readonly result?: unknown;
  readonly error?: string;
  readonly message?: string;
}

/** Parses a server's reply. The server may have ended before it sent all of it. */
function parseReply(text: string): Reply {
  if (text === '') return { ok: false, message: 'The server ended.' };
  try {
    return JSON.parse(text) as Reply;
  } catch {
    return { ok: false, message: 'The server ended in the middle of its answer.' };
  }
}
