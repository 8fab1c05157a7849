/** Compiles the conditions of pattern rules into tables: for each token list, the conditions on its words. */
import type { Condition } from '../documents.ts';
import type { TokenIndex } from '../words/tokens.ts';
import { countingContexts, POSITION } from '../words/word-contexts.ts';

/** A condition on a word in the path. `rule` is the index of the rule, here and below. Token lists are ordinals, or -1 if not required. */
export interface SegmentCondition {
  readonly rule: number;
  /** Which of the two tables of {@link POSITION} `mask` applies to. */
  readonly table: 0 | 1;
  /** Bits of the positions and contexts in which the word must occur. */
  readonly mask: number;
  /** Token list of another word that the path must have. */
  readonly also: number;
  /** Bits of the positions and contexts in which that other word must occur. */
  readonly alsoMask: number;
  /** Token list of the host's first label. */
  readonly hostLabel: number;
  /** Token list of the name of a query parameter that must have a value. */
  readonly parameter: number;
}

/** A condition on the host's first label. */
export interface HostCondition {
  readonly rule: number;
  /** Bits of the contexts after the path in which the condition applies. */
  readonly contexts: number;
  /** Whether the condition applies only to the root. */
  readonly isRoot: boolean;
}

/** A condition on a query parameter. */
export interface ParameterCondition {
  readonly rule: number;
  readonly contexts: number;
  /** Token list of the value; -1 if any value matches. */
  readonly value: number;
  readonly minValueLength: number;
  readonly butDates: boolean;
}

/** A condition on the last segment as a file name. */
export interface FileCondition {
  readonly rule: number;
  readonly contexts: number;
}

type Table<T> = (readonly T[] | undefined)[];

/** Conditions of all rules, each table indexed by the ordinal of a token list. A word of the URL leads to the conditions on it. */
export class ConditionTable {
  readonly segment: Table<SegmentCondition> = [];
  readonly host: Table<HostCondition> = [];
  readonly parameter: Table<ParameterCondition> = [];
  readonly file: Table<FileCondition> = [];
  readonly extension: Table<FileCondition> = [];
  /** For each token list: 1 if a condition uses it for segments of a path. */
  readonly inPath: Uint8Array;
  /** For each token list: 1 if a condition uses it for names of parameters. */
  readonly inQuery: Uint8Array;
  readonly #tokens: TokenIndex;

  constructor(tokens: TokenIndex) {
    this.#tokens = tokens;
    this.inPath = new Uint8Array(tokens.names.length);
    this.inQuery = new Uint8Array(tokens.names.length);
  }

  /** Adds a condition of the rule with index `rule`. @throws PagegateError policy_invalid, if a token list does not exist */
  add(rule: number, condition: Condition): void {
    const list = (name: string | undefined): number => (name === undefined ? -1 : this.#tokens.ordinal(name));
    const contexts = countingContexts(condition.not_in ?? [], condition.even_in ?? []);
    const segment = list(condition.segment);
    const also = list(condition.also);
    const hostLabel = list(condition.host_label);
    const name = list(condition.query_name ?? condition.query_flag);
    if (segment >= 0) {
      const { table, shift } = POSITION[condition.at ?? 'any'];
      const alsoMask = contexts << POSITION.any.shift;
      push(this.segment, segment, { rule, table, mask: contexts << shift, also, alsoMask, hostLabel, parameter: name });
      this.inPath[segment] = 1;
      if (also >= 0) this.inPath[also] = 1;
    } else {
      push(this.host, hostLabel, { rule, contexts, isRoot: condition.root === true });
      const value = list(condition.query_value);
      const { min_value_length: minValueLength = 0, but_dates: butDates = false } = condition;
      push(this.parameter, name, { rule, contexts, value, minValueLength, butDates });
      if (name >= 0) this.inQuery[name] = 1;
    }
    push(this.file, list(condition.file), { rule, contexts });
    push(this.extension, list(condition.extension), { rule, contexts });
  }
}

function push<T>(table: Table<T>, list: number, value: T): void {
  if (list >= 0) table[list] = [...(table[list] ?? []), value];
}
