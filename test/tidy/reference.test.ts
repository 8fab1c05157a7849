/** Checks that the reference pages and the code agree, in both directions. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli.ts';
import { commands } from '../../src/commands/all.ts';
import { ERROR_TOPICS, ERRORS, EXIT } from '../../src/errors.ts';
import { PAGES, renewed } from '../../tools/reference/pages.ts';
import { filesUnder, ROOT, sourcesUnder, textOf } from './tree.ts';

/** Returns the text of a part of the sample drop. */
function readPart(path: string): string {
  const bytes = readFileSync(join(ROOT, path));
  if (path.endsWith('.gz')) return gunzipSync(bytes).toString('utf8');
  return (path.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes).toString('utf8');
}

/** Returns the generated section of a page with this name. */
const placeOf = (page: string, name: string): string =>
  textOf(page).split(`<!-- table ${name} -->`)[1]?.split('<!-- end -->')[0] ?? '';

/** Returns the cells of the table rows in a generated section, without headings. */
function rowsOf(page: string, name: string): string[][] {
  const lines = placeOf(page, name).split('\n');
  const rows = lines.filter(
    (line, i) => line.startsWith('| ') && !line.startsWith('| ---') && !lines[i + 1]?.startsWith('| ---'),
  );
  return rows.map((line) =>
    line
      .slice(2, -2)
      .split(' | ')
      .map((cell) => cell.replaceAll('`', '').trim()),
  );
}

describe('docs/errors.md', () => {
  const rows = rowsOf('docs/errors.md', 'errors');

  it('has a row for every code', () => {
    expect(Object.keys(ERRORS).filter((code) => !rows.some((row) => row[0] === code))).toEqual([]);
  });

  it('has a code for every row, once, with its status and exit code', () => {
    expect(rows.map(([code, status, exit]) => [code, status, exit])).toEqual(
      Object.entries(ERRORS).map(([code, entry]) => [
        code,
        String('status' in entry ? (entry.status ?? '') : ''),
        String(entry.exit),
      ]),
    );
  });

  it('has every code under one topic', () => {
    const listed = Object.values(ERROR_TOPICS).flatMap((codes) => Object.keys(codes));
    expect(listed.filter((code, i) => listed.indexOf(code) !== i)).toEqual([]);
    expect(listed.length).toBe(Object.keys(ERRORS).length);
  });

  it('has no row for a code that is never thrown', () => {
    const program = sourcesUnder('src').filter((path) => path !== 'src/errors.ts');
    const text = program.map(textOf).join('\n');
    expect(Object.keys(ERRORS).filter((code) => !text.includes(`'${code}'`))).toEqual([]);
  });

  it('states in every row what happened, in a sentence', () => {
    expect(rows.filter((row) => !/^\S.{15,}[.)]$/.test(row[3] ?? ''))).toEqual([]);
  });
});

