/**
 * Logs refused requests: 401, 403 and 429, with the account's name. The first of a kind is logged at once; the others are counted and logged
 * once a minute, so that no client can fill the log.
 */
import type { ErrorCode } from '../../errors.ts';
import { type Address, isIpv4Address } from '../../network/address.ts';
import type { Log } from '../log.ts';

const WINDOW_SECONDS = 60;
/** Maximum number of kinds (code, account, network) that are counted separately within a minute. Further ones are counted by code only. */
const KINDS_MAX = 256;

interface Kind {
  readonly code: ErrorCode;
  readonly account: string | undefined;
  readonly network: string | undefined;
  /** Number since the last line about it. */
  count: number;
  /** Whether there was a line about it. */
  isTold: boolean;
}

export interface RefusalLogOptions {
  readonly log: Log;
  /** Whether to log the client's network. The address itself is never logged. */
  readonly networks: boolean;
}

/** Counts and logs the refusals of one worker. */
export class RefusalLog {
  readonly #options: RefusalLogOptions;
  readonly #kinds = new Map<string, Kind>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: RefusalLogOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.tell(), WINDOW_SECONDS * 1_000);
    this.#timer.unref();
  }

  /** Counts a refusal. @param account its name, if the key is known */
  note(code: ErrorCode, account: string | undefined, client: Address): void {
    const network = this.#options.networks ? networkOf(client) : undefined;
    const kind = this.#kindOf(code, account, network);
    if (kind.isTold) kind.count += 1;
    else this.#write(kind, 1, 0);
    kind.isTold = true;
  }

  /** Logs what was counted, and forgets kinds that did not occur again. */
  tell(): void {
    for (const [key, kind] of this.#kinds) {
      if (kind.count === 0) this.#kinds.delete(key);
      else this.#write(kind, kind.count, WINDOW_SECONDS);
      kind.count = 0;
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.tell();
  }

  #write({ code, account, network }: Kind, count: number, seconds: number): void {
    this.#options.log('requests_refused', { code, account, network, count, seconds });
  }

  #kindOf(code: ErrorCode, account: string | undefined, network: string | undefined): Kind {
    const key = `${code} ${account ?? ''} ${network ?? ''}`;
    const known = this.#kinds.get(key);
    if (known !== undefined) return known;
    if (this.#kinds.size >= KINDS_MAX && (account ?? network) !== undefined)
      return this.#kindOf(code, undefined, undefined);
    const kind: Kind = { code, account, network, count: 0, isTold: false };
    this.#kinds.set(key, kind);
    return kind;
  }
}

/** The network of a client: /24 for IPv4, /48 for IPv6. It identifies a site rather than a host. */
export function networkOf(client: Address): string {
  if (isIpv4Address(client)) return `${client[12]}.${client[13]}.${client[14]}.0/24`;
  const group = (at: number): string => ((client[at]! << 8) | client[at + 1]!).toString(16);
  return `${group(0)}:${group(2)}:${group(4)}::/48`;
}
