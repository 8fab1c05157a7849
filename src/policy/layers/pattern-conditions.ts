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
  readonly minValueLength: number;
  readonly butDates: boolean;
}

/** The conditions on the parameters whose name is in one token list. */
export interface ParameterConditions {
  /** Those that hold whatever the value is. */
  readonly anyValue: readonly ParameterCondition[];
  /** Those on the words of the value, by the ordinal of their token list; undefined if there are none. */
  readonly byValue: Table<ParameterCondition> | undefined;
}

/** A condition on the last segment as a file name. */
export interface FileCondition {
  readonly rule: number;
  readonly contexts: number;
}

/** Conditions by the ordinal of a token list. */
export type Table<T> = (readonly T[] | undefined)[];

/** Conditions of all rules, each table indexed by the ordinal of a token list. A word of the URL leads to the conditions on it. */
export class ConditionTable {
  readonly segment: Table<SegmentCondition>;
  readonly host: Table<HostCondition>;
  readonly parameter: (ParameterConditions | undefined)[];
  readonly file: Table<FileCondition>;
  readonly extension: Table<FileCondition>;
  /** For each token list: 1 if a condition uses it for segments of a path. */
  readonly inPath: Uint8Array;
  /** For each token list: 1 if a condition uses it for a segment and needs no other word of the path or the host. */
  readonly inPathAlone: Uint8Array;
  /** For each token list: 1 if a condition uses it for names of parameters. */
  readonly inQuery: Uint8Array;
  readonly #tokens: TokenIndex;

  constructor(tokens: TokenIndex) {
    this.#tokens = tokens;
    const size = tokens.names.length;
    this.segment = emptyTable(size);
    this.host = emptyTable(size);
    this.parameter = emptyTable(size);
    this.file = emptyTable(size);
    this.extension = emptyTable(size);
    this.inPath = new Uint8Array(size);
    this.inPathAlone = new Uint8Array(size);
    this.inQuery = new Uint8Array(size);
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
      else if (hostLabel < 0) this.inPathAlone[segment] = 1;
    } else {
      push(this.host, hostLabel, { rule, contexts, isRoot: condition.root === true });
      const { min_value_length: minValueLength = 0, but_dates: butDates = false } = condition;
      this.#addParameter(name, list(condition.query_value), { rule, contexts, minValueLength, butDates });
      if (name >= 0) this.inQuery[name] = 1;
    }
    push(this.file, list(condition.file), { rule, contexts });
    push(this.extension, list(condition.extension), { rule, contexts });
  }

  #addParameter(name: number, value: number, condition: ParameterCondition): void {
    if (name < 0) return;
    const { anyValue, byValue } = this.parameter[name] ?? { anyValue: [], byValue: undefined };
    if (value < 0) {
      this.parameter[name] = { anyValue: [...anyValue, condition], byValue };
      return;
    }
    const table = byValue ?? emptyTable<readonly ParameterCondition[]>(this.segment.length);
    push(table, value, condition);
    this.parameter[name] = { anyValue, byValue: table };
  }
}

/** Whether a table has conditions for at least one of the token lists. */
export function hasConditions<T>(table: Table<T>, lists: readonly number[]): boolean {
  for (let at = 0; at < lists.length; at++) if (table[lists[at]!] !== undefined) return true;
  return false;
}

/** Returns a table with an entry for each token list, because V8 is slow to find that an array has no such index. */
function emptyTable<T>(size: number): (T | undefined)[] {
  return new Array<T | undefined>(size).fill(undefined);
}

function push<T>(table: Table<T>, list: number, value: T): void {
  if (list >= 0) table[list] = [...(table[list] ?? []), value];
}
