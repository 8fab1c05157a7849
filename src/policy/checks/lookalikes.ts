/** International names that look like other ones, by Unicode's own data. */
import { domainToUnicode } from 'node:url';
import { BoundedCache } from '../../bounded-cache.ts';
import { registrableDomain } from '../../domain/public-suffix.ts';
import type { HostEntry, LookalikeData } from '../documents.ts';
import { readPolicyHost } from '../url/host-map.ts';

/** Scripts that names are written in. Letters of any other one count as one script more. */
const SCRIPTS = (
  'Latin Cyrillic Greek Armenian Georgian Hebrew Arabic Han Hiragana Katakana Hangul Bopomofo Thai Lao Khmer Myanmar Devanagari ' +
  'Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Tibetan Ethiopic Thaana'
)
  .split(' ')
  .map((name) => [name, new RegExp(`\\p{Script=${name}}`, 'u')] as const);

/** Scripts that are written together. */
const TOGETHER: readonly (readonly string[])[] = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Hangul'],
  ['Latin', 'Han', 'Bopomofo'],
];

/** Latin letters that languages have although they look like two others, or like one. */
const OWN_LETTERS = /^[þæœ]$/;

/** Country domains below which a whole label of another script that looks Latin is at home. */
const AT_HOME = /\.(?:ba|bg|by|kg|kz|md|me|mk|mn|rs|ru|su|tj|ua|uz|gr|cy|am|ge)$/;

/** Names of fewer characters look like too many others. */
const NAME_MIN_LENGTH = 4;

/** Whether an international name imitates one that is worth imitating. */
export class LookalikeNames {
  /** Character → what it looks like. */
  readonly #looks = new Map<string, string>();
  /** First and last code points of Latin, Greek and Cyrillic letters that identifiers may have, one range behind the other. */
  readonly #allowed: readonly number[];
  /** How the names look that are worth imitating. */
  readonly #names = new Set<string>();

  /** `groups`: of the host entries those whose names are worth imitating. */
  constructor({ confusables, allowed }: LookalikeData, hosts: readonly HostEntry[], groups: readonly string[]) {
    for (const [look, characters] of Object.entries(confusables)) {
      for (const character of characters) this.#looks.set(character, look);
    }
    this.#allowed = allowed.split(' ').flatMap((range) => {
      const [first = '', last = first] = range.split('-');
      return [Number.parseInt(first, 16), Number.parseInt(last, 16)];
    });
    for (const entry of hosts) {
      const host = groups.includes(entry.group ?? '') ? readPolicyHost(entry.host)?.host : undefined;
      const name = host === undefined ? undefined : registrableDomain(host)?.split('.', 1)[0];
      if (name !== undefined && name.length >= NAME_MIN_LENGTH) this.#names.add(this.#lookOf(name));
    }
  }

  /** Whether a label of a host mixes scripts, has a letter that imitates another, or looks Latin and is not. */
  isLookalike(host: string): boolean {
    if (!host.includes('xn--')) return false;
    const isTopLatin = !host.startsWith('xn--', host.lastIndexOf('.') + 1) && !AT_HOME.test(host);
    return host
      .split('.')
      .some((label) => label.startsWith('xn--') && this.#isImitation(domainToUnicode(label), isTopLatin, host));
  }

  #isImitation(text: string, isTopLatin: boolean, host: string): boolean {
    const scripts = scriptsOf(text);
    if (scripts.length > 1 && !TOGETHER.some((set) => scripts.every((script) => set.includes(script)))) return true;
    const look = this.#lookOf(text);
    if (this.#names.has(look)) return true;
    if (scripts.length === 1 && scripts[0] !== 'Latin')
      return isTopLatin && /^[a-z0-9-]+$/.test(look) && !/^[0-9-]+$/.test(look);
    return (
      [...text].some((character) => this.#isImitationOf(character)) || (text.includes('ı') && !isTurkish(text, host))
    );
  }

  /** Whether a character is a Latin letter that no language should have in a name, or that looks like a plain one. */
  #isImitationOf(character: string): boolean {
    if (character <= '\x7f' || !/\p{Script=Latin}/u.test(character) || OWN_LETTERS.test(character)) return false;
    if (character === 'ı') return false;
    return this.#looks.has(character) || !this.#isAllowed(character.codePointAt(0)!);
  }

  #isAllowed(code: number): boolean {
    for (let at = 0; at < this.#allowed.length; at += 2) {
      if (code >= this.#allowed[at]! && code <= this.#allowed[at + 1]!) return true;
    }
    return false;
  }

  /** A text as it looks; what looks like nothing else stays. */
  #lookOf(text: string): string {
    let look = '';
    for (const character of text) look += this.#looks.get(character) ?? character;
    return look;
  }
}

/** The scripts of a text; letters of any that is not in {@link SCRIPTS} are `other`. */
function scriptsOf(text: string): string[] {
  const found = new Set<string>();
  for (const character of text) if (character > '\x7f' || /[a-z]/i.test(character)) found.add(scriptOf(character));
  found.delete('');
  return [...found];
}

const CHARACTERS_MAX = 8_192;
/** Character → its script; there are few in use. */
const scripts = new BoundedCache<string, string>(CHARACTERS_MAX);

/** The script of a character; empty for those that no script has for itself. */
function scriptOf(character: string): string {
  return scripts.get(character) ?? scripts.keep(character, lookUpScript(character));
}

function lookUpScript(character: string): string {
  const isOther = /\p{L}/u.test(character) && !/\p{Script=Common}/u.test(character);
  return SCRIPTS.find(([, pattern]) => pattern.test(character))?.[0] ?? (isOther ? 'other' : '');
}

/** Whether a dotless ı stands as in Turkish: beside its other letters, or in the harmony of its vowels, and never beside q, w or x. */
function isTurkish(text: string, host: string): boolean {
  if (/\.(?:tr|az)$/.test(host)) return true;
  if (/[qwx]/.test(text)) return false;
  if (/[ğşçöüə]/.test(text)) return true;
  const vowels = text.replace(/[^aeıioöuü]/g, '');
  return /[ao]/.test(vowels) && !/[ei]/.test(vowels);
}
