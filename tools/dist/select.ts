/** Which files of the checkout go into the distribution. */
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface LockedPackage {
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: string | readonly string[];
  readonly cpu?: string | readonly string[];
}

export interface Lockfile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

/** Folders and files of the program itself. */
export const PROGRAM = [
  'src',
  'data',
  'docs',
  'tools/glibc',
  'tools/integrations',
  'tools/packaging',
  'README.md',
  'CHANGELOG.md',
  'LICENSE',
  'package.json',
] as const;

const fits = (allowed: string | readonly string[] | undefined, value: string): boolean =>
  allowed === undefined || [allowed].flat().includes(value);

/** Paths of the packages that run the program on one platform, such as `node_modules/koffi`. */
export function productionPackages(lock: Lockfile, cpu: string): string[] {
  return Object.entries(lock.packages)
    .filter(([path, entry]) => path !== '' && entry.dev !== true && fits(entry.os, 'linux') && fits(entry.cpu, cpu))
    .map(([path]) => path)
    .sort();
}

/** What packages carry beside what runs: sources of their binaries, types, builds for other platforms. */
function isDeadWeight(path: string, cpu: string): boolean {
  const inside = path.slice('node_modules/'.length);
  if (/\.(?:d\.[cm]?ts|map|markdown)$/.test(path) || /\/(?:CHANGELOG|HISTORY)\.md$/.test(path)) return true;
  if (inside.startsWith('uWebSockets.js/uws_')) return !new RegExp(`/uws_linux_${cpu}_137\\.`).test(path);
  if (inside.startsWith('better-sqlite3/prebuilds/')) return !inside.endsWith(`/linux-${cpu}.node`);
  if (/^(?:better-sqlite3\/(?:deps|src)|koffi\/(?:vendor|doc))\//.test(inside)) return true;
  if (inside.startsWith('koffi/src/')) return !/\.(?:[cm]?js|json)$/.test(inside);
  if (/musl/.test(inside) && inside.endsWith('.node')) return true;
  return /^node-linux-[^/]+\/(?:include|share)\//.test(inside);
}

function* filesBelow(root: string, path: string): Generator<string> {
  const stats = lstatSync(join(root, path), { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (stats.isFile()) yield path;
  else if (stats.isDirectory()) {
    // What Python leaves beside its sources is not part of them.
    const names = readdirSync(join(root, path)).filter((name) => name !== '__pycache__');
    for (const name of names.sort()) yield* filesBelow(root, `${path}/${name}`);
  }
}

/** All files of the distribution, relative to the checkout, sorted. Throws where a package that is needed is not installed. */
export function selectFiles(root: string, cpu: string): string[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lockfile;
  const files: string[] = PROGRAM.flatMap((path) => [...filesBelow(root, path)]);
  for (const path of productionPackages(lock, cpu)) {
    if (!existsSync(join(root, path, 'package.json'))) {
      if (lock.packages[path]?.optional === true && !path.includes(`linux-${cpu}`)) continue;
      throw new Error(`${path} is not installed: run "make install" on a host with the platform linux ${cpu}`);
    }
    files.push(...[...filesBelow(root, path)].filter((file) => !isDeadWeight(file, cpu)));
  }
  return files.sort();
}
