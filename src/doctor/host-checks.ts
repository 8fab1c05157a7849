/** Checks what the program needs from the host before it has any data. */
import { readFileSync, statfsSync, statSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { dirname } from 'node:path';
import type { Config } from '../config/config.ts';
import { counted } from '../counted.ts';
import { type Check, type CheckOutcome, ok, problem, skipped, warning } from './check.ts';

const NODE_MAJOR = 24;
/** Open files besides the connections: index, ledger, log, sockets, standard streams. */
const FILES_BESIDE_CONNECTIONS = 128;
const GIB = 2 ** 30;
const MIB = 2 ** 20;
const SMALL_MEMORY_BYTES = 512 * 2 ** 20;
/** The program did not exist before this date, so an earlier clock is wrong. */
const CLOCK_EARLIEST_MS = Date.UTC(2026, 0, 1);

function checkPlatform(): CheckOutcome {
  const { platform, arch, versions } = process;
  const found = `${platform} ${arch}, Node.js ${versions.node}`;
  if (platform !== 'linux' || (arch !== 'x64' && arch !== 'arm64')) {
    return problem(found, 'The transport and the memory mapping need Linux on x64 or arm64.');
  }
  if (Number(versions.node.split('.')[0]) === NODE_MAJOR) return ok(found);
  return problem(found, `Start the program with src/pagegate, which uses Node.js ${NODE_MAJOR}.`);
}

async function checkTransport(): Promise<CheckOutcome> {
  const { GLIBC, glibcVersion, isOlderGlibc, loadUws } = await import('../server/uws.ts');
  const glibc = glibcVersion();
  if (glibc === undefined) return problem('no glibc', 'Use a distribution with glibc, such as Debian 12 or later.');
  if (isOlderGlibc(glibc, GLIBC.oldest))
    return problem(`glibc ${glibc}`, `The transport needs glibc ${GLIBC.oldest.join('.')} or newer.`);
  loadUws();
  const adapted = isOlderGlibc(glibc, GLIBC.own);
  return ok(`glibc ${glibc}, transport loaded${adapted ? ' (the copy for older glibc)' : ''}`);
}

async function checkMapping(): Promise<CheckOutcome> {
  const { openSync, closeSync } = await import('node:fs');
  const { mapFile, PAGE_SIZE_BYTES } = await import('../platform/libc.ts');
  const fd = openSync('/proc/self/exe', 'r');
  try {
    const mapping = mapFile(fd, PAGE_SIZE_BYTES);
    const magic = Buffer.from(mapping.buffer.slice(1, 4)).toString('latin1');
    mapping.unmap();
    return magic === 'ELF'
      ? ok('files can be mapped')
      : problem('a mapping reads wrong bytes', 'Report this as a defect.');
  } finally {
    closeSync(fd);
  }
}

function limitOf(name: string): number | undefined {
  const line = readFileSync('/proc/self/limits', 'utf8')
    .split('\n')
    .find((text) => text.startsWith(name));
  const soft = line?.slice(name.length).trim().split(/\s+/)[0];
  return soft === undefined ? undefined : soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
}

function checkLimits(config: Config): CheckOutcome {
  const files = limitOf('Max open files');
  const space = limitOf('Max address space');
  if (files === undefined || space === undefined) return skipped('/proc/self/limits cannot be read');
  const needed = config.server.max_connections + FILES_BESIDE_CONNECTIONS;
  const found = `${files} open files, address space ${space === Number.POSITIVE_INFINITY ? 'unlimited' : space}`;
  if (space !== Number.POSITIVE_INFINITY) {
    return warning(found, 'An index larger than the address space cannot be mapped: use "ulimit -v unlimited".');
  }
  if (files >= needed) return ok(found);
  return warning(found, `server.max_connections may need up to ${needed}: raise the limit (LimitNOFILE, ulimit -n).`);
}

function memoryLimit(): number {
  for (const path of ['/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes']) {
    try {
      const value = Number(readFileSync(path, 'utf8'));
      if (value > 0 && value < totalmem()) return value;
    } catch {
      // There is no such control group: try the next path.
    }
  }
  return totalmem();
}

function checkMemory(config: Config): CheckOutcome {
  const memory = memoryLimit();
  const found = `${(memory / GIB).toFixed(1)} GiB of memory, ${availableParallelism()} processors`;
  if (memory < SMALL_MEMORY_BYTES) return warning(found, 'Provide at least 512 MiB; a build needs 256 MB.');
  const { workers } = config.server;
  if (workers === 'auto' || workers <= availableParallelism()) return ok(found);
  return warning(found, `server.workers is ${workers}: more workers than processors make the server slower.`);
}

function checkClock(): CheckOutcome {
  const now = Date.now();
  const found = new Date(now).toISOString();
  if (now < CLOCK_EARLIEST_MS) {
    return problem(
      found,
      'The clock is years behind: set it. Otherwise quota cycles and certificate checks are wrong.',
    );
  }
  const synchronized = statSync('/run/systemd/timesync/synchronized', { throwIfNoEntry: false }) !== undefined;
  return ok(synchronized ? `${found}, synchronized` : found);
}

/** A ledger's write-ahead log grows by a few megabytes between two checkpoints. */
const LEDGER_NEEDS_BYTES = 8 * MIB;

/** Files of a generation, of a ledger with its side files, and of a running server. */
const FILES_NEEDED = 32;

/** Magic numbers of file systems that lose their contents, for example at a reboot. */
const VOLATILE_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
  [0x794c7630, 'an overlay of a container'],
]);

