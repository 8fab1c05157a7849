/**
 * How workers and the ledger writer wake each other: one byte over a Unix socket beside the ledger. The bytes say only "look"; what
 * there is to see stands in the shared counters, so that a byte lost with its process loses nothing else.
 */
import { closeSync, constants, openSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';

const WAKE = Buffer.from([1]);
/** Longest path of a Unix socket, in bytes; Linux allows 107. */
const SOCKET_PATH_MAX_BYTES = 100;
const RECONNECT_MS = 50;

const socketFile = (ledgerFile: string): string => join(dirname(ledgerFile), 'writer.sock');

/** Runs a task with a path short enough for a socket: a long one is reached through an open directory. */
function withShortPath<T>(path: string, task: (path: string, release: () => void) => T): T {
  if (Buffer.byteLength(path) <= SOCKET_PATH_MAX_BYTES) return task(path, () => {});
  const fd = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  let isOpen = true;
  return task(`/proc/self/fd/${fd}/${basename(path)}`, () => {
    if (isOpen) closeSync(fd);
    isOpen = false;
  });
}

/** Listens for workers. `onAsk` runs once for all workers that asked in the same turn; its end answers them. */
export async function listenForWorkers(
  ledgerFile: string,
  handlers: { readonly onAsk: () => void; readonly onLeave: () => void },
): Promise<{ answerAll(): void; close(): Promise<void> }> {
  const workers = new Set<Socket>();
  const asking = new Set<Socket>();
  const answer = (sockets: Iterable<Socket>): void => {
    for (const socket of sockets) if (socket.writable) socket.write(WAKE);
  };
  const serve = (): void => {
    const waiting = [...asking];
    asking.clear();
    handlers.onAsk();
    answer(waiting);
  };
  const server: Server = createServer({ noDelay: true }, (socket) => {
    workers.add(socket);
    socket.on('data', () => {
      if (asking.size === 0) setImmediate(serve);
      asking.add(socket);
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      workers.delete(socket);
      asking.delete(socket);
      handlers.onLeave();
    });
  });
  const path = socketFile(ledgerFile);
  // The ledger writer holds the lock: a socket that lies here belongs to no living one.
  rmSync(path, { force: true });
  await withShortPath(path, (short, release) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(short, resolve);
    }).finally(release),
  );
  return {
    answerAll: () => answer(workers),
    close: () =>
      new Promise((resolve) => {
        for (const socket of workers) socket.destroy();
        server.close(() => resolve());
      }),
  };
}

/** A worker's end. It reconnects by itself; while there is no ledger writer, asking does nothing. */
export interface WriterLink {
  ask(): void;
  close(): void;
}

/** Connects to the ledger writer; `onAnswer` runs when there may be something to see. */
export function connectToWriter(ledgerFile: string, onAnswer: () => void): WriterLink {
  let socket: Socket | undefined;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  const open = (): void => {
    withShortPath(socketFile(ledgerFile), (short, release) => {
      const opened = connect({
        path: short,
        // One buffer for all bytes: they carry nothing.
        onread: {
          buffer: Buffer.alloc(64),
          callback: () => {
            onAnswer();
            return true;
          },
        },
      });
      opened.on('connect', () => {
        release();
        socket = opened;
        // What was charged while there was no ledger writer waits for this question.
        opened.write(WAKE);
      });
      opened.on('error', () => {});
      opened.on('close', () => {
        release();
        socket = undefined;
        if (!isClosed) timer = setTimeout(open, RECONNECT_MS);
      });
    });
  };
  open();
  return {
    ask: () => {
      socket?.write(WAKE);
    },
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      socket?.destroy();
    },
  };
}
