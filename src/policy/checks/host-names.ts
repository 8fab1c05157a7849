/** What a host name gives away: a disallowed spelling, an address in its labels, data carried in its labels. */
import { domainToASCII, domainToUnicode } from 'node:url';
import { type HostAddress, readAddress } from '../ip-ranges.ts';

// Letters, marks, digits, and the few signs that the standards allow between them (middle dots, joiners, geresh).
const OUTSIDE_IDN = /[^\p{L}\p{M}\p{Nd}_\u002d\u00b7\u0375\u05f3\u05f4\u30fb\u30fc]/u;
const JOINERS = /\u200c|\u200d/g;

/** Whether a label starts with `xn--` and decodes to nothing, to something else, or to what is no letter, digit or mark. */
export function isInvalidIdn(host: string): boolean {
  if (!host.includes('xn--')) return false;
  return host.split('.').some((label) => {
    if (!label.startsWith('xn--')) return false;
    const text = domainToUnicode(label);
    return (
      text === '' ||
      text.startsWith('xn--') ||
      domainToASCII(text) !== label ||
      OUTSIDE_IDN.test(text.replace(JOINERS, ''))
    );
  });
}

/** Four numbers between dots or hyphens, apart from other letters and digits; of five, the first four and the last four. */
const SPELLED = /(?<![a-z0-9])(?=([0-9]{1,3})[.-]([0-9]{1,3})[.-]([0-9]{1,3})[.-]([0-9]{1,3})(?![a-z0-9]))/g;
/** Such a name has no more of them. */
const SPELLED_MAX = 16;

/** The IPv4 addresses that the labels of a name spell (`10-0-0-1.example.org`). */
export function spelledAddresses(host: string): HostAddress[] {
  const found: HostAddress[] = [];
  // To go through all of them takes ten times as long, and hardly any name has one.
  if (host.search(SPELLED) < 0) return found;
  for (const [, ...numbers] of host.matchAll(SPELLED)) {
    const address = readAddress(numbers.map(Number).join('.'));
    if (address !== undefined) found.push(address);
    if (found.length === SPELLED_MAX) break;
  }
  return found;
}

export interface TunnelLimits {
  /** Letters and digits in a row that no person would choose as a name. */
  readonly minRun: number;
  /** How many of them must be digits. */
  readonly minRunDigits: number;
  /** Characters of all labels but the last two together. */
  readonly maxSubdomainLength: number;
}

/** Whether labels look like encoded data. */
export function isTunnelName(host: string, limits: TunnelLimits): boolean {
  const second = host.lastIndexOf('.', host.lastIndexOf('.') - 1);
  if (second > limits.maxSubdomainLength) return true;
  if (host.length < limits.minRun) return false;
  let run = 0;
  let digits = 0;
  for (let at = 0; at < host.length; at++) {
    const code = host.charCodeAt(at);
    const isDigit = code >= 0x30 && code <= 0x39;
    if (!isDigit && (code < 0x61 || code > 0x7a)) {
      run = 0;
      digits = 0;
      continue;
    }
    run++;
    if (isDigit) digits++;
    if (run >= limits.minRun && digits >= limits.minRunDigits) return true;
  }
  return false;
}
