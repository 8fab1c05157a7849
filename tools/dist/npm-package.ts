/**
 * The packages of the client side, each one tarball that `npm install --offline` takes: plain JavaScript with its types, made from the
 * sources by the TypeScript compiler, and what it depends on inside.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pack } from './tarball.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export interface NpmPackage {
  readonly name: string;
  readonly description: string;
  /** Sources to compile, with everything that they import. */
  readonly entries: readonly string[];
  /** Files beside them that are copied. */
  readonly copied?: readonly string[];
  /** The page that becomes its README. */
  readonly page: string;
  /** Specifier → source. */
  readonly exports?: Readonly<Record<string, string>>;
  /** Command → source, or a copied file. */
  readonly bin?: Readonly<Record<string, string>>;
  /** What it depends on; packed inside. */
  readonly bundled: readonly string[];
  /** What it works with, if the user has it. */
  readonly peers?: readonly string[];
}

const POINTS = 'tools/integrations';

export const NPM_PACKAGES: readonly NpmPackage[] = [
  {
    name: 'pagegate-guard',
    description: 'Asks pagegate before an agent fetches, browses or connects, and fails closed',
    entries: [
      'src/guard/exports.ts',
      'src/guard/local-verdicts.ts',
      `${POINTS}/playwright/exports.ts`,
      `${POINTS}/puppeteer/exports.ts`,
      `${POINTS}/hook/main.ts`,
    ],
    copied: [
      `${POINTS}/hook/pagegate-hook`,
      `${POINTS}/hook/settings.json`,
      `${POINTS}/hook/settings.http.json`,
      `${POINTS}/browser/chromium-policy.json`,
      // What the policy engine reads when it is loaded.
      'data/vocabulary/page-types.json',
      'data/taxonomies/iab-content-3.1.json',
      'data/taxonomies/filtering-59.json',
    ],
    page: 'docs/guard.md',
    exports: {
      '.': 'src/guard/exports.ts',
      './local': 'src/guard/local-verdicts.ts',
      './playwright': `${POINTS}/playwright/exports.ts`,
      './puppeteer': `${POINTS}/puppeteer/exports.ts`,
    },
    bin: { 'pagegate-hook': `${POINTS}/hook/pagegate-hook` },
    bundled: ['tldts', 'undici'],
    peers: ['playwright-core', 'puppeteer-core'],
  },
  {
    name: 'pagegate-mcp',
    description: 'MCP server of pagegate: check_url and fetch_page',
    entries: [`${POINTS}/mcp/main.ts`],
    page: `${POINTS}/mcp/README.md`,
    bin: { 'pagegate-mcp': `${POINTS}/mcp/main.ts` },
    bundled: ['undici', '@modelcontextprotocol/sdk', 'zod'],
  },
];

interface Manifest {
  readonly version: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const readJson = <T>(path: string): T => JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as T;

/** Packs it into a folder; returns the path of the tarball. */
export async function packNpm(spec: NpmPackage, out: string): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'pagegate-npm-'));
  try {
    const folder = join(parent, 'package');
    const manifest = manifestOf(spec);
    compile(spec, parent, join(folder, 'lib'));
    for (const path of spec.copied ?? []) {
      mkdirSync(dirname(join(folder, 'lib', path)), { recursive: true });
      copyFileSync(join(ROOT, path), join(folder, 'lib', path));
    }
    for (const path of Object.values(manifest.bin)) chmodSync(join(folder, path), 0o755);
    for (const path of closureOf(spec.bundled)) copyPackage(path, join(folder, path), spec.exports !== undefined);
    const write = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o644 });
    write('package.json', `${JSON.stringify(manifest, null, 2)}\n`);
    // The program looks for its version where it lies in the checkout, above its sources.
    write('lib/package.json', `${JSON.stringify({ type: 'module', version: manifest.version })}\n`);
    // Its links lead to pages of the checkout, which are not here.
    write('README.md', readFileSync(join(ROOT, spec.page), 'utf8').replace(/\[([^\]]+)\]\((?!https?:)[^)]+\)/g, '$1'));
    write('LICENSE', readFileSync(join(ROOT, 'LICENSE'), 'utf8'));
    const tarball = join(out, `${spec.name}-${manifest.version}.tgz`);
    mkdirSync(out, { recursive: true });
    pack(parent, 'package', tarball);
    return tarball;
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
}