describe('docs/cli.md', () => {
  const rows = rowsOf('docs/cli.md', 'commands');

  it('has a row for every command and a command for every row', async () => {
    const program = await createProgram();
    expect(program.commands.length).toBe(commands.length);
    const named = new Set(rows.map((row) => /^\[pagegate ([\w-]+)/.exec(row[0] ?? '')?.[1]));
    expect([...named].sort()).toEqual(program.commands.map((command) => command.name()).sort());
  });

  it('describes commands that each show an example of a call, with a command that exists', async () => {
    const program = await createProgram();
    const leaves = (command: Command): Command[] =>
      command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
    const without = leaves(program).filter((command) => {
      let help = '';
      command.configureOutput({
        writeOut: (text) => {
          help += text;
        },
      });
      command.outputHelp();
      const names = [command.name()];
      for (let above = command.parent; above && above !== program; above = above.parent) names.unshift(above.name());
      const path = names.join(' ');
      return !help.includes(`\n  $ pagegate ${path}`);
    });
    expect(without.map((command) => `${command.parent?.name()} ${command.name()}`)).toEqual([]);
  });

  it('has a section for every command of the overview, under its link', () => {
    const sections = [...placeOf('docs/cli.md', 'options').matchAll(/^### (.+)$/gm)].map(([, name = '']) =>
      name.replaceAll(' ', '-'),
    );
    expect(rows.map((row) => /\(#([\w-]+)\)/.exec(row[0] ?? '')?.[1])).toEqual(sections);
  });

  it('states the meaning of every option', () => {
    const options = [...rowsOf('docs/cli.md', 'options'), ...rowsOf('docs/cli.md', 'common-options')];
    expect(options.length).toBeGreaterThan(60);
    expect(options.filter(([, meaning]) => !/^\S.{3,}[.)]$/.test(meaning ?? ''))).toEqual([]);
  });

  it('has a row for every exit code', () => {
    const exits = rowsOf('docs/cli.md', 'exits').map(([code, name]) => [name, Number(code)]);
    expect(exits).toEqual(Object.entries(EXIT));
  });
});

describe('docs/api.md', () => {
  const text = textOf('docs/api.md');
  const example = JSON.parse(/```\n[^`]*\n\n(\{\n[^`]*\n\})\n```/.exec(text)?.[1] ?? '') as Record<string, unknown>;
  const section = text.split('## Response')[1]?.split('\n## ')[0] ?? '';
  const fields = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name);

  it('lists the eleven fields in the order of the response, and its example has no others', () => {
    expect(fields).toHaveLength(11);
    expect(Object.keys(example)).toEqual(fields.filter((name) => name in example));
    expect(Object.keys(example).length).toBeGreaterThan(7);
  });

  it('has an example that matches the sample drop', () => {
    const parts = filesUnder('data/sample').filter((path) => /\.ndjson(?:\.gz|\.zst)?$/.test(path));
    const needle = `"domain":"${String(example['domain'])}"`;
    const line = parts
      .flatMap((path) => readPart(path).split('\n'))
      .find((entry) => entry.replaceAll(' ', '').includes(needle));
    const entry = JSON.parse(line ?? '{}') as Record<string, unknown>;
    for (const name of ['page_types', 'filtering_categories', 'global_rank', 'language', 'iab_category']) {
      expect(example[name], name).toEqual(entry[name]);
    }
  });
});

describe('README.md', () => {
  const text = textOf('README.md');

  it('states the reason for each package', () => {
    const manifest = JSON.parse(textOf('package.json')) as Record<string, Record<string, string>>;
    const packages = ['dependencies', 'devDependencies', 'optionalDependencies']
      .flatMap((group) => Object.keys(manifest[group] ?? {}))
      .map((name) => (name.startsWith('@types/') ? '@types/*' : name));
    expect(packages.length).toBeGreaterThan(10);
    expect(packages.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
  });

  it('names every module', () => {
    const modules = readdirSync(join(ROOT, 'src'), { withFileTypes: true });
    const missing = modules.filter(
      ({ name }) => name !== 'pagegate' && name !== 'version.ts' && !text.includes(`src/${name}`),
    );
    expect(missing.map(({ name }) => name)).toEqual([]);
  });

  it('has six rows of numbers, the same as in docs/benchmarks.md', () => {
    const table = text.split('## Numbers')[1]?.split('\n## ')[0] ?? '';
    const rows = table.split('\n').filter((line) => line.startsWith('| ') && line.includes('`'));
    expect(rows).toHaveLength(6);
    const commands = rows.map((row) => /`((?:npm run bench|make)[^`]*)` \|$/.exec(row)?.[1] ?? row);
    expect(commands.filter((command) => !textOf('docs/benchmarks.md').includes(command))).toEqual([]);
    const numbersIn = (of: string): string[] => of.match(/(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\d)/g) ?? [];
    const measured = new Set(numbersIn(textOf('docs/benchmarks.md')));
    expect(rows.flatMap(numbersIn).filter((number) => !measured.has(number))).toEqual([]);
  });
});

describe('docs/development.md', () => {
  const rows = rowsOf('docs/development.md', 'where');

  it('states for at least thirty changes where to start, with existing paths', () => {
    expect(rows.length).toBeGreaterThanOrEqual(30);
    const named = [...placeOf('docs/development.md', 'where').matchAll(/`([^`\s]+\/[^`\s]+)`/g)].map(
      ([, path = '']) => path,
    );
    expect(named.length).toBeGreaterThan(rows.length);
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});

describe.each(Object.entries(PAGES))('%s', (page, tables) => {
  it('matches the output of tools/reference/write.ts', async () => {
    const text = textOf(page);
    expect(text).toBe(await renewed(text, tables));
  });
});

/** Returns the anchors of a page's headings, derived from their texts. */
function anchorsOf(text: string): Set<string> {
  const headings = text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, heading = '']) =>
      heading
        .replaceAll(/\]\([^)]*\)/g, ']')
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replaceAll(' ', '-'),
    ),
  );
}

describe('links', () => {
  it('between the pages have an existing target', () => {
    const all = new Set(filesUnder(''));
    const broken: string[] = [];
    for (const page of [...all].filter((path) => path.endsWith('.md') && !path.startsWith('data/'))) {
      for (const [, target = ''] of textOf(page).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
        if (/^[a-z]+:/.test(target)) continue;
        const path = new URL(target, `file:///${page}`).pathname.slice(1).replace(/\/$/, '');
        if (!all.has(path) && ![...all].some((file) => file.startsWith(`${path}/`))) broken.push(`${page}: ${target}`);
      }
    }
    expect(broken).toEqual([]);
  });

  it('to a heading have an existing target', () => {
    const broken: string[] = [];
    let checked = 0;
    for (const page of filesUnder('').filter((path) => path.endsWith('.md') && !path.startsWith('data/'))) {
      for (const [, target = '', anchor = ''] of textOf(page).matchAll(/\]\(([^)#\s]*)#([^)\s]+)\)/g)) {
        if (/^[a-z]+:/.test(target)) continue;
        const path = target === '' ? page : new URL(target, `file:///${page}`).pathname.slice(1);
        if (!path.endsWith('.md')) continue;
        checked += 1;
        if (!anchorsOf(textOf(path)).has(anchor)) broken.push(`${page}: ${target}#${anchor}`);
      }
    }
    expect(checked).toBeGreaterThan(30);
    expect(broken).toEqual([]);
  });

  it('lead from the map of the documents to each of them', () => {
    const map = textOf('docs/README.md');
    const pages = filesUnder('docs').filter((path) => path.endsWith('.md') && path !== 'docs/README.md');
    expect(pages.filter((path) => !map.includes(`](${path.slice('docs/'.length)})`))).toEqual([]);
  });

  it('lead to every page of docs', () => {
    const pages = filesUnder('').filter((path) => path.endsWith('.md') && !path.startsWith('data/'));
    const linked = new Set(
      pages.flatMap((page) =>
        [...textOf(page).matchAll(/\]\(([^)#\s]+)/g)].map(([, target = '']) =>
          new URL(target, `file:///${page}`).pathname.slice(1),
        ),
      ),
    );
    expect(filesUnder('docs').filter((path) => !linked.has(path))).toEqual([]);
  });
});
