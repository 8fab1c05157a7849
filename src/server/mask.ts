/**
 * What of a URL may be written down: parts that may be a secret, or name a person, are replaced by `***`. A secret that is missed lies
 * in a file for long, a word masked needlessly costs little; so in doubt a part is masked.
 */
import { METHODS } from 'node:http';
import { decodeOnce } from '../domain/canonical-url.ts';
import { registrableDomain } from '../domain/public-suffix.ts';
import type { Policy } from '../policy/policy.ts';
import { SecretScanner } from '../policy/secrets.ts';

const MASK = '***';
/** Longer paths are cut: a line is a record, not an archive. */
const PATH_MAX_LENGTH = 1_024;
/** Longer segments are no names, not even in a script whose letters take nine characters each when they are escaped. */
const SEGMENT_MAX_LENGTH = 1_024;
/** Nothing of this form is ever masked. */
const SHORT_WORD = /^[a-z]{0,9}$/;
/** Nobody encodes so often but to hide something. */
const DECODINGS_MAX = 8;
/** Letters and digits in a row that make a label of a host look like a token. */
const LABEL_RUN_MIN = 16;
/** No scheme in use is longer. */
const SCHEME_MAX_LENGTH = 20;

/** What a policy knows of secrets and methods, for {@link methodToLog} and {@link hasKnownSecret}. */
interface Knowledge {
  readonly scanners: readonly SecretScanner[];
  readonly methods: ReadonlySet<unknown>;
}

const knowledge = new WeakMap<Policy, Knowledge>();

function knowledgeOf(policy: Policy): Knowledge {
  let known = knowledge.get(policy);
  if (known === undefined) {
    const { rules } = policy.document;
    known = {
      scanners: rules.flatMap(({ check, tokens }) => (check === 'secret' ? [new SecretScanner(tokens ?? [])] : [])),
      methods: new Set<unknown>([
        ...METHODS,
        ...rules.flatMap(({ check, allowed = [], methods = [] }) => [
          ...(check === 'method' ? allowed : []),
          ...methods,
        ]),
      ]),
    };
    knowledge.set(policy, known);
  }
  return known;
}

/** Whether the policy's rules for secrets know a credential in the text, whichever layer decided about it. */
export function hasKnownSecret(text: string, policy: Policy): boolean {
  return knowledgeOf(policy).scanners.some((scanner) => scanner.find(text) !== undefined);
}

/** The method where Node.js or the policy knows it, else `other`: any token can be sent as one. */
export function methodToLog(method: string, policy: Policy): string {
  return knowledgeOf(policy).methods.has(method) ? method : 'other';
}

/** A scheme; one that nobody uses can be made of a secret. */
export function maskScheme(scheme: string): string {
  return scheme.length > SCHEME_MAX_LENGTH || isTokenLike(scheme) ? MASK : scheme;
}

/** The path with all escapes decoded; undefined where there are too many levels of them. */
export function fullyDecoded(path: string): string | undefined {
  let text = path;
  for (let i = 0; i < DECODINGS_MAX; i++) {
    const decoded = decodeOnce(text);
    // Wide forms of digits and letters are the same digits and letters to a reader.
    if (decoded === text) return text.normalize('NFKC');
    text = decoded;
  }
  return undefined;
}

/** The path with every segment that may be a secret or name a person replaced; path parameters (after `;` or `,`) are always left out. */
export function maskPath(path: string): string {
  let masked = '';
  // What is cut off need not be looked at.
  for (let at = 0; at <= path.length && masked.length <= PATH_MAX_LENGTH; ) {
    const slash = path.indexOf('/', at);
    const end = slash === -1 ? path.length : slash;
    masked += at === 0 ? maskSegment(path.slice(at, end)) : `/${maskSegment(path.slice(at, end))}`;
    at = end + 1;
  }
  return masked.length > PATH_MAX_LENGTH ? `${masked.slice(0, PATH_MAX_LENGTH)}…` : masked;
}

/** The path with every segment replaced. */
export function maskWholePath(path: string): string {
  return maskPath(path.replaceAll(/[^/]+/g, MASK));
}

function maskSegment(segment: string): string {
  if (SHORT_WORD.test(segment)) return segment;
  if (segment.length > SEGMENT_MAX_LENGTH) return MASK;
  const decoded = fullyDecoded(segment);
  if (decoded === undefined) return MASK;
  const end = decoded.search(/[;,]/);
  const name = end === -1 ? decoded : decoded.slice(0, end);
  // What an escaped slash divides is divided for whoever reads it, too.
  const isSecret = name.split(/[/\\]/).some(isTokenLike);
  if (end === -1) return isSecret ? MASK : segment;
  const at = segment.search(/[;,]/);
  // Behind an escaped semicolon it is not clear where the name ends in the text as it was sent.
  if (isSecret || at === -1) return MASK;
  return `${segment.slice(0, at)}${segment[at]}${MASK}`;
}

