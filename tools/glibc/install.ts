/**
 * Run at the end of `make install`: on a host whose glibc is older than 2.38, makes a copy of the uWebSockets.js binary that loads there.
 * It edits only the binary it knows by checksum, writes beside the original, says what it did, and does nothing on newer hosts.
 * The binaries of uWebSockets.js need a recent glibc; upstream leaves older ones to whoever needs them (uNetworking/uWebSockets.js#218).
 * This folder can go with Debian 12 (glibc 2.36), whose long-term support ends in June 2028.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GLIBC, glibcVersion, isOlderGlibc } from '../../src/server/uws.ts';
import { ElfError, relaxGlibcNeed } from './elf.ts';

/** SHA-256 of the binaries of uWebSockets.js 20.57.0 for Node 24, as its package ships them. */
const KNOWN_BINARIES: Readonly<Record<string, string>> = {
  'uws_linux_x64_137.node': '98128405dba2fb608448e921a979530f70c946a2cc9889c15f2fa70c2d00ab05',
  'uws_linux_arm64_137.node': '88618b30ddf6b2b62310db89f40a701616676352aac5e0f6184dd8ef876199ce',
};

/** What was found and done, in one line; `failed` where the server cannot run on this host. */
export interface InstallOutcome {
  readonly status: 'not_needed' | 'made' | 'already_made' | 'failed';
  readonly message: string;
}

/** The name of the edited copy; `src/server/uws.ts` looks for it beside the original. */
export function compatibleName(fileName: string): string {
  return fileName.replace(/\.node$/, '.glibc-compat.node');
}

/**
 * Makes the compatible copy where the host needs one.
 * @param directory the folder of the package uWebSockets.js
 * @param glibc the host's version, such as `2.36`; undefined where there is no glibc
 */
export function makeCompatible(
  directory: string,
  glibc: string | undefined,
  fileName: string,
  known = KNOWN_BINARIES,
): InstallOutcome {
  if (glibc === undefined)
    return { status: 'failed', message: 'this host has no glibc; uWebSockets.js ships binaries for glibc only' };
  if (!isOlderGlibc(glibc, GLIBC.own))
    return { status: 'not_needed', message: `glibc ${glibc} loads uWebSockets.js as it is` };
  if (isOlderGlibc(glibc, GLIBC.oldest)) {
    return { status: 'failed', message: `glibc ${glibc} is too old: uWebSockets.js needs 2.36 (Debian 12) or newer` };
  }
  const source = join(directory, fileName);
  const target = join(directory, compatibleName(fileName));
  const image = readFileSync(source);
  const checksum = createHash('sha256').update(image).digest('hex');
  if (known[fileName] !== checksum) {
    return {
      status: 'failed',
      message: `${source} has the unknown SHA-256 ${checksum}; expected ${known[fileName] ?? 'none'}: not edited`,
    };
  }
  try {
    const edits = relaxGlibcNeed(image);
    if (existsSync(target) && readFileSync(target).equals(image)) {
      return { status: 'already_made', message: `glibc ${glibc}: ${target} is in place` };
    }
    writeFileSync(`${target}.tmp`, image, { mode: 0o644 });
    renameSync(`${target}.tmp`, target);
    return {
      status: 'made',
      message: `glibc ${glibc}: wrote ${target} (${edits.map((edit) => edit.what).join('; ')})`,
    };
  } catch (error) {
    if (!(error instanceof ElfError)) throw error;
    return { status: 'failed', message: `${source}: ${error.message}: not edited` };
  }
}

if (import.meta.main) {
  const fileName = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  const directory = fileURLToPath(new URL('../../node_modules/uWebSockets.js', import.meta.url));
  const outcome = makeCompatible(directory, glibcVersion(), fileName);
  const stream = outcome.status === 'failed' ? process.stderr : process.stdout;
  stream.write(`uWebSockets.js: ${outcome.message}\n`);
  process.exitCode = outcome.status === 'failed' ? 1 : 0;
}
