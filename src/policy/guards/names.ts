/** What a host name itself gives away: local names, look-alikes, data carried in labels. */
import { domainToASCII, domainToUnicode } from 'node:url';

/** Whether a host is a single label or ends in one of the suffixes. `suffixes` is by last label. */
export function isSpecialName(
  host: string,
  singleLabel: boolean,
  suffixes: ReadonlyMap<string, readonly string[]>,
): boolean {
  const dot = host.lastIndexOf('.');
  if (dot < 0) return singleLabel;
  const candidates = suffixes.get(host.slice(dot + 1));
  return candidates?.some((suffix) => host === suffix || host.endsWith(`.${suffix}`)) ?? false;
}

/** Suffixes by their last label. */
export function bySuffix(suffixes: readonly string[]): Map<string, string[]> {
  const map = new Map<string, string[]>();
  for (const suffix of suffixes) {
    const last = suffix.slice(suffix.lastIndexOf('.') + 1);
    map.set(last, [...(map.get(last) ?? []), suffix]);
  }
  return map;
}

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

const SCRIPTS = [
  ['Latin', /\p{Script=Latin}/u],
  ['Cyrillic', /\p{Script=Cyrillic}/u],
  ['Greek', /\p{Script=Greek}/u],
  ['Armenian', /\p{Script=Armenian}/u],
  ['Georgian', /\p{Script=Georgian}/u],
  ['Hebrew', /\p{Script=Hebrew}/u],
  ['Arabic', /\p{Script=Arabic}/u],
  ['Han', /\p{Script=Han}/u],
  ['Hiragana', /\p{Script=Hiragana}/u],
  ['Katakana', /\p{Script=Katakana}/u],
  ['Hangul', /\p{Script=Hangul}/u],
  ['Bopomofo', /\p{Script=Bopomofo}/u],
  ['Thai', /\p{Script=Thai}/u],
  ['Devanagari', /\p{Script=Devanagari}/u],
  ['Cherokee', /\p{Script=Cherokee}/u],
] as const;

/** Scripts that are written together. */
const TOGETHER: readonly (readonly string[])[] = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Hangul'],
  ['Latin', 'Han', 'Bopomofo'],
];

/** Letters of other scripts that look like Latin ones. */
const LOOKS_LATIN = /^[аеорсхуіјѕһԁԛԝӏԍьвмнктгпɑοανρτυωικεζηχγ0-9-]+$/u;

/** Latin letters of phonetic writing that look like plain ones: no language has a word with them. */
const LOOKS_PLAIN = /[\u0251\u0261\u026a\u0274\u0280\u028f\u0299\u029c\u029f\u1d00-\u1d22]/;

/** Whether a label mixes scripts that are not written together, or looks Latin and is not, or plain and is not. */
export function isConfusableIdn(host: string): boolean {
  if (!host.includes('xn--')) return false;
  const topIsLatin = !host.startsWith('xn--', host.lastIndexOf('.') + 1);
  return host.split('.').some((label) => {
    if (!label.startsWith('xn--')) return false;
    const text = domainToUnicode(label);
    const scripts = SCRIPTS.filter(([, pattern]) => pattern.test(text)).map(([name]) => name);
    if (LOOKS_PLAIN.test(text)) return true;
    if (scripts.length > 1) return !TOGETHER.some((set) => scripts.every((script) => set.includes(script)));
    return topIsLatin && LOOKS_LATIN.test(text);
  });
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
