/** How the rules alone judge URLs: as on a classified domain without a single verified page. */
import type { PolicyDocument } from '../../src/policy/documents.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import { compilePolicy, type Policy } from '../../src/policy/policy.ts';
import type { Evidence, Verdict } from '../../src/policy/types.ts';
import type { Row, SetName } from './rows.ts';

/** The least share of acts that must be denied, by set and category; `*` is all of them. */
export const LEAST_DENIED: Readonly<Partial<Record<SetName, Readonly<Record<string, number>>>>> = {
  labelled: { login: 0.9, oauth_authorize: 0.9, change_password: 0.9 },
};
/** The largest shares of reading pages that may be denied and flagged. */
const MOST_STOPPED: Readonly<Partial<Record<SetName, { readonly denied: number; readonly flagged: number }>>> = {
  labelled: { denied: 0.01, flagged: 0.03 },
};
/** Fewer pages of a category than these are too few to hold a goal against: one miss more or less would decide. */
export const COUNT_MIN = 40;

const CLASSIFIED: Evidence = { found: true, parentFound: false, pages: () => [], filteringCategories: () => [] };

export interface Judged {
  readonly row: Row;
  readonly verdict: Verdict;
  /** Whether only what stands around the words decides: without it the verdict would be another one. */
  readonly isUnsure: boolean;
}

export interface Count {
  readonly name: string;
  readonly expect: Row['expect'];
  readonly count: number;
  readonly denied: number;
  readonly flagged: number;
}

/** The same policy, without contexts: a word counts wherever it stands. */
function withoutContexts(document: PolicyDocument): Policy {
  const rules = document.rules.map((rule) =>
    rule.when === undefined
      ? rule
      : {
          ...rule,
          when: rule.when.map(({ not_in: _notIn, even_in: _evenIn, ...condition }) => {
            return condition.segment === undefined
              ? condition
              : { ...condition, even_in: ['title', 'source'] as const };
          }),
        },
  );
  return compilePolicy({ ...document, rules });
}

export function judge(policy: Policy, rows: readonly Row[]): Judged[] {
  const blind = withoutContexts(policy.document);
  return rows.map((row) => {
    const request = { url: row.target.url, method: 'GET' };
    const verdict = evaluate(policy, request, CLASSIFIED);
    return { row, verdict, isUnsure: evaluate(blind, request, CLASSIFIED).verdict !== verdict.verdict };
  });
}

/** What counts are made by: acts and reading pages stand apart in each. */
export const GROUPS: Readonly<Record<string, (judged: Judged) => string>> = {
  category: ({ row }) => row.category,
  language: ({ row }) => row.language || 'not said',
  rule: ({ verdict }) => `${verdict.layer}/${verdict.id}`,
};

/** Counts by group, acts first, the largest first; before them the count of all acts and all reading pages. */
export function countBy(judged: readonly Judged[], group: (judged: Judged) => string): Count[] {
  const count = (name: string, expect: Row['expect'], some: readonly Judged[]): Count => ({
    name,
    expect,
    count: some.length,
    denied: some.filter(({ verdict }) => verdict.verdict === 'deny').length,
    flagged: some.filter(({ verdict }) => verdict.verdict === 'flag').length,
  });
  return (['deny', 'allow'] as const).flatMap((expect) => {
    const all = judged.filter(({ row }) => row.expect === expect);
    const groups = Map.groupBy(all, group);
    const counts = [...groups].map(([name, some]) => count(name, expect, some));
    return all.length === 0 ? [] : [count('*', expect, all), ...counts.sort((a, b) => b.count - a.count)];
  });
}

/** Acts that are not denied, and reading pages that are not allowed. */
export function misses(judged: readonly Judged[]): Judged[] {
  return judged.filter(
    ({ row, verdict }) => (row.expect === 'deny') !== (verdict.verdict === 'deny') || isFlagged(row, verdict),
  );
}

function isFlagged(row: Row, verdict: Verdict): boolean {
  return row.expect === 'allow' && verdict.verdict === 'flag';
}

/** The goals of a set that are not reached, each as a sentence. */
export function unmetGoals(set: SetName, judged: readonly Judged[]): string[] {
  const unmet: string[] = [];
  const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;
  const counts = countBy(judged, GROUPS['category']!);
  for (const { name, expect, count, denied } of counts) {
    const least = expect === 'deny' ? LEAST_DENIED[set]?.[name] : undefined;
    if (least !== undefined && count >= COUNT_MIN && denied < count * least)
      unmet.push(`${set}, ${name}: ${percent(denied / count)} denied, goal at least ${percent(least)}`);
  }
  const reading = counts.find(({ name, expect }) => name === '*' && expect === 'allow');
  const most = MOST_STOPPED[set];
  if (reading === undefined || most === undefined) return unmet;
  for (const what of ['denied', 'flagged'] as const) {
    if (reading[what] > reading.count * most[what])
      unmet.push(
        `${set}, reading pages: ${percent(reading[what] / reading.count)} ${what}, goal at most ${percent(most[what])}`,
      );
  }
  return unmet;
}
