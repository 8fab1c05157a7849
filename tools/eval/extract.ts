/**
 * Creates `test/data/labelled-urls.tsv.gz` from a table of labelled URLs: the rows of scored types whose sources may be redistributed.
 * Usage: extract.ts <page-urls.tsv.gz> <out.tsv.gz>. The same input gives the same bytes.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { LABELLED_TYPES } from './labelled-urls.ts';

/** Sources under MIT, ISC, Apache-2.0, CC0, the Unlicense or CC BY; `test/data/NOTICE.md` names each. */
const REDISTRIBUTABLE = new Set(
  (
    '2fa apple-pmr awesome-status-pages chocolatey cncf-landscape datenanfragen diodb docsearch easy-application ' +
    'endoflife.date grant-oauth hiring-without-whiteboards jdm passkeys public-apis remote-jobs simple-icons ' +
    'sp500-careers sp500-crawl sso-tax yt-dlp'
  ).split(' '),
);

const [from, to] = process.argv.slice(2);
if (from === undefined || to === undefined) throw new Error('Usage: extract.ts <page-urls.tsv.gz> <out.tsv.gz>');
const rows = gunzipSync(readFileSync(from)).toString('utf8').trimEnd().split('\n').slice(1);
const kept = new Set<string>();
for (const row of rows) {
  const [source = '', type = '', evidence = '', , , url = ''] = row.split('\t');
  if (REDISTRIBUTABLE.has(source) && LABELLED_TYPES.includes(type)) kept.add([source, type, evidence, url].join('\t'));
}
const text = ['source\ttype\tevidence\turl', ...[...kept].sort(), ''].join('\n');
writeFileSync(to, gzipSync(text, { level: 9 }));
process.stdout.write(`${kept.size} of ${rows.length} rows\n`);
