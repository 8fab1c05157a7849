/** The tables of `docs/evaluation.md`: how the shipped rules judge the sets of `make eval`. */
import type { Policy } from '../../src/policy/policy.ts';
import { readRows, SETS, type SetName } from '../eval/labelled-urls.ts';
import { type Judged, judge, nameOf, outcomes } from '../eval/score.ts';
import { code, markdownTable } from './markdown.ts';

/** Every URL of every set with its verdict. */
export type JudgedSets = ReadonlyMap<SetName, readonly Judged[]>;

export const judgeSets = (policy: Policy): JudgedSets =>
  new Map((Object.keys(SETS) as SetName[]).map((set) => [set, judge(policy, readRows(set).rows)]));

/** Purpose of a page → the categories of the sets that belong to it. All other categories are listed as `others`. */
const ACTS: Readonly<Record<string, string>> = {
  'sign in': 'login webmail',
  'grant an authorization': 'oauth_authorize oauth',
  'change a password': 'change_password password password_reset',
  'make an account': 'signup',
  'delete an account, or get one back': 'account_delete account_recovery',
  'look after an account, its settings, its tokens': 'account settings token',
  'run a site or a cloud': 'admin console cloud',
  'pay, order, fill a cart': 'checkout cart transfer',
  'book, reserve, bid': 'booking book bidding bid',
  'publish, comment, vote, upload': 'post posting comment wiki_edit voting upload',
  'delete, confirm, sign out by a GET': 'delete deleting action confirm logout',
  'join or leave a mailing list': 'subscribe unsubscribe',
};
const READING: Readonly<Record<string, string>> = {
  'documentation, packages, source code': 'docs api package registry file source forge tech license',
  'pages about a company or a program':
    'homepage about careers contact legal pricing status brand product section site press robots bot_info security',
  'news, articles, media': 'article news blog feed media archive podcasts',
  'help, forums, encyclopedias': 'help forum community wiki',
  'schools and public bodies': 'gov government university academic education',
  'what searches find, and what texts cite': 'page citation misc',
};

const HALVES = ['develop', 'report'] as const;
const count = (pages: readonly Judged[], verdict: string): number =>
  pages.filter((page) => page.verdict.verdict === verdict).length;
const shareOf = (pages: readonly Judged[], verdict: string, digits: number): string =>
  pages.length === 0 ? '' : `${((count(pages, verdict) / pages.length) * 100).toFixed(digits)} %`;
const cellsOf = (pages: readonly Judged[], digits: number): string[] => [
  pages.length === 0 ? '' : pages.length.toLocaleString('en-US'),
  shareOf(pages, 'deny', digits),
  shareOf(pages, 'flag', digits),
];
const actsOf = (pages: readonly Judged[]): Judged[] => pages.filter(({ row }) => row.expect === 'deny');
const readingOf = (pages: readonly Judged[]): Judged[] => pages.filter(({ row }) => row.expect === 'allow');

/** Returns a row for each kind, the largest first, and the rest at the end. */
function kindRows(pages: readonly Judged[], kinds: Readonly<Record<string, string>>, digits: number): string[][] {
  const kindOf = new Map(
    Object.entries(kinds).flatMap(([kind, names]) => names.split(' ').map((name) => [name, kind] as const)),
  );
  const groups = Map.groupBy(pages, ({ row }) => kindOf.get(row.category) ?? 'others');
  const rank = (kind: string): number => (kind === 'others' ? 0 : (groups.get(kind)?.length ?? 0));
  return [...groups].sort(([a], [b]) => rank(b) - rank(a)).map(([kind, some]) => [kind, ...cellsOf(some, digits)]);
}

/** Returns the functions that render the tables, by table name. */
export const evaluationTables = (sets: JudgedSets): Readonly<Record<string, () => string>> => ({
  sets: () =>
    markdownTable([
      ['set, half', 'acts', 'denied', 'flagged', 'reading pages', 'denied', 'flagged'],
      ...[...sets].flatMap(([set, pages]) =>
        HALVES.map((name) => {
          const half = pages.filter(({ row }) => row.half === name);
          return [`${code(set)}, ${name}`, ...cellsOf(actsOf(half), 1), ...cellsOf(readingOf(half), 2)];
        }),
      ),
    ]),
  acts: () =>
    markdownTable([['to …', 'URLs', 'denied', 'flagged'], ...kindRows(actsOf([...sets.values()].flat()), ACTS, 1)]),
  reading: () =>
    markdownTable([
      ['reading pages', 'URLs', 'denied', 'flagged'],
      ...kindRows(readingOf([...sets.values()].flat()), READING, 2),
    ]),
  goals: () => {
    const reached = [...sets].flatMap(([set, pages]) => outcomes(set, pages));
    const unmet = reached.filter(({ isMet }) => !isMet);
    const rows = unmet.map(({ goal, half, count: pages, share }) => [
      `${nameOf(goal)}, ${half}`,
      pages.toLocaleString('en-US'),
      `at ${goal.expect === 'deny' ? 'least' : 'most'} ${(goal.share * 100).toFixed(2)} %`,
      `${(share * 100).toFixed(2)} %`,
    ]);
    const met = `${reached.length - unmet.length} of ${reached.length} goals are met.`;
    if (unmet.length === 0) return met;
    return `${met} Those that are not:\n\n${markdownTable([['goal, half', 'URLs', 'wanted', 'reached'], ...rows])}`;
  },
});
