/** A Unix datagram socket like the notification socket of systemd. Node has no API for it. */
import { closeSync } from 'node:fs';
import { library } from '../../src/platform/libc.ts';

const socket = library.func('int socket(int family, int type, int protocol)');
const bind = library.func('int bind(int fd, const void *address, uint32_t size)');
const recv = library.func('int64_t recv(int fd, _Out_ void *data, size_t size, int flags)');

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const MSG_DONT_WAIT = 0x40;

export class DatagramSocket {
  readonly #fd: number;

  /** @param path a file, or an abstract name that begins with `@` */
  constructor(path: string) {
    const name = Buffer.from(path.replace(/^@/, '\0'));
    const address = Buffer.concat([Buffer.from([AF_UNIX, 0]), name]);
    this.#fd = socket(AF_UNIX, SOCK_DGRAM, 0) as number;
    if (this.#fd < 0 || bind(this.#fd, address, address.length) !== 0) throw new Error(`cannot bind ${path}`);
  }

  /** Returns the datagrams received since the last call. */
  take(): string[] {
    const taken: string[] = [];
    const data = Buffer.alloc(4_096);
    for (;;) {
      const size = recv(this.#fd, data, data.length, MSG_DONT_WAIT) as number;
      if (size < 0) return taken;
      taken.push(data.toString('utf8', 0, size));
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}
