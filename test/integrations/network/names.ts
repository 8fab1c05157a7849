/** A small DNS server: a test sets the addresses of names, which can change with each query. */
import { createSocket, type RemoteInfo } from 'node:dgram';

/** The addresses of a name, IPv4 and IPv6. A function is called for each query. */
export type Place = string | readonly string[] | (() => string | readonly string[]);

export interface Names {
  /** Queried names, as `A name` or `AAAA name`. */
  readonly asked: string[];
  /** Changes the addresses of a name. */
  set(name: string, place: Place): void;
  close(): Promise<void>;
}

const TYPES: Readonly<Record<number, string>> = { 1: 'A', 28: 'AAAA' };
/** The address in network/resolv.conf. */
const ADDRESS = '127.0.0.53';

export async function createNames(places: Readonly<Record<string, Place>>): Promise<Names> {
  const table = new Map<string, Place>(Object.entries(places));
  const asked: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const { name, type, end } = readQuestion(query);
    asked.push(`${TYPES[type] ?? type} ${name}`);
    const place = table.get(name);
    // Both families are queried at once; only the one with an address moves a sequence on.
    const addresses = place === undefined ? [] : [typeof place === 'function' ? place() : place].flat();
    const fitting = addresses.filter((address) => (address.includes(':') ? 28 : 1) === type);
    socket.send(answer(query.subarray(0, end), place !== undefined, type, fitting), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(53, ADDRESS, resolve));
  return {
    asked,
    set: (name, place) => table.set(name, place),
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** A response that must not be cached: its records have a TTL of 0. */
function answer(question: Buffer, isKnown: boolean, type: number, addresses: readonly string[]): Buffer {
  const header = Buffer.from(question.subarray(0, 12));
  header.writeUInt16BE(isKnown ? 0x8580 : 0x8583, 2);
  header.writeUInt16BE(addresses.length, 6);
  header.fill(0, 8, 12);
  const records = addresses.map((address) => {
    const data = bytesOf(address);
    const fixed = Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
    return Buffer.concat([fixed, data]);
  });
  return Buffer.concat([header, question.subarray(12), ...records]);
}

function bytesOf(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number));
  // The URL standard's spelling shortens the longest run of zeros to "::" and has no IPv4 part.
  const [head = '', tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::');
  const groups = (text = ''): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const [front, back] = [groups(head), groups(tail)];
  const all = [...front, ...new Array<number>(8 - front.length - back.length).fill(0), ...back];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}
