/**
 * The protocol between workers and the ledger writer: a worker sends the ids of accounts that have run low; the ledger writer answers when it
 * has handled them. The result is in the shared counters, so a message that is lost with its process loses nothing else.
 */
import { rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { connectToPath, listenAtPath } from '../../network/unix-path.ts';

const ANSWER = Buffer.from([1]);
const ID_SIZE_BYTES = 4;
const RECONNECT_MS = 50;

const socketFile = (ledgerFile: string): string => join(dirname(ledgerFile), 'writer.sock');

export interface WorkersLink {
  /** Sends an answer to all workers, so that they read the counters again. */
  answerAll(): void;
  /** Ends all connections; the workers connect again. */
  reconnectAll(): void;
}

/** Listens for workers. `onAsk` is called once for all requests that arrive in the same turn of the event loop; they are answered when it ends. */
export async function listenForWorkers(
  ledgerFile: string,
  onAsk: (accountIds: ReadonlySet<number>) => unknown,
): Promise<WorkersLink> {
  const workers = new Set<Socket>();
  const asking = new Set<Socket>();
  let accountIds = new Set<number>();
  const answer = (sockets: Iterable<Socket>): void => {
    for (const socket of sockets) if (socket.writable) socket.write(ANSWER);
  };
  const serve = (): void => {
    const waiting = [...asking];
    const ids = accountIds;
    asking.clear();
    accountIds = new Set();
    const handled = onAsk(ids);
    if (handled instanceof Promise) void handled.then(() => answer(waiting));
    else answer(waiting);
  };
  const server = createServer({ noDelay: true }, (socket) => {
    workers.add(socket);
    let rest = Buffer.alloc(0);
    socket.on('data', (data: Buffer) => {
      rest = Buffer.concat([rest, data]);
      let at = 0;
      for (; at + ID_SIZE_BYTES <= rest.length; at += ID_SIZE_BYTES) accountIds.add(rest.readUInt32LE(at));
      rest = rest.subarray(at);
      if (asking.size === 0) setImmediate(serve);
      asking.add(socket);
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      workers.delete(socket);
      asking.delete(socket);
    });
  });
  const path = socketFile(ledgerFile);
  // This process holds the ledger writer's lock, so a socket that is here was left by one that has ended.
  rmSync(path, { force: true });
  await listenAtPath(server, path);
  return {
    answerAll: () => answer(workers),
    reconnectAll: () => {
      for (const socket of workers) socket.destroy();
    },
  };
}

/** A worker's end of the connection. It reconnects by itself. While no ledger writer runs, asking does nothing. */
export interface WriterLink {
  ask(accountIds: readonly number[]): void;
  close(): void;
}

export interface WriterLinkEvents {
  /** Called when a ledger writer has accepted the connection; it may be another one than before. */
  readonly onConnect: () => void;
  /** Called when the ledger writer has answered: the counters may have changed. */
  readonly onAnswer: () => void;
}

/** Connects to the ledger writer. */
export function connectToWriter(ledgerFile: string, events: WriterLinkEvents): WriterLink {
  return new Connection(ledgerFile, events);
}

class Connection implements WriterLink {
  readonly #path: string;
  readonly #events: WriterLinkEvents;
  /** The latest socket, connected or not. */
  #latest: Socket | undefined;
  /** Undefined while no ledger writer runs. */
  #connected: Socket | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(ledgerFile: string, events: WriterLinkEvents) {
    this.#path = socketFile(ledgerFile);
    this.#events = events;
    this.#open();
  }

  ask(accountIds: readonly number[]): void {
    const bytes = Buffer.alloc(accountIds.length * ID_SIZE_BYTES);
    for (const [i, id] of accountIds.entries()) bytes.writeUInt32LE(id, i * ID_SIZE_BYTES);
    if (bytes.length > 0) this.#connected?.write(bytes);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    // Also destroys a socket that is not connected yet. It would otherwise outlive this object.
    this.#latest?.destroy();
  }

  #openLater(): void {
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#open(), RECONNECT_MS);
  }

  #open(): void {
    const onAnswer = (): true => {
      this.#events.onAnswer();
      return true;
    };
    // One buffer for all answers: their content does not matter.
    const socket = connectToPath(this.#path, { buffer: Buffer.alloc(64), callback: onAnswer });
    this.#latest = socket;
    socket.on('connect', () => {
      if (this.#isClosed) return;
      this.#connected = socket;
      this.#events.onConnect();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#connected = undefined;
      this.#openLater();
    });
  }
}
