/** Refuses passwords that are easily guessed despite their length, by the rules of NIST SP 800-63B but without a list of known passwords. */
import { PagegateError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';

export const PASSWORD_MIN_LENGTH = 12;

/** Common sequences: the alphabet, digits, rows and columns of keyboards; each also reversed. */
const ROWS = [
  'abcdefghijklmnopqrstuvwxyz',
  '012345678901234567890',
  'qwertyuiop',
  'qwertzuiop',
  'azertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  'yxcvbnm',
  '1q2w3e4r5t6y7u8i9o0p',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p',
  'qazwsxedcrfvtgbyhnujmikolp',
  'abc123',
  '!@#$%^&*()',
].flatMap((row) => [row, [...row].reverse().join('')]);
/** Minimum length of a run that counts: shorter ones occur in ordinary words. */
const RUN_MIN = 4;
/** Words that attackers try first. */
const WORDS = [
  'pagegate',
  'console',
  'operator',
  'viewer',
  'admin',
  'password',
  'passwort',
  'letmein',
  'welcome',
  'changeme',
  'secret',
  'iloveyou',
];
/** Minimum number of different characters without names, words and runs. */
const LEFT_MIN = 6;

/**
 * Refuses a password that is too short, too long, or easily guessed.
 *
 * @param name of the user who wants to set it
 * @throws PagegateError bad_password
 */
export function checkPassword(password: string, name: string): void {
  const { length } = password;
  if (length < PASSWORD_MIN_LENGTH || length > LIMITS.consolePasswordCharacters.value)
    throw new PagegateError('bad_password', `Got ${length} characters.`);
  const text = password.normalize('NFKC').toLowerCase();
  if (periodOf(text) < PASSWORD_MIN_LENGTH)
    throw new PagegateError('bad_password', 'This one repeats a few characters.');
  if (new Set(withoutRuns(withoutWords(text, name))).size < LEFT_MIN) {
    const what = 'This one is little more than your name, a common word, or characters in a row.';
    throw new PagegateError('bad_password', `${what} A few words that have nothing to do with each other are better.`);
  }
}

/** Returns the length of the part that a text repeats; the length of the text if it does not repeat. */
function periodOf(text: string): number {
  for (let period = 1; period <= text.length / 2; period += 1) if (text.startsWith(text.slice(period))) return period;
  return text.length;
}

function withoutWords(text: string, name: string): string {
  const parts = name.split(/[._@-]+/).filter((part) => part.length >= 3);
  const words = [name, ...parts, ...WORDS].sort((a, b) => b.length - a.length);
  // Replace with a line feed, so that the characters on both sides do not form a run.
  return words.reduce((rest, word) => rest.replaceAll(word, '\n'), text);
}

/** Reduces each run to its first character. */
function withoutRuns(text: string): string {
  let rest = '';
  for (let at = 0; at < text.length; ) {
    rest += text[at];
    const run = runAt(text, at);
    at += run < RUN_MIN ? 1 : run;
  }
  return rest.replaceAll('\n', '');
}

/** Returns the length of the run at an offset: characters that follow each other in one row. */
function runAt(text: string, at: number): number {
  let longest = 1;
  while (at + longest < text.length && ROWS.some((row) => row.includes(text.slice(at, at + longest + 1)))) longest += 1;
  return longest;
}
