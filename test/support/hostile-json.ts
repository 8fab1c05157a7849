/** Ways in which a valid JSON object can be damaged in transit. A reader of a file must name the problem, or read the object as intended. */

interface Hostile {
  readonly name: string;
  /** Matches the error message. */
  readonly expected: RegExp;
  spoil(text: string): Uint8Array;
}

/** Inserts a member before the first member of the object. */
const before =
  (member: string) =>
  (text: string): Buffer =>
    Buffer.from(text.replace('{', `{${member},`));

const firstName = (text: string): string => /"(\w+)"/.exec(text)![1]!;
const DEEP = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;

/** Must be refused, with a message that locates the problem. */
export const HOSTILE_JSON: readonly Hostile[] = [
  { name: 'no text', expected: /it is empty/, spoil: () => Buffer.alloc(0) },
  {
    name: 'a truncated text',
    expected: /line \d+, column \d+: /,
    spoil: (text) => Buffer.from(text.trimEnd().slice(0, -1)),
  },
  {
    name: 'text after the end',
    expected: /unexpected text, got "\\u0000"/,
    spoil: (text) => Buffer.from(`${text}\0`),
  },
  {
    name: 'a byte that is not UTF-8',
    expected: /it is not UTF-8 text/,
    spoil: (text) => Buffer.from(text.replace('{', '{"\xff":1,'), 'latin1'),
  },
  { name: 'UTF-16', expected: /it is not UTF-8 text/, spoil: (text) => Buffer.from(`\ufeff${text}`, 'utf16le') },
  {
    name: 'a repeated name',
    expected: /\w+ is set more than once \(line \d+\)/,
    spoil: (text) => before(`"${firstName(text)}":null`)(text),
  },
  {
    name: 'a name that is repeated in another spelling',
    expected: /\w+ is set more than once/,
    spoil: (text) => {
      const name = firstName(text);
      return before(`"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}":null`)(text);
    },
  },
  {
    name: 'thousands of repetitions below a name of the same length',
    expected: /line 1, column \d+: names are repeated more than 100 times/,
    spoil: before(`"${'n'.repeat(20_000)}":{"a":0${',"a":0'.repeat(3_000)}}`),
  },
  { name: 'deep nesting', expected: /line 1, column \d+: nested deeper than 32 levels/, spoil: before(`"x":${DEEP}`) },
  { name: 'a number that is too large', expected: /the number is larger/, spoil: before('"x":[-1e999]') },
  { name: 'a NUL character in a string', expected: /a raw control character/, spoil: before('"x":"\0"') },
];

/** Must be read like the unchanged text. */
export const HARMLESS_JSON: readonly Omit<Hostile, 'expected'>[] = [
  { name: 'a byte order mark', spoil: (text) => Buffer.from(`\ufeff${text}`) },
  { name: 'CRLF', spoil: (text) => Buffer.from(`\r\n${text.replaceAll(',"', ',\r\n"')}\r\n`) },
];
