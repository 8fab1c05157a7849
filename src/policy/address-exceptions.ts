/** The effect of a licensee's address exception: which guard rules it lifts, and how wide it is. */
import type { RuleEntry } from './documents.ts';
import { isRangeInRange, type Range, readRange } from './ip-ranges.ts';

/** Special addresses that a reader of a range may overlook. */
const KNOWN_ADDRESSES: readonly (readonly [string, readonly Range[]])[] = [
  ['loopback addresses', ['127.0.0.0/8', '::1'].map(readRange)],
  ['link-local addresses', ['169.254.0.0/16', 'fe80::/10'].map(readRange)],
  ['cloud metadata (169.254.169.254)', ['169.254.169.254'].map(readRange)],
];

/** Number of prefix bits before the IPv4 address. `Range.bits` counts from the first bit of IPv6. */
const IPV4_START = 96;
/** Ranges with this many prefix bits or fewer are very wide. */
const WIDE_BITS = { 4: IPV4_START + 8, 6: 32 } as const;

interface ExceptionEffect {
  /** Ids of the guard rules that no longer match some or all of its addresses. */
  readonly rules: readonly string[];
  /** Whether a rule that cannot be excused denies the whole range, so that the exception has no effect. */
  readonly isFixed: boolean;
}

/** Returns the effect of an exception. @throws PagegateError policy_invalid, for a range that is not valid */
export function exceptionEffect(cidr: string, rules: readonly RuleEntry[]): ExceptionEffect {
  const range = readRange(cidr);
  const guards = rules.filter(({ check }) => check === 'address');
  const hasRange = ({ ranges = [] }: RuleEntry, predicate: (ruleRange: Range) => boolean): boolean =>
    ranges.some((text) => predicate(readRange(text)));
  return {
    rules: guards
      .filter((rule) => rule.excusable === true && hasRange(rule, (ruleRange) => overlap(ruleRange, range)))
      .map(({ id }) => id),
    isFixed: guards.some(
      (rule) => rule.excusable !== true && hasRange(rule, (ruleRange) => isRangeInRange(ruleRange, range)),
    ),
  };
}

/** Returns remarks about a range: very wide, or includes special addresses. @throws PagegateError policy_invalid, for a range that is not valid */
export function rangeRemarks(cidr: string): string[] {
  const range = readRange(cidr);
  const known = KNOWN_ADDRESSES.filter(([, ranges]) => ranges.some((special) => overlap(special, range)));
  const included = known.map(([name]) => name).join(', ');
  return [
    ...(range.bits <= WIDE_BITS[range.family] ? ['a very wide range'] : []),
    ...(included === '' ? [] : [`includes ${included}`]),
  ];
}

function overlap(one: Range, other: Range): boolean {
  return isRangeInRange(one, other) || isRangeInRange(other, one);
}
