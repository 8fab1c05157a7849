/** `pagegate generations`: lists the generations that are kept, and which one is served. */

import type { Command } from 'commander';
import { counted } from '../counted.ts';
import { utc } from '../times.ts';
import { addConfigOptions, type ConfigFlags, pathsFrom } from './shared/config-options.ts';
import { printJson, printLine, printTable } from './shared/output.ts';

export function registerGenerations(program: Command): void {
  const generations = program.command('generations').description('the index generations that are kept');
  addConfigOptions(generations.command('list').description('list all generations, and mark the served one'))
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ pagegate generations list')
    .action(list);
}

async function list(options: ConfigFlags & { readonly json?: true }): Promise<void> {
  const { listGenerations, listLitter } = await import('../refresh/store.ts');
  const { readWithdrawn } = await import('../refresh/withdrawn-drops.ts');
  const { indexDir: store } = await pathsFrom(options);
  const withdrawn = new Set(readWithdrawn(store).map((mark) => mark.manifestSha256));
  const litter = listLitter(store);
  const rows = listGenerations(store).map(({ generation, current, report }) => ({
    generation,
    state: current
      ? 'served'
      : report === undefined
        ? 'damaged'
        : withdrawn.has(report.manifestSha256)
          ? 'withdrawn'
          : 'kept',
    dataset: report?.dataset ?? null,
    revision: report?.revision ?? null,
    created_at: report === undefined ? null : utc(report.created),
    signed_by: report?.signedBy ?? null,
    built_at: report?.builtAt ?? null,
    records: report?.recordCount ?? null,
    size_bytes: report?.sizeBytes ?? null,
    manifest_sha256: report?.manifestSha256 ?? null,
  }));
  if (options.json) {
    printJson({ store, generations: rows, litter });
    return;
  }
  if (rows.length === 0) printLine(`No generation in ${store}; build the first with "pagegate refresh DROP".`);
  else {
    printTable([
      ['generation', 'state', 'dataset', 'revision', 'signed by', 'built at', 'records', 'bytes'],
      ...rows.map((row) => [
        row.generation,
        row.state,
        row.dataset ?? '-',
        String(row.revision ?? '-'),
        row.signed_by ?? '-',
        row.built_at ?? '-',
        row.records ?? 0,
        row.size_bytes ?? 0,
      ]),
    ]);
  }
  if (litter.length > 0)
    printLine(`${counted(litter.length, 'leftover')} of interrupted runs; "pagegate prune" removes them.`);
}