/** Returns the nearest parent folder that exists. */
function existingParent(path: string): string {
  let at = path;
  while (statSync(at, { throwIfNoEntry: false }) === undefined && dirname(at) !== at) at = dirname(at);
  return at;
}

async function checkFileSystems(config: Config): Promise<CheckOutcome[]> {
  const { statePaths } = await import('../config/paths.ts');
  const { refuseNetworkFileSystem } = await import('../ledger/check.ts');
  const { ledgerFile, indexDir } = statePaths(config);
  const ledgerDir = existingParent(dirname(ledgerFile));
  refuseNetworkFileSystem(ledgerDir);
  const { type, bavail, bsize, files, ffree } = statfsSync(ledgerDir);
  const findings: CheckOutcome[] = [];
  const kind = VOLATILE_FILE_SYSTEMS.get(type >>> 0);
  if (kind !== undefined)
    findings.push(
      warning(`the ledger is on ${kind}`, 'The ledger is lost with it: put state_dir on a disk or a volume.'),
    );
  if (bavail * bsize < LEDGER_NEEDS_BYTES) {
    const found = `the disk of ${ledgerDir} is full: ${Math.floor((bavail * bsize) / MIB)} MiB are free`;
    findings.push(
      problem(found, 'Free some space: otherwise the ledger cannot be written, and every lookup gets 503.'),
    );
  }
  // Some file systems create inodes on demand and report a total of 0.
  if (files > 0 && ffree < FILES_NEEDED) {
    const found = `the disk of ${ledgerDir} can hold ${counted(ffree, 'more file')}: its inodes are used up`;
    findings.push(
      problem(found, 'Remove files there (df -i): without inodes nothing can be written, even with free space.'),
    );
  }
  if (findings.length > 0) return findings;
  const forIndex = statfsSync(existingParent(indexDir));
  const free = ((forIndex.bavail * forIndex.bsize) / GIB).toFixed(1);
  return [ok(`local, ${free} GiB free for index generations`)];
}

export const HOST_CHECKS: readonly Check[] = [
  { id: 'platform', run: checkPlatform },
  { id: 'transport', run: checkTransport },
  { id: 'mapping', run: checkMapping },
  { id: 'limits', run: checkLimits },
  { id: 'memory', run: checkMemory },
  { id: 'clock', run: checkClock },
  { id: 'file_systems', run: checkFileSystems },
];
