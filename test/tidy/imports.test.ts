/** Which module may import which. A new module needs a line here, and a reason. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importsOf, moduleOf, packageOf, ROOT, sourcesUnder, textOf } from './tree.ts';

/** Every module may import these. */
const BASE = new Set(['errors', 'limits', 'bounded-cache', 'counted', 'progress', 'steps', 'times']);

/** Module → the modules that it may import, in addition to itself and `BASE`. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  limits: [],
  'bounded-cache': [],
  counted: [],
  progress: [],
  steps: [],
  times: [],
  version: [],
  bytes: [],
  network: [],
  platform: [],
  json: ['bytes'],
  domain: ['bytes'],
  record: ['domain', 'json'],
  drop: ['record', 'json', 'platform'],
  index: ['bytes', 'record', 'platform'],
  builder: ['bytes', 'index', 'drop', 'record', 'domain', 'platform', 'version'],
  policy: ['bytes', 'domain', 'record', 'network', 'json', 'platform'],
  ledger: ['json', 'network', 'platform', 'version'],
  license: ['json', 'platform'],
  register: ['json', 'platform'],
  config: ['json', 'network', 'platform'],
  server: [
    'bytes',
    'config',
    'index',
    'policy',
    'ledger',
    'license',
    'refresh',
    'domain',
    'record',
    'network',
    'platform',
    'version',
  ],
  // Runs in the agent's process. It shares the policy engine and its dependencies with the server.
  guard: ['policy', 'domain', 'network', 'platform'],
  'refresh-steps': ['builder', 'config', 'drop', 'index', 'ledger', 'license', 'refresh', 'server'],
  doctor: [
    'refresh-steps',
    'config',
    'domain',
    'index',
    'ledger',
    'license',
    'network',
    'platform',
    'record',
    'refresh',
    'server',
  ],
  console: [
    'bytes',
    'refresh-steps',
    'config',
    'doctor',
    'domain',
    'index',
    'ledger',
    'license',
    'network',
    'platform',
    'policy',
    'record',
    'refresh',
    'server',
    'version',
  ],
  refresh: ['config', 'drop', 'json', 'platform'],
};

/** With more files in one folder, finding one by eye takes too long. */
const FOLDER_MAX_FILES = 15;

/** Only these may import every module. */
const OPEN = new Set(['commands', 'cli']);

/** Package → the only file that imports it. Other packages may be used anywhere. */
const ONE_IMPORTER: Readonly<Record<string, string>> = {
  koffi: 'src/platform/libc.ts',
  'better-sqlite3': 'src/platform/sqlite.ts',
  'uWebSockets.js': 'src/server/uws.ts',
  tldts: 'src/domain/public-suffix.ts',
  'xxhash-wasm': 'src/index/format/checksum.ts',
  msgpackr: 'src/index/format/metadata.ts',
};

/** Modules with access to files, network or processes. The policy must not use them, except to load its files. */
const OUTSIDE =
  /^node:(?:fs|fs\/promises|net|tls|dns|dns\/promises|http|https|http2|dgram|child_process|cluster|worker_threads|os|sqlite)$/;
const POLICY_LOADER = 'src/policy/load.ts';

const sources = sourcesUnder('src');
const imports = sources.flatMap((path) => importsOf(path));

