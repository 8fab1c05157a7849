/** What the headers of a request say, read in one pass, and who sends it. */
import type { ErrorCode } from '../../errors.ts';
import { type Address, addressFromBytes, type Network } from '../../network/address.ts';
import { clientAddress } from '../../network/client-address.ts';
import type { HttpRequest, HttpResponse } from '../uws.ts';
import type { Query } from './query.ts';

/** In a list of connection options. */
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;

/** What an answer depends on, whatever was asked. */
export interface Sender {
  readonly client: Address;
  readonly hasBody: boolean;
  /** The client sends nothing more on this connection. */
  readonly isLast: boolean;
}

/** The headers of the request at hand; every request overwrites those of the one before. */
export class RequestHeaders implements Sender {
  hasBody = false;
  isLast = false;
  client: Address = new Uint8Array(16);
  /** Who has opened the connection: the client, or a proxy. */
  readonly peer: Address = new Uint8Array(16);
  /** How often a key was sent as a header, and the one that was sent last. */
  keyCount = 0;
  key = '';
  #forwarded = '';
  readonly #proxies: readonly Network[];

  /** @param proxies are believed which client they forward. */
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

  /** What is wrong with the key that a request has in its headers or its query; undefined where there is exactly one. */
  keyProblem(query: Query): ErrorCode | undefined {
    const { keyCount, key } = this;
    const count = keyCount + query.apiKeyCount;
    if (count === 0) return 'missing_key';
    if (count > 1) return keyCount === 0 ? 'repeated_parameter' : 'conflicting_credentials';
    if (keyCount === 0 && query.apiKey === undefined) return 'unknown_key';
    return (keyCount === 1 ? key : query.apiKey) === '' ? 'missing_key' : undefined;
  }
}

/** A copy for a request that waits, while others overwrite the headers. */
export function copySender({ client, hasBody, isLast }: Sender): Sender {
  return { client: Uint8Array.from(client), hasBody, isLast };
}
