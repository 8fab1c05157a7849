/** Finds the accounts that have used most of their quota, for health. The list is bounded, however many accounts there are. */

export interface NearLimit {
  /** The account's name. */
  readonly account: string;
  /** Lookups used in the current cycle. */
  readonly used: number;
  /** Lookups of a cycle. */
  readonly limit: number;
}

/** The share of its quota from which on an account is reported. */
const SHARE_MIN = 0.8;
const ACCOUNTS_MAX = 100;

const shareOf = ({ used, limit }: NearLimit): number => used / limit;

/** Returns the accounts that have used at least 80 % of their limit, the largest share first, at most 100. */
export function nearLimits(accounts: Iterable<NearLimit>): NearLimit[] {
  const near: NearLimit[] = [];
  for (const account of accounts) if (account.limit > 0 && shareOf(account) >= SHARE_MIN) near.push(account);
  return near.sort((a, b) => shareOf(b) - shareOf(a)).slice(0, ACCOUNTS_MAX);
}
