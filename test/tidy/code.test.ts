/** Rules for the code that no linter checks: exports, private members, errors and documentation. */
import { describe, expect, it } from 'vitest';
import { ERRORS } from '../../src/errors.ts';
import { declaredTwice, exportsOf, unusedExports, usesOf, usesOwn } from './exports.ts';
import { sourcesUnder, textOf } from './tree.ts';

const sources = sourcesUnder('src');
const written = ['src', 'tools', 'bench'].flatMap((folder) => sourcesUnder(folder));

/** Entry points of packages, used by programs outside this tree, and files that are loaded by name. */
const LOADED_ELSEWHERE =
  /^(?:src\/guard\/(?:exports|local-verdicts)\.ts|tools\/integrations\/[\w-]+\/exports\.ts|bench\/workloads\/.+)$/;

describe('exports', () => {
  it('are recognized in every form', () => {
    const text = [
      'export function a() {}',
      'export async function* b() {}',
      'export const c = 1;',
      'export abstract class D {}',
      'export type E = 1;',
      "export { f, g as h, type I } from './i.ts';",
      'const k = 1;',
    ].join('\n');
    expect(exportsOf(text)).toEqual(['a', 'b', 'c', 'D', 'E', 'f', 'h', 'I']);
  });

  it('are recognized as used in every form', () => {
    const text = [
      "import { a, type B as C } from './x.ts';",
      "import type { D } from '../y/z.ts';",
      "export { e as f } from './x.ts';",
      "const { g, h: i } = await import('./x.ts');",
      "const j = (await import('./x.ts')).k;",
      "import('./x.ts').then(({ l }) => l());",
      "import * as m from './w.ts';",
    ].join('\n');
    const names = usesOf('src/a/b.ts', text).map(({ file, name }) => `${file} ${name}`);
    expect(names.sort()).toEqual(
      [
        ...['a', 'B', 'e', 'g', 'h', 'k', 'l'].map((name) => `src/a/x.ts ${name}`),
        'src/y/z.ts D',
        'src/a/w.ts *',
      ].sort(),
    );
  });

  /** Types may be exported for readers of a signature. A value that no file imports is dead code. */
  it('of values are each used by another file', () => {
    const unused = unusedExports(['src', 'tools', 'bench'], ['src', 'tools', 'bench', 'test']).filter(
      ({ file, name }) =>
        !LOADED_ELSEWHERE.test(file) && !new RegExp(`^export (?:type|interface) ${name}\\b`, 'm').test(textOf(file)),
    );
    expect(unused.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
  });

  it('are recognized as used in their own file', () => {
    const text = ['/** Of `a`. */', 'export const a = 1; // a', 'export const b = 2;', 'const ab = b + 1;'].join('\n');
    expect(usesOwn(text, 'a')).toBe(false);
    expect(usesOwn(text, 'b')).toBe(true);
  });

  it('do not exist for tests alone', () => {
    const programs = ['src', 'tools', 'bench'];
    const unused = unusedExports(programs, programs).filter(
      ({ file, name }) => !LOADED_ELSEWHERE.test(file) && !usesOwn(textOf(file), name),
    );
    expect(unused.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
  });
});

describe('an exported name', () => {
  it('is reported if it has a second meaning', () => {
    const files = [
      { file: 'a.ts', text: 'export interface Part {}\nexport function read() {}' },
      { file: 'b.ts', text: "export type Part = 1;\nexport { read } from './a.ts';" },
    ];
    expect(declaredTwice(files)).toEqual(['Part: a.ts, b.ts']);
  });

  it('has one meaning in the whole tree, except for exports of benches', () => {
    const files = written.filter((path) => !path.startsWith('bench/workloads/'));
    expect(declaredTwice(files.map((file) => ({ file, text: textOf(file) })))).toEqual([]);
  });
});

describe('members', () => {
  it('that are private are private at run time: #name', () => {
    const found = written.flatMap((path) =>
      textOf(path)
        .split('\n')
        .flatMap((line, i) =>
          /^\s+(?:private|protected|public) (?!constructor\()/.test(line) ? [`${path}:${i + 1}`] : [],
        ),
    );
    expect(found).toEqual([]);
  });
});

/** Returns the comment that ends right before a line, without its asterisks and line breaks. */
function commentBefore(lines: readonly string[], at: number): string {
  let end = at - 1;
  if (!lines[end]?.trim().endsWith('*/')) return '';
  const text: string[] = [];
  while (end >= 0) {
    text.unshift(lines[end] ?? '');
    if (lines[end]?.includes('/**')) break;
    end -= 1;
  }
  return text.join(' ').replaceAll(/\s*\*?\s+\*?\s*/g, ' ');
}

describe('docstrings', () => {
  it('document errors in one style: @throws PagegateError code', () => {
    const found: string[] = [];
    for (const path of sources) {
      for (const [comment] of textOf(path).matchAll(/\/\*\*[\s\S]*?\*\//g)) {
        const flat = comment.replaceAll(/\s*\n\s*\*\s?/g, ' ');
        if (/(?:^|[.;:*] )[Tt]hrows `?\w/.test(flat.replaceAll('@throws', '')))
          found.push(`${path}: ${flat.slice(0, 120)}`);
        for (const [, rest = ''] of flat.matchAll(/@throws ([^@]*)/g)) {
          if (
            !/^(?:PagegateError |[A-Z][a-z]\w*[A-Z]\w* |RefusedError|ImpossibleRecord|the |what |whatever |as |Error )/.test(
              rest,
            )
          ) {
            found.push(`${path}: @throws ${rest.slice(0, 80)}`);
          }
          const code = /^PagegateError ([a-z]+(?:_[a-z]+)+)\b/.exec(rest)?.[1];
          if (code !== undefined && !(code in ERRORS)) found.push(`${path}: @throws an unknown code ${code}`);
        }
      }
    }
    expect(found).toEqual([]);
  });

  it('precede every exported class, and constructors with parameters in files at the top of a module', () => {
    const found: string[] = [];
    for (const path of sources) {
      const lines = textOf(path).split('\n');
      for (const [i, line] of lines.entries()) {
        const name = /^export (?:abstract )?class (\w+)/.exec(line)?.[1];
        if (name === undefined) continue;
        if (commentBefore(lines, i) === '') found.push(`${path}: ${name}`);
        const end = lines.indexOf('}', i);
        const made = lines.findIndex((l, j) => j > i && j < end && /^ {2}constructor\((?!\))/.test(l));
        const isOnFace = path.split('/').length === 3;
        if (isOnFace && made > 0 && commentBefore(lines, made) === '') found.push(`${path}: constructor of ${name}`);
      }
    }
    expect(found).toEqual([]);
  });
});

it('a path next to a file is converted from its URL by fileURLToPath: `.pathname` keeps the escapes of a checkout in "Name mit Ümläuten"', () => {
  const everywhere = ['src', 'tools', 'bench', 'test'].flatMap((folder) => sourcesUnder(folder));
  const escaped = /import\.meta\.url\)\s*\.pathname/;
  expect(everywhere.length).toBeGreaterThan(500);
  expect(everywhere.filter((path) => escaped.test(textOf(path)))).toEqual([]);
});