/** Where a source lies in the package, compiled. */
const compiled = (source: string, extension = '.js'): string => `./lib/${source.replace(/\.ts$/, extension)}`;

function manifestOf(spec: NpmPackage) {
  const { version, license, dependencies, devDependencies } = readJson<Manifest>('package.json');
  const pinned = { ...dependencies, ...devDependencies };
  const versions = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, pinned[name]!]));
  const { peers = [] } = spec;
  return {
    name: spec.name,
    version,
    description: spec.description,
    license,
    type: 'module',
    engines: { node: '>=20.18.1' },
    exports: Object.fromEntries(
      Object.entries(spec.exports ?? {}).map(([name, source]) => [
        name,
        { types: compiled(source, '.d.ts'), default: compiled(source) },
      ]),
    ),
    bin: Object.fromEntries(Object.entries(spec.bin ?? {}).map(([name, source]) => [name, compiled(source)])),
    dependencies: versions(spec.bundled),
    bundleDependencies: spec.bundled,
    ...(peers.length > 0 && {
      peerDependencies: Object.fromEntries(peers.map((name) => [name, '*'])),
      peerDependenciesMeta: Object.fromEntries(peers.map((name) => [name, { optional: true }])),
    }),
  };
}

/** Compiles the entries and what they import; modules keep their places. */
function compile(spec: NpmPackage, work: string, out: string): void {
  const config = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      target: 'es2022',
      rewriteRelativeImportExtensions: true,
      declaration: true,
      rootDir: ROOT,
      outDir: out,
      typeRoots: [join(ROOT, 'node_modules/@types')],
    },
    include: [],
    files: spec.entries.map((entry) => join(ROOT, entry)),
  };
  const path = join(work, 'tsconfig.json');
  writeFileSync(path, JSON.stringify(config));
  execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', path], { stdio: 'inherit' });
}

interface LockedPackage {
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** The places of packages and of all that they depend on, such as `node_modules/undici`. */
export function closureOf(names: readonly string[]): string[] {
  const { packages } = readJson('package-lock.json') as unknown as {
    packages: Readonly<Record<string, LockedPackage>>;
  };
  const found = new Set<string>();
  const visit = (name: string, from: string): void => {
    // As Node.js does: the nearest node_modules above the one who asks.
    let place = `${from}/node_modules/${name}`.replace(/^\//, '');
    for (let at = from; packages[place] === undefined; place = `${at}/node_modules/${name}`.replace(/^\//, '')) {
      if (at === '') throw new Error(`${name} is not in package-lock.json`);
      at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')));
    }
    if (found.has(place)) return;
    found.add(place);
    for (const dependency of Object.keys(packages[place]?.dependencies ?? {})) visit(dependency, place);
  };
  for (const name of names) visit(name, '');
  return [...found].sort();
}

/** What packages carry beside what runs and its types. */
const DEAD_WEIGHT =
  /\.map$|\/(?:docs|examples|scripts|test|tests|benchmarks|\.github)$|\/(?:CHANGELOG|HISTORY)\.md$|(?<!\.d)\.[cm]?ts$/i;
const TYPES = /\.d\.[cm]?ts$/;

/** Copies a package that is bundled; a program that exports nothing has no use for types. */
function copyPackage(path: string, target: string, withTypes: boolean): void {
  const source = join(ROOT, path);
  if (!existsSync(source)) throw new Error(`${path} is not installed: run "make install"`);
  mkdirSync(dirname(target), { recursive: true });
  cpSync(source, target, {
    recursive: true,
    // A package inside a package is one of its own.
    filter: (file) => {
      const inside = file.slice(source.length);
      if (inside === '/node_modules' || (!withTypes && TYPES.test(inside))) return false;
      if (!DEAD_WEIGHT.test(inside)) return true;
      return (
        statSync(file).isDirectory() && !/\/examples$/.test(inside) && /\/(?:dist|lib|build|esm|cjs)\//.test(inside)
      );
    },
  });
}
