/** Judges URLs with the rules alone, as on a classified domain without any verified page, and counts the results. */
import type { PolicyDocument } from '../../src/policy/documents.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import { compilePolicy, type Policy } from '../../src/policy/policy.ts';
import type { Evidence, Verdict } from '../../src/policy/types.ts';
import type { Row, SetName } from './labelled-urls.ts';

/** A goal for a set, checked in each of its halves. */
export interface Goal {
  readonly set: SetName;
  readonly expect: Row['expect'];
  /** A category; `*` means all. */
  readonly name: string;
  readonly verdict: 'denied' | 'flagged';
  /** For action pages, the minimum share with this verdict; for reading pages, the maximum share. */
  readonly share: number;
}

const act = (set: SetName, name: string, share: number): Goal => ({
  set,
  expect: 'deny',
  name,
  verdict: 'denied',
  share,
});
const reading = (set: SetName, verdict: Goal['verdict'], share: number): Goal => ({
  set,
  expect: 'allow',
  name: '*',
  verdict,
  share,
});

export const GOALS: readonly Goal[] = [
  ...(['labelled', 'own', 'unseen'] as const).flatMap((set) => [
    act(set, 'login', 0.97),
    act(set, 'oauth_authorize', 0.97),
    act(set, 'change_password', 0.94),
    reading(set, 'denied', 0.003),
    reading(set, 'flagged', 0.0015),
  ]),
  act('declared', 'oauth_authorize', 0.97),
  reading('declared', 'denied', 0.003),
  reading('declared', 'flagged', 0.0015),
  act('remembered', '*', 0.85),
  reading('remembered', 'denied', 0.03),
  act('recalled', '*', 0.85),
  reading('found', 'denied', 0.02),
  act('linked', '*', 0.85),
  reading('linked', 'denied', 0.01),
  reading('linked', 'flagged', 0.005),
  act('hard', '*', 0.85),
  act('code', '*', 1),
  reading('code', 'denied', 0),
];

/** The outcome of a goal in one half. */
export interface GoalOutcome {
  readonly goal: Goal;
  readonly half: Row['half'];
  readonly count: number;
  readonly share: number;
  readonly isMet: boolean;
}

const CLASSIFIED: Evidence = { found: true, parentFound: false, pages: () => [], filteringCategories: () => [] };

export interface Judged {
  readonly row: Row;
  readonly verdict: Verdict;
  /** Whether the verdict depends on the contexts of words: without contexts it would differ. */
  readonly isUnsure: boolean;
}

export interface Count {
  readonly name: string;
  readonly expect: Row['expect'];
  readonly count: number;
  readonly denied: number;
  readonly flagged: number;
}

/** Compiles the policy without contexts, so that a word counts at any position. */
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

/** Groupings for counts. In each, action pages and reading pages are counted separately. */
export const GROUPS: Readonly<Record<string, (judged: Judged) => string>> = {
  category: ({ row }) => row.category,
  language: ({ row }) => row.language || 'not said',
  rule: ({ verdict }) => `${verdict.layer}/${verdict.id}`,
};

/** Returns counts by group, action pages first, larger groups first. The totals of all action pages and all reading pages precede them. */
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

/** Returns the action pages that are not denied and the reading pages that are not allowed. */
export function misses(judged: readonly Judged[]): Judged[] {
  return judged.filter(
    ({ row, verdict }) => (row.expect === 'deny') !== (verdict.verdict === 'deny') || isFlagged(row, verdict),
  );
}

function isFlagged(row: Row, verdict: Verdict): boolean {
  return row.expect === 'allow' && verdict.verdict === 'flag';
}

/** Returns the outcomes of a set's goals for each half. */
export function outcomes(set: SetName, judged: readonly Judged[]): GoalOutcome[] {
  return (['develop', 'report'] as const).flatMap((half) => {
    const counts = countBy(
      judged.filter(({ row }) => row.half === half),
      GROUPS['category']!,
    );
    return GOALS.filter((goal) => goal.set === set).flatMap((goal) => {
      const found = counts.find(({ name, expect }) => name === goal.name && expect === goal.expect);
      if (found === undefined) return [];
      const share = found[goal.verdict] / found.count;
      const isMet = goal.expect === 'deny' ? share >= goal.share : share <= goal.share;
      return [{ goal, half, count: found.count, share, isMet }];
    });
  });
}

/** Returns a readable name of a goal. */
export function nameOf({ set, expect, name, verdict }: Goal): string {
  const what = expect === 'allow' ? 'reading pages' : name === '*' ? 'all acts' : name;
  return `${set}, ${what} ${verdict}`;
}
