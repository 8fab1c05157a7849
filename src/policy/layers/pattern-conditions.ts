/** Conditions of pattern rules, compiled: for each token list what rules ask of it, by where its words stand. */
import type { Condition } from '../documents.ts';
import type { TokenIndex } from '../words/tokens.ts';
import { countingContexts, POSITION } from '../words/word-contexts.ts';

/** What a rule asks of a word in the path; -1 where it asks for no list. */
export interface SegmentCondition {
  readonly rule: number;
  readonly table: 0 | 1;
  readonly mask: number;
  readonly also: number;
  readonly alsoMask: number;
  readonly hostLabel: number;
  /** Token list of a query parameter's name that must be there too. */
  readonly parameter: number;
}

/** What a rule asks of the host's first label. */
export interface HostCondition {
  readonly rule: number;
  /** The contexts, behind the path, in which it counts. */
  readonly contexts: number;
  /** Whether it counts on the root alone. */
  readonly isRoot: boolean;
}

/** What a rule asks of a query parameter; -1 where any value will do. */
export interface ParameterCondition {
  readonly rule: number;
  readonly contexts: number;
  readonly value: number;
  readonly minValueLength: number;
  readonly butDates: boolean;
}

/** What a rule asks of the last segment as a file. */
export interface FileCondition {
  readonly rule: number;
  readonly contexts: number;
}

type Table<T> = (readonly T[] | undefined)[];

/** Conditions of all rules by token list: a word that is met leads to what asks for it. */
export class ConditionTable {
  readonly segment: Table<SegmentCondition> = [];
  readonly host: Table<HostCondition> = [];
  readonly parameter: Table<ParameterCondition> = [];
  readonly file: Table<FileCondition> = [];
  readonly extension: Table<FileCondition> = [];
  /** For each token list whether a condition asks for it in a path. */
  readonly inPath: Uint8Array;
  /** The same of the names of parameters. */
  readonly inQuery: Uint8Array;
  readonly #tokens: TokenIndex;

  constructor(tokens: TokenIndex) {
    this.#tokens = tokens;
    this.inPath = new Uint8Array(tokens.names.length);
    this.inQuery = new Uint8Array(tokens.names.length);
  }

  /** @throws PagegateError policy_invalid, where a list does not exist */
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
