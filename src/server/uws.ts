/** The only import of uWebSockets.js: its types, and the code that loads it on this host. */
import type * as UwsModule from 'uWebSockets.js';
import { existsSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { messageOf, PagegateError } from '../errors.ts';
import { LIMITS } from '../limits.ts';

export type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from 'uWebSockets.js';

export type Uws = typeof UwsModule;

/** Environment variables that must be set before the transport is loaded. */
const ENVIRONMENT = { UWS_HTTP_MAX_HEADERS_SIZE: String(LIMITS.headersBytes.value) };

/** The glibc version that the transport's binaries are linked against (`own`), and the oldest that an adapted copy works with. */
export const GLIBC = { own: [2, 38], oldest: [2, 36] } as const;

let loaded: Uws | undefined;

/**
 * Loads the transport, once.
 *
 * @throws PagegateError transport_unavailable; its message lists what was tried
 */
export function loadUws(): Uws {
  if (loaded !== undefined) return loaded;
  Object.assign(process.env, ENVIRONMENT);
  const require = createRequire(import.meta.url);
  const glibc = glibcVersion();
  const { platform, arch, version, versions } = process;
  const host = `Node.js ${version} on ${platform} ${arch}, glibc ${glibc ?? 'none'}`;
  const binary = join(dirname(require.resolve('uWebSockets.js')), `uws_${platform}_${arch}_${versions.modules}.node`);
  if (!existsSync(binary)) {
    const advice = 'start the program with src/pagegate, which brings the Node.js that it needs';
    throw new PagegateError('transport_unavailable', `${host}: there is no ${binary}; ${advice}.`);
  }
  const problem = glibc !== undefined && isOlderGlibc(glibc, GLIBC.own) ? loadCompatible(require, binary) : '';
  try {
    loaded = require('uWebSockets.js') as Uws;
    // Otherwise every response has a header with the transport's name and version. The types lack this function.
    (loaded as Uws & { _cfg(setting: string): void })._cfg('silent');
    return loaded;
  } catch (cause) {
    const first = cause instanceof Error ? (cause.message.split('\n').at(-1) ?? '') : String(cause);
    throw new PagegateError('transport_unavailable', `${host}: ${first}. ${problem}`.trim(), {}, { cause });
  }
}

/** Version of the host's glibc; undefined on a host without it. */
export function glibcVersion(): string | undefined {
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return report.header?.glibcVersionRuntime;
}

/** Whether a glibc version, such as `2.36`, is older than another one. */
export function isOlderGlibc(version: string, [major, minor]: readonly [number, number]): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number);
  return ownMajor < major || (ownMajor === major && ownMinor < minor);
}

/** Loads the copy that the install step made for older hosts in place of the package's binary. Returns the problem, or ''. */
function loadCompatible(require: NodeJS.Require, original: string): string {
  const compatible = original.replace(/\.node$/, '.glibc-compat.node');
  if (!existsSync(compatible)) return `This host needs the adapted copy ${compatible}; "make install" makes it.`;
  const module = new Module(original);
  try {
    process.dlopen(module, compatible);
  } catch (cause) {
    return `The adapted copy does not load either: ${messageOf(cause)}.`;
  }
  require.cache[original] = Object.assign(module, { filename: original, loaded: true });
  return '';
}
