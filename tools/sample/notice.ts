/** Writes data/NOTICE.md: the contribution and license of each source, and how its terms were mapped to ours. */
import type { SourceMapping } from './mapping.ts';
import type { SampleRecord } from './record.ts';

interface Tally {
  language: number;
  pages: number;
  iab: number;
  filtering: number;
  rank: number;
}

function tallies(records: readonly SampleRecord[]): Map<string, Tally> {
  const found = new Map<string, Tally>();
  const add = (source: string | undefined, field: keyof Tally): void => {
    if (source === undefined) return;
    const tally = found.get(source) ?? { language: 0, pages: 0, iab: 0, filtering: 0, rank: 0 };
    tally[field] += 1;
    found.set(source, tally);
  };
  for (const record of records) {
    add(record.language?.source, 'language');
    for (const page of record.pages.values()) add(page.source, 'pages');
    add(record.iab?.source, 'iab');
    for (const sources of record.filtering.values()) for (const source of sources) add(source, 'filtering');
    add(record.rank?.source, 'rank');
  }
  return found;
}

function sourceTable(mapping: SourceMapping, records: readonly SampleRecord[]): string[] {
  const found = tallies(records);
  const rows = Object.entries(mapping.sources).map(([name, source]) => {
    const tally = found.get(name) ?? { language: 0, pages: 0, iab: 0, filtering: 0, rank: 0 };
    const counts = [tally.language, tally.pages, tally.iab, tally.filtering, tally.rank];
    return `| ${name} | [${source.title}](${source.url}) | ${source.snapshot} | ${source.license} | ${counts.join(' | ')} |`;
  });
  return [
    '| source | title | snapshot | license | language | pages | iab | filtering | rank |',
    '| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |',
    ...rows,
  ];
}

function pageTable(mapping: SourceMapping): string[] {
  const rows = mapping.pages.rules.map(({ from, type, reason }) => `| ${from} | ${type} | ${reason} |`);
  return ['| source:kind | page type | why it is true |', '| --- | --- | --- |', ...new Set(rows)];
}

/** The notices that the MIT and ISC licenses require with redistributed data. */
const LICENSE_TEXTS = [
  '### MIT License (the sources marked MIT)',
  '',
  'Copyright (c) the authors and contributors of each repository named above.',
  '',
  'Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software',
  'without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit',
  'persons to whom the Software is furnished to do so, subject to the following conditions:',
  '',
  'The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.',
  '',
  'THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR',
  'PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR',
  'OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.',
  '',
  '### ISC License (the sources marked ISC)',
  '',
  'Copyright (c) the authors and contributors of each repository named above.',
  '',
  'Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this',
  'permission notice appear in all copies.',
  '',
  'THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT',
  'SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION',
  'OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.',
  '',
  'The text of the Apache License 2.0 is the file `LICENSE` of this repository. CC0 and the Unlicense ask for nothing.',
];

/** Returns the text of the notice. `records` are all records of the drop. */
export function noticeText(mapping: SourceMapping, records: readonly SampleRecord[]): string {
  const withPages = records.filter((record) => record.pages.size > 0).length;
  const pages = records.reduce((sum, record) => sum + record.pages.size, 0);
  return `${[
    '# Data in this directory: sources and licenses',
    '',
    'Made by `tools/sample/make-sample.ts`; do not edit by hand.',
    '',
    '## The sample drop (`sample/`)',
    '',
    `${records.length.toLocaleString('en-US')} real domains, ${withPages.toLocaleString('en-US')} of them with page types (${pages.toLocaleString('en-US')} page URLs).`,
    'Every fact was taken from one of the public sources below, each under a license that lets it be passed on. No fact was invented: what no such source says is absent.',
    '`provenance/sample.tsv.zst` names the source of every fact: one line for each line of the parts, in their order: the domain, then `field=source`, separated by tabs.',
    '',
    'What to know before you rely on it:',
    '- It is a sample for trying pagegate out, not a vetted database. Pages were not visited again; some will have moved since the date of their source.',
    '- Its page types are partial (`"page_types": "partial"` in the manifest): a type that is absent may exist all the same.',
    '- Host names are passed on as the sources spell them, dirt included (underscores, `@.` in front, upper case); the builder repairs or rejects them, and says so.',
    '- It contains adult, offensive and malicious host names, because filtering categories are about them. Data only: do not visit.',
    '- There is no Open PageRank in it: no source gives one that may be passed on. Ranks are of 2020 (newscatcher, by traffic) or, for domains without one, of 2026 (moz, by links).',
    '- Languages are given by the source (a feed table; a list of sites in English), not detected.',
    '',
    '### Sources, and how many facts each gave',
    '',
    ...sourceTable(mapping, records),
    '',
    'CC BY 4.0 asks for credit and for word of changes: of 2factorauth/passkeys the documentation URLs were taken and filed under `help`. The MIT, ISC, BSD and Apache',
    'sources are copyright of their contributors, as their repositories say; only facts (host names, URLs, categories, languages, ranks) were taken from them.',
    '',
    '### From a source’s page to a page type',
    '',
    'A URL counts for the domain its source names, if it lies on or below it; where the source names none, for the registrable domain of its host, unless that is a host of many',
    '(code hosts, recruiting and disclosure platforms: listed in `tools/sample/mapping.json`) or pages of one type lie on more than three of its hosts.',
    'Of several candidates: a field made for the page, then a list of such pages, then a link’s text, then the rest; then https, then the shortest.',
    '',
    ...pageTable(mapping),
    '',
    '### From a source’s category to the taxonomies',
    '',
    'The tables are data: `categories` in `tools/sample/mapping.json`. A category that is not in a table gives nothing. Filtering categories of several sources add up; of two IAB categories the first',
    'stays, in the order newscatcher, universities, v2fly, whotracksme, blocklistproject, disposable. The lists `youtube` and `facebook` of blocklistproject (machine names of two companies) were left out.',
    '',
    '## The taxonomies (`taxonomies/`)',
    '',
    '- `iab-content-3.1.json`: Content Taxonomy 3.1 by [IAB Technology Laboratory](https://github.com/InteractiveAdvertisingBureau/Taxonomies) (b7acdca, 2025-08-12), [CC BY 3.0](https://creativecommons.org/licenses/by/3.0/).',
    '  Changed: the table became JSON, the tier names of a category are joined by ` > `, the extension column is left out.',
    '- `filtering-59.json`: our own, under the license of this repository.',
    '',
    '## Everything else',
    '',
    'The vocabulary, the plans, the policy and the schemas are our own, under the license of this repository.',
    '',
    '## License texts',
    '',
    ...LICENSE_TEXTS,
  ].join('\n')}\n`;
}
