/** Detects internationalized names that look like other names, using Unicode's data of confusable characters. */
import { BoundedCache } from '../../bounded-cache.ts';
import { registrableDomain } from '../../domain/public-suffix.ts';
import type { HostEntry, LookalikeData } from '../documents.ts';
import { readPolicyHost } from '../url/host-map.ts';
import type { EncodedLabel } from './host-names.ts';

/** Scripts of names. All letters of other scripts count as one more script. */
const SCRIPTS = (
  'Latin Cyrillic Greek Armenian Georgian Hebrew Arabic Han Hiragana Katakana Hangul Bopomofo Thai Lao Khmer Myanmar Devanagari ' +
  'Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Tibetan Ethiopic Thaana'
)
  .split(' ')
  .map((name) => [name, new RegExp(`\\p{Script=${name}}`, 'u')] as const);

/** Sets of scripts that languages mix. */
const TOGETHER: readonly (readonly string[])[] = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Hangul'],
  ['Latin', 'Han', 'Bopomofo'],
];

/** Latin letters of real languages that look like one or two other letters. */
const LANGUAGE_LETTERS = /^[þæœ]$/;

/** Country domains where a label in another script that looks Latin is normal. */
const OTHER_SCRIPT_DOMAINS = /\.(?:ba|bg|by|kg|kz|md|me|mk|mn|rs|ru|su|tj|ua|uz|gr|cy|am|ge)$/;

/** Shorter names look like too many others. */
const NAME_MIN_LENGTH = 4;

/** Detects internationalized names that imitate a name of certain host entries, or plain Latin letters. */
export class LookalikeNames {
  /** Character → the ASCII characters that it looks like. */
  readonly #looks = new Map<string, string>();
  /** Code points of Latin, Greek and Cyrillic letters that identifiers may contain, as pairs of first and last. */
  readonly #allowed: readonly number[];
  /** The imitated names, in the form of {@link #lookOf}. */
  readonly #names = new Set<string>();

  /** @param groups groups of the host entries whose names attackers imitate */
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

  /**
   * Whether a label of a host mixes scripts, looks like an imitated name, contains a letter that imitates another, or looks Latin but is not.
   * @param labels the labels that are in another script
   */
  isLookalike(host: string, labels: readonly EncodedLabel[]): boolean {
    if (labels.length === 0) return false;
    const isTopLatin = !host.startsWith('xn--', host.lastIndexOf('.') + 1) && !OTHER_SCRIPT_DOMAINS.test(host);
    return labels.some(({ text }) => this.#isImitation(text, isTopLatin, host));
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

  /** Whether a character is a Latin letter that identifiers must not contain, or that looks like a plain one. */
  #isImitationOf(character: string): boolean {
    if (character <= '\x7f' || !/\p{Script=Latin}/u.test(character) || LANGUAGE_LETTERS.test(character)) return false;
    if (character === 'ı') return false;
    return this.#looks.has(character) || !this.#isAllowed(character.codePointAt(0)!);
  }

  #isAllowed(code: number): boolean {
    for (let at = 0; at < this.#allowed.length; at += 2) {
      if (code >= this.#allowed[at]! && code <= this.#allowed[at + 1]!) return true;
    }
    return false;
  }

  /** Replaces each character by the one it looks like. Other characters stay. */
  #lookOf(text: string): string {
    let look = '';
    for (const character of text) look += this.#looks.get(character) ?? character;
    return look;
  }
}

/** Returns the scripts of a text. Scripts that are not in {@link SCRIPTS} are `other`. */
function scriptsOf(text: string): string[] {
  const found = new Set<string>();
  for (const character of text) if (character > '\x7f' || /[a-z]/i.test(character)) found.add(scriptOf(character));
  found.delete('');
  return [...found];
}

const CHARACTERS_MAX = 8_192;
/** Character → its script. Few different characters are in use. */
const scripts = new BoundedCache<string, string>(CHARACTERS_MAX);

/** Returns the script of a character; empty if it belongs to no particular script. */
function scriptOf(character: string): string {
  return scripts.get(character) ?? scripts.keep(character, lookUpScript(character));
}

function lookUpScript(character: string): string {
  const isOther = /\p{L}/u.test(character) && !/\p{Script=Common}/u.test(character);
  return SCRIPTS.find(([, pattern]) => pattern.test(character))?.[0] ?? (isOther ? 'other' : '');
}

/**
 * Whether a dotless ı can be Turkish or Azerbaijani: always under their country domains. Elsewhere, only with other Turkish letters or with
 * back vowels alone (vowel harmony), and never in a text with q, w or x.
 */
function isTurkish(text: string, host: string): boolean {
  if (/\.(?:tr|az)$/.test(host)) return true;
  if (/[qwx]/.test(text)) return false;
  if (/[ğşçöüə]/.test(text)) return true;
  const vowels = text.replace(/[^aeıioöuü]/g, '');
  return /[ao]/.test(vowels) && !/[ei]/.test(vowels);
}
