/**
 * Makes `data/unicode/lookalikes.json` of two files of the Unicode security mechanisms (UTS #39): which characters look like ASCII
 * letters and digits, and which letters of Latin, Greek and Cyrillic identifiers may have. The same input gives the same bytes.
 * Usage: make-lookalikes.ts <confusables.txt[.gz]> <IdentifierStatus.txt[.gz]> <out.json>
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

const [confusablesFile, statusFile, out] = process.argv.slice(2);
if (confusablesFile === undefined || statusFile === undefined || out === undefined)
  throw new Error('Usage: make-lookalikes.ts <confusables.txt[.gz]> <IdentifierStatus.txt[.gz]> <out.json>');

/** The fields of each line, comments left out. */
function rowsOf(path: string): { readonly rows: string[][]; readonly version: string } {
  const bytes = readFileSync(path);
  const text = (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes)
    .toString('utf8')
    .replace(/^\ufeff/, '');
  const version = /^# Version: ([0-9.]+)/m.exec(text)?.[1];
  if (version === undefined) throw new Error(`${path} names no version.`);
  const lines = text.split('\n').map((line) => line.split('#', 1)[0]!.trim());
  return {
    rows: lines.filter((line) => line !== '').map((line) => line.split(';').map((cell) => cell.trim())),
    version,
  };
}

const decode = (cell: string): string =>
  String.fromCodePoint(...cell.split(' ').map((code) => Number.parseInt(code, 16)));

/** What can stand in a host name once it is canonical: a letter, mark or digit in lower case that no mapping changes. */
const canStand = (text: string): boolean =>
  /^[\p{L}\p{M}\p{N}]$/u.test(text) && text.toLowerCase() === text && text.normalize('NFKC') === text;

const confusables = rowsOf(confusablesFile);
const looksLike = new Map<string, string[]>();
for (const [source = '', target = ''] of confusables.rows) {
  const [from, to] = [decode(source), decode(target).toLowerCase()];
  if (!canStand(from) || !/^[a-z0-9-]+$/.test(to) || from === to) continue;
  looksLike.set(to, [...(looksLike.get(to) ?? []), from]);
}

const status = rowsOf(statusFile);
if (status.version !== confusables.version) throw new Error('The two files have different versions.');
const ranges: [number, number][] = [];
for (const [codes = '', value] of status.rows) {
  if (value !== 'Allowed') continue;
  const [first = 0, last = first] = codes.split('..').map((code) => Number.parseInt(code, 16));
  for (let code = first; code <= last; code++) {
    const text = String.fromCodePoint(code);
    if (!canStand(text) || !/[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}]/u.test(text)) continue;
    const before = ranges.at(-1);
    if (before !== undefined && before[1] === code - 1) before[1] = code;
    else ranges.push([code, code]);
  }
}

const document = {
  format: 'pagegate-lookalikes/1',
  unicode: status.version,
  notice:
    'Derived from confusables.txt and IdentifierStatus.txt, © Unicode, Inc., under the Unicode License V3; see NOTICE.md.',
  confusables: Object.fromEntries([...looksLike].sort().map(([to, from]) => [to, from.sort().join('')])),
  allowed: ranges
    .map(([first, last]) => (first === last ? first.toString(16) : `${first.toString(16)}-${last.toString(16)}`))
    .join(' '),
};
writeFileSync(out, `${JSON.stringify(document, null, 2)}\n`);
process.stdout.write(`${[...looksLike.values()].flat().length} characters, ${ranges.length} ranges\n`);
