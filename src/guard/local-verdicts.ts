/**
 * Verdicts without a lookup for each: the server's policy, run here on records that lookups brought. It is asked only while the
 * policy that it was given has the revision that the server names, which stands for the policy, its code and the Unicode version, and
 * only where URLs are read by the same parser; so it gives the server's verdict, or none.
 */
import { readFileSync } from 'node:fs';
import { parentDomains } from '../domain/public-suffix.ts';
import { parseTarget, type Target } from '../domain/target.ts';
import type { PolicyDocument } from '../policy/documents.ts';
import { evaluate } from '../policy/evaluate.ts';
import { compilePolicy, type Policy } from '../policy/policy.ts';
import type { Evidence, PageEvidence } from '../policy/types.ts';
import type { Answer, DomainFacts, Judgment } from './ask/answer.ts';
import type { LocalJudge, MissingRecord } from './guard.ts';

/** What `pagegate policy export` writes. */
export interface ExportedPolicy {
  readonly format: 'pagegate-policy-export/1';
  /** The revision that the exporting program gave the policy. */
  readonly revision: string;
  /** The version of the URL parser of the exporting program. Node.js 20 leaves some dot segments in paths that Node.js 24 resolves. */
  readonly url_parser: string;
  readonly document: PolicyDocument;
}

export interface LocalOptions {
  /** For how long a record is kept, in seconds; 3,600 unless told. Data that changed ends it earlier. */
  readonly recordSeconds?: number | undefined;
  /** How many records are kept; 10,000 unless told. */
  readonly recordEntries?: number | undefined;
}

const FORMAT = 'pagegate-policy-export/1';
/**
 * What is left to the server: what it trims or refuses before it judges, and international names, which URL parsers of different
 * versions do not all read alike.
 */
