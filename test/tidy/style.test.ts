/** Style rules that no linter checks: length of functions, words, leftovers. */
import { describe, expect, it } from 'vitest';
import { filesUnder, sourcesUnder, textOf } from './tree.ts';

const FUNCTION_MAX_LINES = 80;

/** The first line of a function in formatted code: `function …{`, `… => {`, or a method's `name(…) {` or `): Type {`. */
const OPENS_FUNCTION =
  /(?:\bfunction\b.*\{|=> \{|^\s*(?:(?:async|static|get|set|override|readonly|\*) ?)*[#\w]+\(.*\).*\{|^\s*\).*\{)$/;
const OPENS_BLOCK = /^\s*(?:\} )?(?:if|else|for|while|switch|do|try|catch|finally|return new)\b/;

/** Returns functions above the limit, by their first line. Relies on the formatter: a closing brace has the indentation of its opening line. */
function longFunctions(path: string, text: string): string[] {
  const lines = text.split('\n');
  const found: string[] = [];
  for (const [i, line] of lines.entries()) {
    if (!OPENS_FUNCTION.test(line) || OPENS_BLOCK.test(line)) continue;
    const indent = /^ */.exec(line)?.[0] ?? '';
    const length = lines.slice(i).findIndex((l) => l.startsWith(`${indent}}`)) + 1;
    if (length > FUNCTION_MAX_LINES) found.push(`${path}:${i + 1} has ${length} lines`);
  }
  return found;
}

const sources = sourcesUnder('src');
const written = filesUnder('').filter(
  (path) =>
    /\.(?:ts|mts|js|md|sh|yml|yaml|service|timer|conf|py|nft)$|(?:^|\/)Makefile$/.test(path) &&
    !path.startsWith('data/'),
);

describe('length', () => {
  it('sees functions of every kind', () => {
    const body = `${'  x;\n'.repeat(FUNCTION_MAX_LINES)}`;
    for (const opening of ['function f() {', 'const f = () => {', 'async f(a: B): Promise<C> {', '): D {', '#f() {']) {
      expect(longFunctions('f.ts', `${opening}\n${body}}\n`)).toHaveLength(1);
      expect(longFunctions('f.ts', `${opening}\n${body.slice(10)}}\n`)).toEqual([]);
    }
    expect(longFunctions('f.ts', `if (a) {\n${body}}\n`)).toEqual([]);
  });

  it(`of a function in src is at most ${FUNCTION_MAX_LINES} lines`, () => {
    expect(sources.flatMap((path) => longFunctions(path, textOf(path)))).toEqual([]);
  });
});

/** Returns files of the tree that a text names but that do not exist. */
function missingFiles(path: string, text: string, files: ReadonlySet<string>): string[] {
  const named = text.match(/\b(?:src|tools|bench)\/[\w./-]+\.(?:ts|md)\b/g) ?? [];
  return named.filter((name) => !files.has(name)).map((name) => `${path} names ${name}`);
}

describe('a file named in a source', () => {
  const files = new Set(filesUnder(''));

  it('is reported if it does not exist', () => {
    expect(missingFiles('a.ts', '/** See src/cli.ts and src/none.ts. */', files)).toEqual(['a.ts names src/none.ts']);
  });

  it('exists', () => {
    const all = [...sources, ...sourcesUnder('tools'), ...sourcesUnder('bench')];
    expect(all.flatMap((path) => missingFiles(path, textOf(path), files))).toEqual([]);
  });
});

/** Text that must not occur in files that people read. Written so that this file does not match itself. */
const FORBIDDEN: readonly (readonly [string, RegExp])[] = [
  ['a note to do something later', /\b(?:T[O]DO|F[I]XME|X[X]X|H[A]CK)\b/],
  ['a type that is not checked', /^(?!\s*(?:\/?\*|\/\/)).*(?:\bas a[n]y\b|: a[n]y(?=\s*[;,)=\]|&{>])|<a[n]y>)/],
  ['a silenced compiler', /@ts-(?:ign[o]re|noch[e]ck|exp[e]ct-error)/],
  ['a silenced linter without a reason', /biome-ign[o]re(?!.*: \S)/],
  ['a path of somebody’s machine', /(?<![\w.])\/(?:home|Users|root|w[o]rk|workspace)\/[\w.-]+/],
  [
    'British spelling',
    /\b(?:lic[e]nce|behavi[o]ur|col[o]ur|fav[o]ur|hon[o]ur|neighb[o]ur|cent[r]e|artef[a]ct|whi[l]st|(?:normal|serial|initial|recogn|optim|organ|author|minim|maxim|canonical|summar|util|synchron|final|capital|general|real|tokeni?)is(?:e|ed|es|er|ing|ation))\b/i,
  ],
];

/** The previous line may exempt a line, with a reason; the linter then checks the exemption. */
const hasReason = (before = ''): boolean => /biome-ign[o]re \S+: \S/.test(before);

describe('words', () => {
  it('are checked in the files that people read', () => {
    expect(written.length).toBeGreaterThan(50);
  });

  it.each(FORBIDDEN)('contain nowhere %s', (_name, pattern) => {
    const found = written.flatMap((path) =>
      textOf(path)
        .split('\n')
        .flatMap((line, i, lines) =>
          pattern.test(line) && !hasReason(lines[i - 1]) ? [`${path}:${i + 1}: ${line.trim().slice(0, 120)}`] : [],
        ),
    );
    expect(found).toEqual([]);
  });

  it('call the binary file an index, never a database', () => {
    const found = filesUnder('src/index').filter((path) => /database/i.test(textOf(path)));
    expect(found).toEqual([]);
  });

  it('include a description in every source file in src', () => {
    const silent = sources.filter((path) => !textOf(path).includes('/**'));
    expect(silent).toEqual([]);
  });

  it('are exported by name only', () => {
    expect(sources.filter((path) => /^export default\b/m.test(textOf(path)))).toEqual([]);
  });
});

describe('files', () => {
  it('of text end with one line feed and have no trailing blanks', () => {
    const wrong = written.filter((path) => {
      const text = textOf(path);
      return text !== '' && (!/[^\n]\n$/.test(text) || /[ \t]$/m.test(text) || text.includes('\r'));
    });
    expect(wrong).toEqual([]);
  });

  it('pin every package to one version, from any registry that the host uses', () => {
    const manifest = JSON.parse(textOf('package.json')) as Record<string, Record<string, string>>;
    const pinned = ['dependencies', 'devDependencies', 'optionalDependencies'].flatMap((group) =>
      Object.entries(manifest[group] ?? {}),
    );
    expect(pinned.length).toBeGreaterThan(10);
    expect(pinned.filter(([, version]) => !/^(?:npm:@?[\w./-]+@)?\d+\.\d+\.\d+$/.test(version))).toEqual([]);
    const lock = JSON.parse(textOf('package-lock.json')) as { packages: Record<string, object> };
    const elsewhere = Object.entries(lock.packages).filter(([, entry]) => 'resolved' in entry);
    expect(elsewhere).toEqual([]);
  });
});
