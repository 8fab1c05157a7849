/** Reads the headers of a request in one pass, and determines the client. */
import type { ErrorCode } from '../../errors.ts';
import { type Address, addressFromBytes, type Network } from '../../network/address.ts';
import { clientAddress } from '../../network/client-address.ts';
import type { HttpRequest, HttpResponse } from '../uws.ts';
import type { Query } from './query.ts';

/** The option `close` in a `Connection` header. */
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;

/** Facts about the client and its connection that an answer depends on. */
export interface Sender {
  readonly client: Address;
  readonly hasBody: boolean;
  /** The client sends nothing more on this connection. */
  readonly isLast: boolean;
}

/** The headers of the current request. Each request overwrites those of the previous one. */
export class RequestHeaders implements Sender {
  hasBody = false;
  isLast = false;
  client: Address = new Uint8Array(16);
  /** The address that opened the connection: the client's, or a proxy's. */
  readonly peer: Address = new Uint8Array(16);
  /** Number of key headers, and the value of the last one. */
  keyCount = 0;
  key = '';
  #forwarded = '';
  readonly #proxies: readonly Network[];

  /** @param proxies addresses whose `X-Forwarded-For` is trusted */
  constructor(proxies: readonly Network[]) {
    this.#proxies = proxies;
  }

  readFrom(res: HttpResponse, req: HttpRequest): void {
    this.hasBody = false;
    this.isLast = false;
    this.keyCount = 0;
    this.key = '';
    this.#forwarded = '';
    req.forEach(this.#readHeader);
    addressFromBytes(res.getRemoteAddress(), this.peer);
    this.client = clientAddress(this.peer, this.#forwarded, this.#proxies);
  }

  readonly #readHeader: (name: string, value: string) => void = (name, value) => {
    if (name === 'x-api-key') {
      this.keyCount += 1;
      this.key = value;
    } else if (name === 'content-length') this.hasBody ||= value !== '0';
    else if (name === 'transfer-encoding') this.hasBody = true;
    else if (name === 'connection') this.isLast ||= value !== 'keep-alive' && CLOSE.test(value);
    else if (name === 'x-forwarded-for') this.#forwarded += this.#forwarded === '' ? value : `,${value}`;
  };

  /** Returns the problem with the keys in headers and query; undefined if there is exactly one. */
  keyProblem(query: Query): ErrorCode | undefined {
    const { keyCount, key } = this;
    const count = keyCount + query.apiKeyCount;
    if (count === 0) return 'missing_key';
    if (count > 1) return keyCount === 0 ? 'repeated_parameter' : 'conflicting_credentials';
    if (keyCount === 0 && query.apiKey === undefined) return 'unknown_key';
    return (keyCount === 1 ? key : query.apiKey) === '' ? 'missing_key' : undefined;
  }
}

/** Copies a sender for a request that waits, because later requests overwrite the headers. */
export function copySender({ client, hasBody, isLast }: Sender): Sender {
  return { client: Uint8Array.from(client), hasBody, isLast };
}
