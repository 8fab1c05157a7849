/**
 * How workers and the ledger writer talk: a worker names accounts that have run low, the ledger writer answers when it has looked. What
 * there is to see stands in the shared counters, so that a message lost with its process loses nothing else.
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
  /** Tells all workers to look. */
  answerAll(): void;
  /** Ends all connections; the workers connect again. */
  reconnectAll(): void;
}

/** Listens for workers. `onAsk` runs once for all that asked in the same turn; its end answers them. */
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
    const looked = onAsk(ids);
    if (looked instanceof Promise) void looked.then(() => answer(waiting));
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
  // The ledger writer holds the lock: a socket that lies here belongs to no living one.
  rmSync(path, { force: true });
  await listenAtPath(server, path);
  return {
    answerAll: () => answer(workers),
    reconnectAll: () => {
      for (const socket of workers) socket.destroy();
    },
  };
}

/** A worker's end. It reconnects by itself; while there is no ledger writer, asking does nothing. */
export interface WriterLink {
  ask(accountIds: readonly number[]): void;
  close(): void;
}

export interface WriterLinkEvents {
  /** A ledger writer is there, perhaps another one than before. */
  readonly onConnect: () => void;
  /** There may be something to see. */
  readonly onAnswer: () => void;
}

/** Connects to the ledger writer. */
export function connectToWriter(ledgerFile: string, events: WriterLinkEvents): WriterLink {
  return new Connection(ledgerFile, events);
}

class Connection implements WriterLink {
  readonly #path: string;
  readonly #events: WriterLinkEvents;
  /** Also while it is being opened. */
  #opening: Socket | undefined;
  /** Undefined while there is no ledger writer. */
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
    // One that is still being opened would outlive what it tells of.
    this.#opening?.destroy();
  }

  #openLater(): void {
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#open(), RECONNECT_MS);
  }

  #open(): void {
    const onAnswer = (): true => {
      this.#events.onAnswer();
      return true;
    };
    // One buffer for all answers: they carry nothing.
    const socket = connectToPath(this.#path, { buffer: Buffer.alloc(64), callback: onAnswer });
    this.#opening = socket;
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
