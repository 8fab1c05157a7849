/** System calls for sockets that Node lacks: choosing which listening socket gets a new connection, and datagrams between processes. */
import { closeSync, readdirSync } from 'node:fs';
import { errno, library, memoryAddress } from './libc.ts';

const setsockopt = library.func('int setsockopt(int fd, int level, int name, const void *value, uint32_t size)');
const getsockopt = library.func(
  'int getsockopt(int fd, int level, int name, _Out_ void *value, _Inout_ uint32_t *size)',
);
const getsockname = library.func('int getsockname(int fd, _Out_ void *address, _Inout_ uint32_t *size)');
const socket = library.func('int socket(int family, int type, int protocol)');
const sendto = library.func(
  'int64_t sendto(int fd, const void *data, size_t size, int flags, const void *address, uint32_t addressSize)',
);

const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_ACCEPTCONN = 30;
const SO_ATTACH_REUSEPORT_CBPF = 51;
const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 0o2000002;
const MSG_DONT_WAIT_NO_SIGNAL = 0x4040;
/** Longest address of a socket in the file system, in bytes. */
const UNIX_PATH_MAX_BYTES = 107;
/** The system's error number for a name that is too long. */
const ENAMETOOLONG = 36;
const SOCKET_ADDRESS_MAX_BYTES = 128;

/** An instruction of the kernel's classic packet filter: operation, jump offsets, operand (linux/bpf_common.h). */
type Instruction = readonly [operation: number, ifTrue: number, ifFalse: number, operand: number];
const BPF = {
  loadByte: 0x30,
  loadWord: 0x20,
  add: 0x04,
  and: 0x54,
  modulo: 0x94,
  jumpIfEqual: 0x15,
  return: 0x06,
  returnResult: 0x16,
} as const;
const INSTRUCTION_SIZE_BYTES = 8;

/** Offset of the flags in a TCP header, and the two flags that distinguish the first packet of a connection from all others. */
const TCP = { flagsOffset: 13, synAndAck: 0x12, syn: 0x02 } as const;
const ALL_BYTES = 0xffff_ffff;
/** The offset at which a filter reads a random number instead of the packet (linux/filter.h: SKF_AD_OFF + SKF_AD_RANDOM). */
const RANDOM = 0xffff_f000 + 56;
/** An index that no group of sockets has, so that the kernel chooses by the connection's hash. */
const NO_INDEX = 0xffff_ffff;

function attach(fd: number, option: number, instructions: readonly Instruction[]): boolean {
  const code = Buffer.alloc(instructions.length * INSTRUCTION_SIZE_BYTES);
  for (const [i, [operation, ifTrue, ifFalse, operand]] of instructions.entries()) {
    const at = i * INSTRUCTION_SIZE_BYTES;
    code.writeUInt16LE(operation, at);
    code.writeUInt8(ifTrue, at + 2);
    code.writeUInt8(ifFalse, at + 3);
    code.writeUInt32LE(operand, at + 4);
  }
  const program = Buffer.alloc(16);
  program.writeUInt16LE(instructions.length, 0);
  program.writeBigUInt64LE(memoryAddress(code), 8);
  const isAttached = setsockopt(fd, SOL_SOCKET, option, program, program.length) === 0;
  // The structure has only the address of `code`. Using `code` here keeps it from being collected before the call.
  return isAttached && code.length > 0;
}

/** Returns the file descriptors of this process that listen on a TCP port. */
export function listeningSockets(port: number): number[] {
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((fd) => {
      const value = Buffer.alloc(4);
      if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, value, [value.length]) !== 0 || value.readInt32LE(0) !== 1)
        return false;
      const address = Buffer.alloc(SOCKET_ADDRESS_MAX_BYTES);
      // In both address families, IPv4 and IPv6, the port follows the family.
      const isRead = getsockname(fd, address, [address.length]) === 0;
      return isRead && address.readUInt16LE(0) !== AF_UNIX && address.readUInt16BE(2) === port;
    });
}

/** A range of the sockets that share a port, in the order in which they began to listen: index of the first, and their number. */
export interface SocketRange {
  readonly first: number;
  readonly count: number;
}

/**
 * Distributes all new connections of a shared port evenly over some of the sockets that listen on it.
 *
 * @param fd any of the sockets.
 * @param range the sockets that get the connections; if undefined, all sockets again. When a socket is closed, the last one takes its index. If
 * no socket has the chosen index, the kernel chooses any of them.
 * @returns false if the kernel does not support it.
 */
export function steerConnections(fd: number, range: SocketRange | undefined): boolean {
  if (range === undefined) return attach(fd, SO_ATTACH_REUSEPORT_CBPF, [[BPF.return, 0, 0, NO_INDEX]]);
  return attach(fd, SO_ATTACH_REUSEPORT_CBPF, [
    [BPF.loadWord, 0, 0, RANDOM],
    [BPF.modulo, 0, 0, range.count],
    [BPF.add, 0, 0, range.first],
    [BPF.returnResult, 0, 0, 0],
  ]);
}

/**
 * Makes a listening socket drop requests for new connections; handshakes in progress are completed. Clients retry a second later. By then the
 * socket is closed, or another one accepts the connection. Returns false if the kernel does not support it.
 */
export function refuseNewConnections(fd: number): boolean {
  return attach(fd, SO_ATTACH_FILTER, [
    [BPF.loadByte, 0, 0, TCP.flagsOffset],
    [BPF.and, 0, 0, TCP.synAndAck],
    [BPF.jumpIfEqual, 0, 1, TCP.syn],
    [BPF.return, 0, 0, 0],
    [BPF.return, 0, 0, ALL_BYTES],
  ]);
}

/**
 * Sends one datagram to a Unix socket. A path that begins with `@` is a name in the abstract name space of the kernel.
 *
 * @returns 0 if it was sent, otherwise the system's error number.
 */
export function sendDatagram(path: string, text: string): number {
  const name = Buffer.from(path.startsWith('@') ? `\0${path.slice(1)}` : path, 'utf8');
  if (name.length > UNIX_PATH_MAX_BYTES) return ENAMETOOLONG;
  const address = Buffer.alloc(2 + name.length);
  address.writeUInt16LE(AF_UNIX, 0);
  name.copy(address, 2);
  const fd = socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0) as number;
  if (fd < 0) return errno();
  try {
    const data = Buffer.from(text, 'utf8');
    const sent = sendto(fd, data, data.length, MSG_DONT_WAIT_NO_SIGNAL, address, address.length) as number;
    return sent < 0 ? errno() : 0;
  } finally {
    closeSync(fd);
  }
}
