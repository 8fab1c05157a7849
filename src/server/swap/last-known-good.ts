/**
 * What the workers of a running server have accepted. A worker that replaces one that died serves the same as its siblings: where a file
 * has become bad since, it takes what was accepted. The primary keeps that: the policy as it was loaded, certificate and key, and the
 * index as an open file, which is there whatever became of its name.
 */
import { closeSync, constants, openSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { statePaths } from '../../config/paths.ts';
import type { PolicyDocument } from '../../policy/documents.ts';
import { openFileIdentity } from '../data-loader.ts';
import type { Certificate } from '../read-certificate.ts';

/** What one worker has accepted. */
export type KnownGoodPart =
  | { readonly part: 'policy'; readonly document: PolicyDocument }
  | { readonly part: 'certificate'; readonly certificate: Certificate }
  /** The identity of the file that `statePaths(config).indexFile` named when it was accepted. */
  | { readonly part: 'index'; readonly identity: string };

/** What a worker is started with; empty at the start of a server, which refuses what it cannot accept. */
export interface KnownGoodParts {
  readonly policy?: PolicyDocument;
  readonly certificate?: Certificate;
  /** Identity of the file of the index that is served. The file comes to the worker process as an open one. */
  readonly index?: string;
}

/** A part as the files have it; where they are bad, the accepted one, and what is wrong with the files. */
export interface ChosenPart<T> {
  readonly value: T;
  readonly problem?: unknown;
}

/**
 * Loads a part.
 *
 * @throws what is wrong with it where there is no accepted one
 */
export function loadOrFallBack<T>(load: () => T, keep: (() => T) | undefined): ChosenPart<T> {
  try {
    return { value: load() };
  } catch (problem) {
    if (keep === undefined) throw problem;
    return { value: keep(), problem };
  }
}

/** The primary's memory of it. */
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

  /** The accepted index, open for reading; undefined where there is none. */
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

  /** Another file may have taken the name already: what nobody has accepted is not kept. */
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