const NOT_PLAIN = /[^\x21-\x7e]|xn--|^(?:[^/?#]*\/\/)?[^/?#\\]*%/i;

/** What is known of one domain. */
interface KnownRecord {
  /** Undefined where the domain is not classified. */
  readonly facts: DomainFacts | undefined;
  /** The domain whose record the server answers with: itself or, where the server is set so, one above it. */
  readonly domain: string;
  readonly untilMs: number;
}

/** Reads what `pagegate policy export` wrote. @throws Error where it is something else, PagegateError policy_invalid */
export function readLocalVerdicts(file: string, options: LocalOptions = {}): LocalVerdicts {
  return new LocalVerdicts(readExported(file), options);
}

function readExported(file: string): ExportedPolicy {
  const text = readFileSync(file, 'utf8');
  try {
    return JSON.parse(text) as ExportedPolicy;
  } catch (cause) {
    const found = text === '' ? 'it is empty' : 'it is no JSON';
    throw new Error(`${file}: ${found}; export it again with "pagegate policy export"`, { cause });
  }
}

/** @throws Error where a part is missing, PagegateError policy_invalid */
function compileExported({ document }: ExportedPolicy): Policy {
  try {
    return compilePolicy({ ...document, warnings: [] });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const message = 'the exported policy lacks a part: export it again with "pagegate policy export" of this version';
    throw new Error(message, { cause: error });
  }
}

/** Judges on records that earlier answers brought, with the policy that the server exported. */
export class LocalVerdicts implements LocalJudge {
  /**
   * Whether this Node.js reads URLs as the exporting program does. Where it does not, every verdict is asked for, as it is where the
   * server's revision is another one.
   */
  readonly isUsable: boolean;
  readonly #policy: Policy;
  readonly #lifetimeMs: number;
  readonly #entriesMax: number;
  readonly #records = new Map<string, KnownRecord>();

  /** @throws Error where it is not an exported policy, PagegateError policy_invalid */
  constructor(exported: ExportedPolicy, options: LocalOptions = {}) {
    if (exported?.format !== FORMAT) {
      throw new Error(
        `the policy is not one that "pagegate policy export" of this version wrote: its format must be ${FORMAT}`,
      );
    }
    const { recordSeconds = 3_600, recordEntries = 10_000 } = options;
    if (!(recordSeconds >= 1) || !(recordEntries >= 1))
      throw new TypeError('recordSeconds, recordEntries: out of range');
    this.isUsable = exported.url_parser === process.versions['ada'];
    this.#policy = compileExported(exported);
    this.#lifetimeMs = recordSeconds * 1_000;
    this.#entriesMax = recordEntries;
  }

  /** The revision that this program gives the policy. */
  get revision(): string {
    return this.#policy.revision;
  }

  /** Records that are kept. */
  get size(): number {
    return this.#records.size;
  }

  judge(url: string, method: string, data: string): Judgment | MissingRecord | undefined {
    if (!this.isUsable || !data.endsWith(`.${this.#policy.revision}`) || NOT_PLAIN.test(url)) return undefined;
    const target = parseTarget(url);
    if ('problem' in target) return undefined;
    const evidence = new KnownEvidence(target, (key) => this.#find(key));
    try {
      const { verdict, layer, id, note } = evaluate(this.#policy, { url: target.url, method }, evidence);
      const own = this.#find(target.key);
      const domain = own?.domain ?? target.key;
      return { verdict, layer, id, note, domain, found: own?.facts !== undefined || domain !== target.key, data };
    } catch (error) {
      if (error instanceof MissingError) return { missing: error.key, isOwn: error.key === target.key };
      throw error;
    }
  }

  learn(url: string, answer: Answer): void {
    const target = parseTarget(url);
    if ('problem' in target || !target.classifiable || answer.facts === undefined) return;
    // A domain above may have answered: then this one is not classified, and that one is.
    const { domain, found, facts } = answer;
    this.#keep(target.key, found && domain === target.key ? facts : undefined, domain);
    if (found && domain !== target.key) this.#keep(domain, facts, domain);
  }

  forget(): void {
    this.#records.clear();
  }

  #find(key: string): KnownRecord | undefined {
    const record = this.#records.get(key);
    if (record === undefined || record.untilMs > performance.now()) return record;
    this.#records.delete(key);
    return undefined;
  }

  #keep(key: string, facts: DomainFacts | undefined, domain: string): void {
    this.#records.delete(key);
    // The oldest goes first: a map keeps the order of insertion.
    if (this.#records.size >= this.#entriesMax) this.#records.delete(this.#records.keys().next().value!);
    this.#records.set(key, { facts, domain, untilMs: performance.now() + this.#lifetimeMs });
  }
}

/** The policy asked for a record that is not known yet. */
class MissingError extends Error {
  readonly key: string;

  constructor(key: string) {
    super(key);
    this.key = key;
  }
}

/** Evidence from known records; what is not known is missed at the moment the policy asks for it. */
class KnownEvidence implements Evidence {
  readonly #target: Target;
  readonly #find: (key: string) => KnownRecord | undefined;
  #parents: readonly string[] | undefined;

  constructor(target: Target, find: (key: string) => KnownRecord | undefined) {
    this.#target = target;
    this.#find = find;
  }

  get found(): boolean {
    return this.#own() !== undefined;
  }

  get parentFound(): boolean {
    return this.#parentKeys().some((key) => this.#facts(key) !== undefined);
  }

  pages(): readonly PageEvidence[] {
    return this.#all().flatMap(({ pages }) => pages);
  }

  filteringCategories(): readonly string[] {
    return this.#all().flatMap(({ categories }) => categories);
  }

  #own(): DomainFacts | undefined {
    return this.#target.classifiable ? this.#facts(this.#target.key) : undefined;
  }

  /** The host's record and its parents' records, the nearest first. */
  #all(): readonly DomainFacts[] {
    const facts = [this.#own(), ...this.#parentKeys().map((key) => this.#facts(key))];
    return facts.filter((one) => one !== undefined);
  }

  #parentKeys(): readonly string[] {
    this.#parents ??= this.#target.classifiable ? parentDomains(this.#target.key) : [];
    return this.#parents;
  }

  #facts(key: string): DomainFacts | undefined {
    const record = this.#find(key);
    if (record === undefined) throw new MissingError(key);
    return record.facts;
  }
}
