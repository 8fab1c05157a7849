/** `pagegate lookup`: looks up domains in an index, without a server, a key or a charge. */
import type { Command } from 'commander';
import { withCommas } from '../counted.ts';
import { EXIT, PagegateError } from '../errors.ts';
import type { DomainRecord } from '../record/types.ts';
import { addIndexOptions, type IndexFlags, indexPathFrom } from './shared/index-options.ts';
import { printJson, printLine, withProgress } from './shared/output.ts';
import { writeOutBytes } from './shared/streams.ts';

interface Found {
  readonly input: string;
  readonly domain: string;
  readonly record: DomainRecord | undefined;
}

export function registerLookup(program: Command): void {
  addIndexOptions(program.command('lookup').description('look up domains or URLs in an index, offline'))
    .argument('[domains...]', 'domains or URLs')
    .option('--file <list>', 'look up every line of a file (- reads standard input), and print a line of JSON for each')
    .option('--json', 'print the records as JSON')
    .addHelpText(
      'after',
      '\nExit code 4 if one is not found, 3 if one is not a domain or URL.\n\nExample:\n  $ pagegate lookup example.com https://www.example.org/login\n  $ pagegate lookup --file list.txt > answers.ndjson',
    )
    .action(lookup);
}

interface LookupFlags extends IndexFlags {
  readonly file?: string;
  readonly json?: true;
}

async function lookup(inputs: readonly string[], options: LookupFlags): Promise<void> {
  if (options.file !== undefined) {
    if (inputs.length > 0) throw new PagegateError('usage', 'Give either domains or --file, not both.');
    await lookUpFile(options.file, options);
    return;
  }
  if (inputs.length === 0) throw new PagegateError('usage', 'Give a domain or URL, or --file.');
  const { NO_RECORD, openIndex } = await import('../index/read.ts');
  const { targetFrom } = await import('./shared/target.ts');
  const index = openIndex(await indexPathFrom(options));
  try {
    const results = inputs.map((input): Found => {
      const target = targetFrom(input);
      const handle = target.classifiable ? index.find(target.key) : NO_RECORD;
      return { input, domain: target.key, record: handle === NO_RECORD ? undefined : index.decode(handle) };
    });
    if (options.json) printJson(results.map(({ domain, record }) => toJson(domain, record)));
    else for (const result of results) print(result);
    if (results.some(({ record }) => record === undefined)) process.exitCode = EXIT.negative;
  } finally {
    index.close();
  }
}

async function lookUpFile(path: string, options: LookupFlags): Promise<void> {
  const { openIndex } = await import('../index/read.ts');
  const { lookUpList } = await import('./lookup/lookup-list.ts');
  const index = openIndex(await indexPathFrom(options));
  try {
    const { notFound, bad } = await withProgress((progress, signal) =>
      lookUpList(index, {
        path,
        write: (bytes) => writeOutBytes(bytes, signal),
        onProgress: (lines) => progress.update({ what: 'looking up', detail: `${withCommas(lines)} lines` }),
        signal,
      }),
    );
    if (bad > 0) process.exitCode = EXIT.bad_input;
    else if (notFound > 0) process.exitCode = EXIT.negative;
  } finally {
    index.close();
  }
}

/** Returns a record with the fields and order of an API answer, without the fields that only a server knows. */
function toJson(domain: string, record: DomainRecord | undefined): Readonly<Record<string, unknown>> {
  if (record === undefined) return { domain, found: false, page_types: {} };
  return {
    domain,
    found: true,
    language: record.language,
    page_types: Object.fromEntries(record.pageTypes.map(({ type, url }) => [type, url])),
    iab_category: record.iabCategory,
    filtering_categories: record.filteringCategories,
    open_page_rank: record.openPageRank,
    global_rank: record.globalRank,
  };
}

function print({ domain, record }: Found): void {
  if (record === undefined) {
    printLine(`${domain}: not found`);
    return;
  }
  printLine(`${domain}: found`);
  const rows: [string, string | number | undefined][] = [
    ['language', record.language],
    ['IAB category', record.iabCategory],
    ['filtering', record.filteringCategories?.join(', ')],
    ['page rank', record.openPageRank],
    ['global rank', record.globalRank],
    ...record.pageTypes.map(({ type, url }): [string, string] => [type, url]),
  ];
  for (const [name, value] of rows) if (value !== undefined) printLine(`  ${name.padEnd(16)}${value}`);
}
