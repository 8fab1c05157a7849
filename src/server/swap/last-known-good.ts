/**
 * The last known good data of a running server. A worker that replaces one that died must serve the same as its siblings: if a file has become
 * unusable, it uses the last data that a worker accepted. The primary keeps that data: the policy as it was loaded, certificate and key, and
 * the index as an open file, which stays readable even if its name is removed or replaced.
 */
import { closeSync, constants, openSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { statePaths } from '../../config/paths.ts';
import type { PolicyDocument } from '../../policy/documents.ts';
import { openFileIdentity } from '../data-loader.ts';
import type { Certificate } from '../read-certificate.ts';

/** A part that a worker has accepted. */
export type KnownGoodPart =
  | { readonly part: 'policy'; readonly document: PolicyDocument }
  | { readonly part: 'certificate'; readonly certificate: Certificate }
  /** The identity of the file that `statePaths(config).indexFile` named when it was accepted. */
  | { readonly part: 'index'; readonly identity: string };

/** The parts that a worker is started with. Empty when a server starts: it refuses to start on bad files. */
export interface KnownGoodParts {
  readonly policy?: PolicyDocument;
  readonly certificate?: Certificate;
  /** Identity of the file of the index in use. The worker process inherits its file descriptor. */
  readonly index?: string;
}

/** A part as loaded from its files. If they cannot be used, the last known good one, and the problem with the files. */
export interface ChosenPart<T> {
  readonly value: T;
  readonly problem?: unknown;
}

/**
 * Loads a part, or falls back to the last known good one.
 *
 * @throws the error of `load` if there is nothing to fall back to
 */
export function loadOrFallBack<T>(load: () => T, keep: (() => T) | undefined): ChosenPart<T> {
  try {
    return { value: load() };
  } catch (problem) {
    if (keep === undefined) throw problem;
    return { value: keep(), problem };
  }
}

/** The last known good data, as the primary keeps it. */
export class LastKnownGood {
  readonly #config: Config;
  #parts: KnownGoodParts;
  #indexFd: number | undefined;

  constructor(config: Config, certificate: Certificate | undefined) {
    this.#config = config;
    this.#parts = certificate === undefined ? {} : { certificate };
  }

  get parts(): KnownGoodParts {
    return this.#parts;
  }

  /** File descriptor of the accepted index, open for reading; undefined if there is none. */
  get indexFd(): number | undefined {
    return this.#indexFd;
  }

  retain(part: KnownGoodPart): void {
    if (part.part === 'policy') this.#parts = { ...this.#parts, policy: part.document };
    else if (part.part === 'certificate') this.#parts = { ...this.#parts, certificate: part.certificate };
    else this.#retainIndex(part.identity);
  }

  close(): void {
    if (this.#indexFd !== undefined) closeSync(this.#indexFd);
    this.#indexFd = undefined;
  }

  /** Opens the accepted index. Keeps it only if the file still has the accepted identity: it may have been replaced already. */
  #retainIndex(identity: string): void {
    if (identity === this.#parts.index && this.#indexFd !== undefined) return;
    let fd: number;
    try {
      fd = openSync(statePaths(this.#config).indexFile, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch {
      return;
    }
    if (openFileIdentity(fd) !== identity) {
      closeSync(fd);
      return;
    }
    this.close();
    this.#indexFd = fd;
    this.#parts = { ...this.#parts, index: identity };
  }
}
