/** Checks of a host name: a disallowed spelling, an address in its labels, data in its labels. */
import { domainToASCII, domainToUnicode } from 'node:url';
import { type HostAddress, readAddress } from '../ip-ranges.ts';

// Letters, marks, digits, and the few signs that the standards allow between them (middle dots, joiners, geresh).
const OUTSIDE_IDN = /[^\p{L}\p{M}\p{Nd}_\u002d\u00b7\u0375\u05f3\u05f4\u30fb\u30fc]/u;
const JOINERS = /\u200c|\u200d/g;

/** A label of an internationalized name that starts with `xn--`. */
export interface EncodedLabel {
  readonly label: string;
  /** The label in Unicode; empty if it is not valid. */
  readonly text: string;
}

/** Returns the labels of a host that start with `xn--`. */
export function encodedLabels(host: string): readonly EncodedLabel[] {
  const labels = host.split('.').filter((label) => label.startsWith('xn--'));
  return labels.map((label) => ({ label, text: domainToUnicode(label) }));
}

/** Whether a label fails to decode, does not encode back to itself, or contains a character that IDNs do not allow. */
export function isInvalidIdn(labels: readonly EncodedLabel[]): boolean {
  return labels.some(
    ({ label, text }) =>
      text === '' ||
      text.startsWith('xn--') ||
      domainToASCII(text) !== label ||
      OUTSIDE_IDN.test(text.replace(JOINERS, '')),
  );
}

/** Four numbers separated by dots or hyphens, not adjacent to other letters or digits. Matches overlap: five numbers contain two addresses. */
const SPELLED = /(?<![a-z0-9])(?=([0-9]{1,3})[.-]([0-9]{1,3})[.-]([0-9]{1,3})[.-]([0-9]{1,3})(?![a-z0-9]))/g;
/** The maximum number of addresses that are read from a name. */
const SPELLED_MAX = 16;

/** Returns the IPv4 addresses that the labels of a name spell (`10-0-0-1.example.org`). */
export function spelledAddresses(host: string): HostAddress[] {
  const found: HostAddress[] = [];
  // `matchAll` takes ten times as long, and hardly any name has a match.
  if (host.search(SPELLED) < 0) return found;
  for (const [, ...numbers] of host.matchAll(SPELLED)) {
    const address = readAddress(numbers.map(Number).join('.'));
    if (address !== undefined) found.push(address);
    if (found.length === SPELLED_MAX) break;
  }
  return found;
}

export interface TunnelLimits {
  /** Minimum length of a run of letters and digits that no person would choose as a name. */
  readonly minRun: number;
  /** Minimum number of digits in such a run. */
  readonly minRunDigits: number;
  /** Maximum length of all labels except the last two, with the dots between them. */
  readonly maxSubdomainLength: number;
}

/** Whether the labels of a host look like encoded data. */
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
