/** What an address exception of the licensee's opens: which guard rules let its addresses past, and how wide it is. */
import type { RuleEntry } from './documents.ts';
import { isRangeInRange, type Range, readRange } from './ip-ranges.ts';

/** What a person may not think of who reads a range. */
const KNOWN_ADDRESSES: readonly (readonly [string, readonly Range[]])[] = [
  ['loopback addresses', ['127.0.0.0/8', '::1'].map(readRange)],
  ['link-local addresses', ['169.254.0.0/16', 'fe80::/10'].map(readRange)],
  ['cloud metadata (169.254.169.254)', ['169.254.169.254'].map(readRange)],
];

/** IPv4 in the bits of a range, which count from IPv6's first. */
const IPV4_START = 96;
/** Ranges with as many fixed bits or fewer are very wide. */
const WIDE_BITS = { 4: IPV4_START + 8, 6: 32 } as const;

interface ExceptionEffect {
  /** Ids of the guard rules that do not hold for some or all of its addresses. */
  readonly rules: readonly string[];
  /** Whether a rule that excuses nothing denies all of them, so that none is let past. */
  readonly isFixed: boolean;
}

/** What an exception changes. @throws PagegateError policy_invalid, for a range that is not valid */
export function exceptionEffect(cidr: string, rules: readonly RuleEntry[]): ExceptionEffect {
  const range = readRange(cidr);
  const guards = rules.filter(({ check }) => check === 'address');
  const any = ({ ranges = [] }: RuleEntry, holds: (own: Range) => boolean): boolean =>
    ranges.some((text) => holds(readRange(text)));
  return {
    rules: guards
      .filter((rule) => rule.excusable === true && any(rule, (own) => overlap(own, range)))
      .map(({ id }) => id),
    isFixed: guards.some((rule) => rule.excusable !== true && any(rule, (own) => isRangeInRange(own, range))),
  };
}

/** What is remarkable about a range, in words; empty for most. @throws PagegateError policy_invalid, for a range that is not valid */
export function rangeRemarks(cidr: string): string[] {
  const range = readRange(cidr);
  const known = KNOWN_ADDRESSES.filter(([, ranges]) => ranges.some((own) => overlap(own, range)));
  const included = known.map(([name]) => name).join(', ');
  return [
    ...(range.bits <= WIDE_BITS[range.family] ? ['a very wide range'] : []),
    ...(included === '' ? [] : [`includes ${included}`]),
  ];
}

function overlap(one: Range, other: Range): boolean {
  return isRangeInRange(one, other) || isRangeInRange(other, one);
}
