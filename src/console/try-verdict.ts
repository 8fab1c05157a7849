/** Judges a URL as the server would, without a server, a key or a charge: to try a URL or a change of the policy. */
import type { Config } from '../config/config.ts';
import { statePaths } from '../config/paths.ts';
import { errorCodeOf, parseTarget, remedyFor, type Target } from '../domain/target.ts';
import { PagegateError } from '../errors.ts';
import { type Index, NO_RECORD, openIndex } from '../index/read.ts';
import { HTTP_TOKEN } from '../network/http-syntax.ts';
import { createMemoryFile } from '../platform/libc.ts';
import type { LicenseeDocument } from '../policy/documents.ts';
import { type Explanation, explain } from '../policy/explain.ts';
import { loadPolicy, readDocument } from '../policy/load.ts';
import type { Policy } from '../policy/policy.ts';
import { type Evidence, NO_EVIDENCE, type Verdict } from '../policy/types.ts';
import type { DomainRecord } from '../record/types.ts';
import { fileIdentity } from '../server/data-loader.ts';
import { RecordEvidence } from '../server/record-evidence.ts';

/** A proposed entry for the licensee's policy, and its effect. */
export interface Proposal {
  /** The entry in the form of a policy file. */
  readonly text: string;
  /** The verdict with the entry; undefined if the policy with it is not valid. */
  readonly verdict: Verdict | undefined;
  readonly problem: string | undefined;
}

export interface TriedVerdict {
  readonly target: Target;
  readonly method: string;
  /** The generation of the served index; undefined if none is served. */
  readonly generation: number | undefined;
  readonly evidence: Evidence;
  /** The domain whose record the answer is from. */
  readonly domain: string;
  readonly record: DomainRecord | undefined;
  readonly explanation: Explanation;
  readonly policy: Policy;
}

/** Judges with the served index and the configured policy. Opens them again when they change. */
export class Judge {
  readonly #config: Config;
  #index: { readonly identity: string; readonly index: Index | undefined } | undefined;
  #policy: { readonly identity: string; readonly policy: Policy } | undefined;

  /** @param config locates index and policy; nothing is opened yet */
  constructor(config: Config) {
    this.#config = config;
  }

  /** Opens index and policy before the first request, which reports any error. */
  prepare(): void {
    try {
      this.#currentIndex();
      this.#currentPolicy();
    } catch {
      // The first request reports it.
    }
  }

  /** @throws PagegateError bad_input, input_too_long, bad_method, and what opening the index and the policy throws */
  judge(input: string, methodText: string): TriedVerdict {
    const target = parseTarget(input);
    if ('problem' in target) {
      const code = errorCodeOf(target.problem);
      throw new PagegateError(code, code === 'bad_input' ? remedyFor(target.problem) : undefined);
    }
    const method = methodText === '' ? 'GET' : methodText.toUpperCase();
    if (!HTTP_TOKEN.test(method)) throw new PagegateError('bad_method');
    const index = this.#currentIndex();
    const policy = this.#currentPolicy();
    const found = index && new RecordEvidence(index, target, this.#config.index.subdomains);
    const evidence = found ?? NO_EVIDENCE;
    const record = found === undefined || found.handle === NO_RECORD ? undefined : index?.decode(found.handle);
    const explanation = explain(policy, { url: target.url, method }, evidence);
    const domain = found?.domain ?? target.key;
    return { target, method, generation: index?.info.generation, evidence, domain, record, explanation, policy };
  }

  /** Proposes an entry that allows what is denied or flagged, or one that denies what is allowed, and judges with it. */
  propose({ target, method, explanation, evidence }: TriedVerdict): Proposal {
    const { host, path } = target.url;
    const isAllowed = explanation.verdict.verdict === 'allow';
    const id = `own-${host.replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-|-$/g, '')}`.slice(0, 60);
    const note = 'Proposed in the console.';
    const entry: Pick<LicenseeDocument, 'allow' | 'add'> = isAllowed
      ? { add: { hosts: [{ id, host, verdict: 'deny', note }] } }
      : { allow: [{ id, host, path: path === '' ? '/' : path, methods: [method], note }] };
    const text = JSON.stringify(entry, null, 2);
    try {
      const policy = this.#policyWith(entry);
      const { verdict } = explain(policy, { url: target.url, method }, evidence);
      return { text, verdict, problem: undefined };
    } catch (error) {
      if (!(error instanceof PagegateError)) throw error;
      return { text, verdict: undefined, problem: error.message };
    }
  }

  #policyWith({ allow = [], add }: Pick<LicenseeDocument, 'allow' | 'add'>): Policy {
    const { file, profile } = this.#config.policy;
    const current: LicenseeDocument = file === null ? { format: 'pagegate-policy/1' } : readDocument(file, 'licensee');
    const merged: LicenseeDocument = {
      ...current,
      allow: [...(current.allow ?? []), ...allow],
      add: { ...current.add, hosts: [...(current.add?.hosts ?? []), ...(add?.hosts ?? [])] },
    };
    // The file is written as Latin-1 and read as UTF-8, so everything beyond ASCII is escaped.
    const text = JSON.stringify(merged).replaceAll(
      /[^\x20-\x7e]/g,
      (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    const inMemory = createMemoryFile(text);
    try {
      return loadPolicy({ file: inMemory.path, profile: profile ?? undefined, once: true });
    } finally {
      inMemory.close();
    }
  }

  /** Returns the served index; opens it again if it was replaced. */
  #currentIndex(): Index | undefined {
    const path = statePaths(this.#config).indexFile;
    const identity = fileIdentity(path);
    if (this.#index?.identity !== identity) {
      const index = identity === '-' ? undefined : openIndex(path);
      this.#index?.index?.close();
      this.#index = { identity, index };
    }
    return this.#index.index;
  }

  #currentPolicy(): Policy {
    const { file, profile } = this.#config.policy;
    const identity = fileIdentity(file);
    if (this.#policy?.identity !== identity) {
      const policy = loadPolicy({ file: file ?? undefined, profile: profile ?? undefined });
      this.#policy = { identity, policy };
    }
    return this.#policy.policy;
  }
}