describe('imports', () => {
  it('reads imports of every kind', () => {
    const text = [
      "import { a } from './a.ts';",
      "import type { B } from '../index/b.ts';",
      "export { c } from './c.ts';",
      "import './d.ts';",
      "const e = await import('./e.ts');",
      "fork(new URL('./f.ts', import.meta.url));",
      "import {\n  g,\n} from 'ajv/dist/2020.js';",
      "const text = 'from here';",
    ].join('\n');
    expect(importsOf('src/server/x.ts', text).map((i) => i.to)).toEqual([
      'src/server/a.ts',
      'src/index/b.ts',
      'src/server/c.ts',
      'src/server/d.ts',
      'src/server/e.ts',
      'ajv/dist/2020.js',
      'src/server/f.ts',
    ]);
  });

  it('finds the modules', () => {
    expect(sources.length).toBeGreaterThan(20);
    expect(imports.length).toBeGreaterThan(50);
  });

  it('has a line for every module', () => {
    const modules = new Set(sources.map(moduleOf));
    expect([...modules].filter((module) => module !== undefined && !(module in ALLOWED) && !OPEN.has(module))).toEqual(
      [],
    );
  });

  it('lets a module import only what its line allows', () => {
    const wrong = imports.filter(({ from, to, inside }) => {
      const module = moduleOf(from) as string;
      const target = moduleOf(to);
      if (!inside || target === undefined || OPEN.has(module) || target === module || BASE.has(target)) return false;
      return !ALLOWED[module]?.includes(target);
    });
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it('goes down the layers of docs/development.md, and to the right within one', () => {
    const place = textOf('docs/development.md').split('| layer | modules |')[1]?.split('\n\n')[0] ?? '';
    const order = [...place.matchAll(/`([\w-]+)`/g)].map(([, module = '']) => module);
    expect([...order].sort()).toEqual([...Object.keys(ALLOWED), ...OPEN].sort());
    const wrong = imports.filter(({ from, to, inside }) => {
      const [module = '', target] = [moduleOf(from), moduleOf(to)];
      return inside && target !== undefined && order.indexOf(target) < order.indexOf(module);
    });
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it('grants nothing unused', () => {
    const used = new Set(
      imports.filter(({ inside }) => inside).map(({ from, to }) => `${moduleOf(from)} ${moduleOf(to)}`),
    );
    const unused = Object.entries(ALLOWED).flatMap(([module, granted]) =>
      granted.filter((target) => !used.has(`${module} ${target}`)).map((target) => `${module} may import ${target}`),
    );
    expect(unused).toEqual([]);
  });

  it('lets a module import from another one only files at the top of its folder', () => {
    const wrong = imports.filter(({ from, to, inside }) => {
      const [program, target] = [moduleOf(from), moduleOf(to)];
      if (!inside || target === undefined || target === program || to.split('/').length <= 3) return false;
      return !(program === 'cli' && target === 'commands');
    });
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it('has at most fifteen files directly in a folder, except for one file per command', () => {
    const counts = new Map<string, number>();
    for (const path of sources) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
    counts.delete('src/commands');
    expect([...counts].filter(([, count]) => count > FOLDER_MAX_FILES)).toEqual([]);
  });

  it('lets only the program import commands, and nothing in src import tools, bench or test', () => {
    const wrong = imports.filter(({ from, to, inside }) => {
      if (!inside) return false;
      if (to.startsWith('src/commands/')) return !/^src\/(?:commands\/|cli\.ts$)/.test(from);
      return !to.startsWith('src/') && !to.endsWith('.json');
    });
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it('lets tools import nothing from bench or test, and bench nothing from test', () => {
    const outer = ['tools', 'bench'].flatMap((folder) => sourcesUnder(folder).flatMap((path) => importsOf(path)));
    expect(outer.length).toBeGreaterThan(100);
    const wrong = outer.filter(
      ({ from, to }) => to.startsWith('test/') || (from.startsWith('tools/') && to.startsWith('bench/')),
    );
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it('has no circular imports of modules', () => {
    const reach = (module: string): Set<string> => {
      const seen = new Set<string>();
      const visit = (next: string): void => {
        for (const to of ALLOWED[next] ?? []) {
          if (seen.has(to)) continue;
          seen.add(to);
          visit(to);
        }
      };
      visit(module);
      return seen;
    };
    expect(Object.keys(ALLOWED).filter((module) => reach(module).has(module))).toEqual([]);
  });

  it('has no circular imports of files, including types', () => {
    const next = new Map<string, string[]>();
    for (const { from, to, inside, isStarted } of ['src', 'tools', 'bench'].flatMap((top) =>
      sourcesUnder(top).flatMap((path) => importsOf(path)),
    ))
      if (inside && !isStarted) next.set(from, [...(next.get(from) ?? []), to]);
    const done = new Set<string>();
    const circles: string[] = [];
    const visit = (path: string, way: readonly string[]): void => {
      if (way.includes(path)) circles.push([...way.slice(way.indexOf(path)), path].join(' → '));
      if (done.has(path)) return;
      done.add(path);
      for (const to of next.get(path) ?? []) visit(to, [...way, path]);
    };
    for (const path of next.keys()) visit(path, []);
    expect(circles).toEqual([]);
  });

  it.each(Object.entries(ONE_IMPORTER))('lets one file import %s', (name, file) => {
    const users = imports.filter(({ to, inside }) => !inside && packageOf(to) === name).map(({ from }) => from);
    expect([...new Set(users)]).toEqual([file]);
  });

  it('keeps the policy away from files and the network, except for its loader', () => {
    const wrong = imports.filter(
      ({ from, to }) =>
        moduleOf(from) === 'policy' && from !== POLICY_LOADER && (OUTSIDE.test(to) || moduleOf(to) === 'platform'),
    );
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it('imports only existing files, and built-in modules by their node: name', () => {
    const wrong = imports.filter(({ to, inside }) => inside && !existsSync(join(ROOT, to)));
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it('uses no package that package.json does not pin, and pins no unused one', async () => {
    const manifest = (await import('../../package.json', { with: { type: 'json' } })).default;
    const used = new Set(imports.filter((i) => !i.inside && !i.to.startsWith('node:')).map((i) => packageOf(i.to)));
    expect([...used].sort()).toEqual(Object.keys(manifest.dependencies).sort());
  });
});

describe('files without an importer', () => {
  it('do not exist in src', () => {
    const imported = new Set(imports.map((i) => i.to));
    const entries = ['src/cli.ts', 'src/guard/exports.ts', 'src/guard/local-verdicts.ts'];
    expect(sources.filter((path) => !entries.includes(path) && !imported.has(path))).toEqual([]);
  });
});
