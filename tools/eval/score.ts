/** How the rules alone judge labelled URLs: as on a classified domain without a single verified page. */
import { evaluate } from '../../src/policy/evaluate.ts';
import type { Policy } from '../../src/policy/policy.ts';
import type { Evidence, Verdict } from '../../src/policy/types.ts';
import type { LabelledUrl } from './labelled.ts';

/** What a person does there: to be denied. Account deletion stands apart, because many of its pages are help articles. */
export const PURPOSE_TYPES = [
  'login',
  'oauth_authorize',
  'change_password',
  'account_recovery',
  'checkout',
  'upload',
  'account_delete',
];
/** The types with a goal: nine in ten denied. */
export const GOAL_TYPES = ['login', 'oauth_authorize', 'change_password'];
/** Reading matter: to be left alone. */
export const READING_TYPES = ['docs', 'blog', 'legal', 'careers', 'about', 'contact', 'pricing', 'status'];

const GOALS = { min_denied: 0.9, max_reading_denied: 0.01, max_reading_flagged: 0.03 } as const;
/** Fewer pages of a type than these are too few to hold a goal against: one miss more or less would decide. */
export const COUNT_MIN = 50;

const CLASSIFIED: Evidence = { found: true, parentFound: false, pages: () => [], filteringCategories: () => [] };

export interface Judged {
  readonly row: LabelledUrl;
  readonly verdict: Verdict;
}

export interface TypeScore {
  readonly type: string;
  readonly count: number;
  readonly denied: number;
  readonly flagged: number;
  readonly allowed: number;
}

export interface Score {
  readonly types: readonly TypeScore[];
  readonly reading: TypeScore;
  /** Judged otherwise than the label asks for, by type. */
  readonly misses: readonly Judged[];
}

export function score(policy: Policy, rows: readonly LabelledUrl[]): Score {
  const judged = rows.map((row) => ({
    row,
    verdict: evaluate(policy, { url: row.target.url, method: 'GET' }, CLASSIFIED),
  }));
  const types = [...PURPOSE_TYPES, ...READING_TYPES].map((type) =>
    count(
      type,
      judged.filter(({ row }) => row.type === type),
    ),
  );
  const reading = judged.filter(({ row }) => READING_TYPES.includes(row.type));
  return {
    types,
    reading: count('all reading pages', reading),
    misses: judged.filter(({ row, verdict }) => (verdict.verdict === 'allow') !== READING_TYPES.includes(row.type)),
  };
}

function count(type: string, judged: readonly Judged[]): TypeScore {
  const number = (name: string): number => judged.filter(({ verdict }) => verdict.verdict === name).length;
  return { type, count: judged.length, denied: number('deny'), flagged: number('flag'), allowed: number('allow') };
}

/** The goals that a score does not reach, each as a sentence. */
export function unmetGoals(result: Score): string[] {
  const unmet: string[] = [];
  const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;
  for (const { type, count: total, denied } of result.types) {
    if (GOAL_TYPES.includes(type) && total >= COUNT_MIN && denied < total * GOALS.min_denied) {
      unmet.push(`${type}: ${percent(denied / total)} denied, goal at least ${percent(GOALS.min_denied)}`);
    }
  }
  const { count: total, denied, flagged } = result.reading;
  if (denied > total * GOALS.max_reading_denied) {
    unmet.push(`reading pages: ${percent(denied / total)} denied, goal at most ${percent(GOALS.max_reading_denied)}`);
  }
  if (flagged > total * GOALS.max_reading_flagged) {
    unmet.push(
      `reading pages: ${percent(flagged / total)} flagged, goal at most ${percent(GOALS.max_reading_flagged)}`,
    );
  }
  return unmet;
}
