/** `pagegate lookup`: what an index knows, without a server, a key or a charge. */
import type { Command } from 'commander';
import { EXIT, PagegateError } from '../errors.ts';
import type { DomainRecord } from '../record/types.ts';
import { addIndexOptions, type IndexFlags, indexPathFrom } from './shared/index-options.ts';
import { printJson, printLine } from './shared/output.ts';

interface Found {
  readonly input: string;
  readonly domain: string;
  readonly record: DomainRecord | undefined;
}

export function registerLookup(program: Command): void {
  addIndexOptions(program.command('lookup').description('look domains or URLs up in an index, offline'))
    .argument('<domains...>', 'domains or URLs')
    .option('--json', 'print the records as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate lookup example.com https://www.example.org/login')
    .action(lookup);
}

async function lookup(inputs: readonly string[], options: IndexFlags & { readonly json?: true }): Promise<void> {
  const { NOT_FOUND, openIndex } = await import('../index/reader.ts');
  const { parseTarget } = await import('../domain/target.ts');
  const index = openIndex(await indexPathFrom(options));
  try {
    const results = inputs.map((input): Found => {
      const target = parseTarget(input);
      if ('problem' in target)
        throw new PagegateError('bad_input', `${JSON.stringify(input)}: ${target.problem}.`, { input });
      const handle = target.classifiable ? index.find(target.key) : NOT_FOUND;
      return { input, domain: target.key, record: handle === NOT_FOUND ? undefined : index.decode(handle) };
    });
    if (options.json) printJson(results.map(({ domain, record }) => toJson(domain, record)));
    else for (const result of results) print(result);
    if (results.some(({ record }) => record === undefined)) process.exitCode = EXIT.negative;
  } finally {
    index.close();
  }
}

/** The fields and their order as in an answer, without what only a server knows. */
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
