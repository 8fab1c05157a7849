/**
 * Verdicts without a lookup for each: the server's policy runs here with records from earlier lookups. It is used only while the exported policy
 * has the revision that the server reports, which covers the policy, its code and the Unicode version, and only if both use the same URL parser.
 * So it gives the server's verdict or none.
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

/** The file that `pagegate policy export` writes. */
export interface ExportedPolicy {
  readonly format: 'pagegate-policy-export/1';
  /** The revision of the policy in the exporting program. */
  readonly revision: string;
  /** The version of the URL parser of the exporting program. Node.js 20 leaves some dot segments in paths that Node.js 24 resolves. */
  readonly url_parser: string;
  readonly document: PolicyDocument;
}

export interface LocalOptions {
  /** How long a record is kept, in seconds. Default: 3,600. A change of the server's data drops the records earlier. */
  readonly recordSeconds?: number | undefined;
  /** How many records are kept. Default: 10,000. */
  readonly recordEntries?: number | undefined;
}

const FORMAT = 'pagegate-policy-export/1';
/**
 * URLs that only the server judges: those that it trims or refuses before it judges, and those with international names, which different
 * versions of the URL parser can parse differently.
 */
const NOT_PLAIN = /[^\x21-\x7e]|xn--|^(?:[^/?#]*\/\/)?[^/?#\\]*%/i;

/** The known record of one domain. */
interface KnownRecord {
  /** Undefined if the domain is not classified. */
  readonly facts: DomainFacts | undefined;
  /** The domain whose record the server answers with: itself or, depending on the server's configuration, a parent domain. */
  readonly domain: string;
  readonly untilMs: number;
}

/** Reads a file that `pagegate policy export` wrote. @throws Error if it is not such a file, PagegateError policy_invalid */
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

/** @throws Error if a part is missing, PagegateError policy_invalid */
function compileExported({ document }: ExportedPolicy): Policy {
  try {
    return compilePolicy({ ...document, warnings: [] });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const message = 'the exported policy lacks a part: export it again with "pagegate policy export" of this version';
    throw new Error(message, { cause: error });
  }
}

/** Judges with records from earlier answers and the policy that the server exported. */
export class LocalVerdicts implements LocalJudge {
  /**
   * Whether this Node.js parses URLs as the exporting program does. If not, every verdict is looked up, as it is if the server's policy revision
   * differs.
   */
  readonly isUsable: boolean;
  readonly #policy: Policy;
  readonly #lifetimeMs: number;
  readonly #entriesMax: number;
  readonly #records = new Map<string, KnownRecord>();

  /** @throws Error if it is not an exported policy, PagegateError policy_invalid */
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

  /** The revision of the policy in this program. */
  get revision(): string {
    return this.#policy.revision;
  }

  /** Number of records that are kept. */
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
    // If the answer is about a parent domain, the parent is classified and this domain is not.
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
    // A map keeps the order of insertion, so its first key is the oldest.
    if (this.#records.size >= this.#entriesMax) this.#records.delete(this.#records.keys().next().value!);
    this.#records.set(key, { facts, domain, untilMs: performance.now() + this.#lifetimeMs });
  }
}

/** The policy needs a record that is not known yet. */
class MissingError extends Error {
  readonly key: string;

  constructor(key: string) {
    super(key);
    this.key = key;
  }
}

/** Evidence from known records. Its members throw a MissingError for a record that is not known. */
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

  /** The records of the host and its parent domains, the nearest first. */
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
