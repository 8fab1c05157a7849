/**
 * `make dist`: a tarball with the runtime, the dependencies and the program, that runs on an offline host after unpacking;
 * it is tried so at the end; and the packages of the client side. The same checkout gives the same bytes. Needs GNU tar.
 */
import { createHash } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';
import { chmod, copyFile, cp, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { compatibleName, makeCompatible } from '../glibc/install.ts';
import { readOptions } from '../options.ts';
import { NPM_PACKAGES, packNpm } from './npm-package.ts';
import { selectFiles } from './select.ts';
import { pack } from './tarball.ts';
import { tryTarball } from './try-dist.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** The oldest glibc that the transport's adapted copy serves; the copy is made for it whatever this host has. */
const OLDEST_GLIBC = '2.36';

async function sha256(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

async function copyTree(folder: string, files: readonly string[]): Promise<void> {
  for (const file of files) {
    const target = join(folder, file);
    await mkdir(dirname(target), { recursive: true });
    await copyFile(join(ROOT, file), target);
    const executable = ((await stat(join(ROOT, file))).mode & 0o100) !== 0;
    await chmod(target, executable ? 0o755 : 0o644);
  }
}

/** Fills a folder with the distribution; returns its files, relative to it. */
export async function fillDistribution(folder: string, cpu: string): Promise<string[]> {
  const files = selectFiles(ROOT, cpu);
  await copyTree(folder, files);
  const binary = `uws_linux_${cpu}_137.node`;
  const outcome = makeCompatible(join(folder, 'node_modules/uWebSockets.js'), OLDEST_GLIBC, binary);
  if (outcome.status === 'failed') throw new Error(outcome.message);
  const extra = `node_modules/uWebSockets.js/${compatibleName(binary)}`;
  await chmod(join(folder, extra), 0o644);
  await mkdir(join(folder, 'node_modules/.bin'), { recursive: true });
  await symlink(`../node-linux-${cpu}/bin/node`, join(folder, 'node_modules/.bin/node'));
  await symlink('src/pagegate', join(folder, 'pagegate'));
  await cp(join(ROOT, 'tools/dist/INSTALL.md'), join(folder, 'INSTALL.md'));
  await writeFile(join(folder, 'THIRD-PARTY.md'), thirdParty(folder, files), { mode: 0o644 });
  return [...new Set([...files, extra, 'INSTALL.md', 'THIRD-PARTY.md'])].sort();
}

/** What is in the tarball beside the program: name, version, license, and where its license text is. */
function thirdParty(folder: string, files: readonly string[]): string {
  const rows = files
    .filter((file) => /^node_modules\/(?:@[^/]+\/)?[^/@]+\/package\.json$/.test(file))
    .map((file) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Record<string, string>;
      const directory = dirname(file);
      const text = files.find((one) => dirname(one) === directory && /\/licen[cs]e(?:\.(?:md|txt))?$/i.test(one));
      return `| ${name} | ${version} | ${license ?? 'see its files'} | ${text ?? 'its license names the text'} |`;
    });
  const head = ['# What comes with pagegate', '', '| package | version | license | text |', '|---|---|---|---|'];
  const transport = 'uWebSockets.js is under the Apache License 2.0; its text is the file LICENSE of this folder.';
  return `${[...head, ...rows, '', transport].join('\n')}\n`;
}

async function writeChecksums(folder: string, files: readonly string[]): Promise<void> {
  const lines: string[] = [];
  for (const file of files) lines.push(`${await sha256(join(folder, file))}  ${file}\n`);
  await writeFile(join(folder, 'SHA256SUMS'), lines.join(''), { mode: 0o644 });
}

async function main(): Promise<void> {
  const { values } = await readOptions('Usage: node tools/dist/make-dist.ts [--out DIR]', { out: join(ROOT, 'dist') });
  const cpu = process.arch;
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const name = `pagegate-${version}-linux-${cpu}`;
  await mkdir(values.out, { recursive: true });
  const parent = await mkdtemp(join(tmpdir(), 'pagegate-dist-'));
  try {
    const folder = join(parent, name);
    const files = await fillDistribution(folder, cpu);
    await writeChecksums(folder, files);
    const tarball = join(values.out, `${name}.tar.gz`);
    pack(parent, name, tarball);
    const checksum = await sha256(tarball);
    await writeFile(`${tarball}.sha256`, `${checksum}  ${name}.tar.gz\n`);
    const { size } = await stat(tarball);
    process.stdout.write(
      `${tarball}: ${files.length} files, ${size.toLocaleString('en-US')} bytes, SHA-256 ${checksum}\n`,
    );
    tryTarball(tarball);
    for (const spec of NPM_PACKAGES) {
      const path = await packNpm(spec, values.out);
      process.stdout.write(`${path}: ${(await stat(path)).size.toLocaleString('en-US')} bytes\n`);
    }
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
}

if (import.meta.main) await main();