/**
 * The host with every label that may be a secret replaced.
 *
 * @param known a name that is in the index, and so no secret: it stays. Empty where there is none.
 * @param isCarrier the policy found data in the labels: all below the registrable domain are replaced.
 */
export function maskHost(host: string, known: string, isCarrier: boolean): string {
  if (host === known || host === '' || host.startsWith('[')) return host;
  const isBelow = known !== '' && host.endsWith(`.${known}`);
  const kept = isBelow ? known : (registrableDomain(host) ?? '');
  const keptLabels = kept === '' ? 0 : kept.split('.').length;
  const labels = host.split('.');
  return labels
    .map((label, at) => {
      const isKept = at >= labels.length - keptLabels;
      if (isKept && isBelow) return label;
      return isTokenLabel(label) || (isCarrier && !isKept) ? MASK : label;
    })
    .join('.');
}

const PERSON_OR_PARAMETER = /[@=]/;
const NUMBER = /^\+?\d[\d ._()-]{6,}$/;
/** As many digits as a payment card has, in groups or not. */
const CARD = /(?<!\d)\d(?:[ ._-]?\d){12,18}(?!\d)/g;
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i;
const HEX_RUN = /^(?=.*[a-f])[0-9a-f]{12,}$/i;
const GROUPED = /^[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){2,}$/;
/** A word that announces a secret, and what it announces. */
const ANNOUNCED =
  /(?:token|secret|passw(?:or)?d|passphrase|pwd|api[-_.]?key|session|sessid|jwt|bearer|credential|signature)[-_.:~](.+)$/i;
const LONG_RUN = /[A-Za-z0-9+_]{40,}/;
const NO_LETTERS_OR_DIGITS = /[^A-Za-z0-9]+/;

/** Whether a text without slashes may be a secret, a number of somebody's or an address. */
function isTokenLike(text: string): boolean {
  if (PERSON_OR_PARAMETER.test(text)) return true;
  if (NUMBER.test(text) || UUID.test(text) || LONG_RUN.test(text) || text.match(CARD)?.some(isCard)) return true;
  if (GROUPED.test(text) && /\d/.test(text) && /[A-Z]/.test(text)) return true;
  const announced = ANNOUNCED.exec(text)?.[1];
  if (announced?.split(NO_LETTERS_OR_DIGITS).some(isValueLike)) return true;
  return text.split(NO_LETTERS_OR_DIGITS).some(isRandomRun);
}

/** Whether digits bear the check digit of payment cards. */
function isCard(text: string): boolean {
  let sum = 0;
  const digits = text.replaceAll(/\D/g, '');
  for (let at = 0; at < digits.length; at++) {
    const digit = Number(digits[digits.length - 1 - at]);
    const weighed = at % 2 === 0 ? digit : digit * 2;
    sum += weighed > 9 ? weighed - 9 : weighed;
  }
  return sum % 10 === 0;
}

/** Names of hosts are full of short mixes (`d1tl82f62uycur.cloudfront.net`), so a label must be longer than a segment to be masked. */
function isTokenLabel(label: string): boolean {
  if (UUID.test(label)) return true;
  return label.split(NO_LETTERS_OR_DIGITS).some((run) => {
    if (run.length < LABEL_RUN_MIN) return false;
    return (run.match(/\d/g)?.length ?? 0) >= 2 || isUnwordly(run);
  });
}

/** After an announcement less is enough. */
function isValueLike(run: string): boolean {
  return run.length >= 6 && ((/\d/.test(run) && /[A-Za-z]/.test(run)) || isUnwordly(run) || run === run.toUpperCase());
}

/** A long mix of letters and digits, or letters that are no words of anybody. */
function isRandomRun(run: string): boolean {
  if (run.length < 10) return false;
  if (HEX_RUN.test(run)) return true;
  if (/\d/.test(run)) return /[a-z]/i.test(run);
  return run.length >= 12 && isUnwordly(run);
}

/** Words of the usual CamelCase have more letters than this on the average. */
const CAMEL_WORD_MIN = 3;
/** Fewer vowels than this share has no language that is written in Latin letters. */
const VOWELS_MIN_SHARE = 0.2;
/** Longer runs of letters are rarely words, not even German ones. */
const WORD_MAX_LENGTH = 32;

/** Whether letters are none that people put together: capitals in the midst of words, hardly a vowel, or far too long. */
function isUnwordly(letters: string): boolean {
  if (letters.length >= WORD_MAX_LENGTH) return true;
  const words = letters.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
  if (words.length >= 4 && letters.length / words.length < CAMEL_WORD_MIN) return true;
  const vowels = letters.match(/[aeiouy]/gi)?.length ?? 0;
  return vowels < letters.length * VOWELS_MIN_SHARE;
}
