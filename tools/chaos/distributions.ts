/** Creates versions of the program side by side, with a link to the one in use, as an operator unpacks and switches them. Some are broken. */
import { cpSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fillDistribution } from '../dist/make-dist.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** A defect of a version: in one of its files, the text `from` is replaced by `to`. */
export interface DistributionFault {
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** A part of the message with which the running server refuses it. A version that is refused for another reason has not reached its defect. */
  readonly refusal: string;
  /** The running server gives it up only after the timeout. */
  readonly hangs?: true;
  /** Its workers die and cut their connections. No other fault may cost a client its answer. */
  readonly cutsConnections?: true;
}

const TAKEN = 'const taken = await predecessor.take;';
const LISTENING = 'predecessor.ready(await readiness(parts)';

/** Versions that must not take over. */
export const DISTRIBUTION_FAULTS: Readonly<Record<string, DistributionFault>> = {
  'is not a program': {
    file: 'src/cli.ts',
    from: 'import ',
    to: 'this is no program; import ',
    refusal: 'It ended with code 1 ',
  },
  'ends at once': {
    file: 'src/cli.ts',
    from: 'if (import.meta.main)',
    to: 'process.exit(0);\nif (import.meta.main)',
    refusal: 'It ended with code 0 ',
  },
  'hangs at once': {
    file: 'src/cli.ts',
    from: 'if (import.meta.main)',
    to: 'for (;;);\nif (import.meta.main)',
    refusal: 'It did not say "hello" in time',
    hangs: true,
  },
  'has another counters version': {
    file: 'src/ledger/counters/counters.ts',
    from: 'export const COUNTERS_VERSION = ',
    to: 'export const COUNTERS_VERSION = 9',
    refusal: ' of the shared counters, this one ',
  },
  'has another ledger version': {
    file: 'src/ledger/store/migrations.ts',
    from: 'export const LEDGER_VERSION: number = MIGRATIONS.length',
    to: 'export const LEDGER_VERSION: number = MIGRATIONS.length + 1',
    refusal: ' of the ledger, this one ',
  },
  'ends when its workers listen': {
    file: 'src/server/server.ts',
    from: LISTENING,
    to: `process.exit(11);\n${LISTENING}`,
    refusal: 'It ended with code 11 ',
  },
  'hangs when its workers listen': {
    file: 'src/server/server.ts',
    from: LISTENING,
    to: `for (;;);\n${LISTENING}`,
    refusal: 'It did not say "ready" in time',
    hangs: true,
  },
  'ends with the ledger writer’s place': {
    file: 'src/server/server.ts',
    from: TAKEN,
    to: `${TAKEN}\nprocess.exit(12);`,
    refusal: 'It ended with code 12 ',
  },
  'has workers that die': {
    file: 'src/server/request/check-handler.ts',
    from: '  handle(res: HttpResponse, req: HttpRequest): void {\n',
    to: '  handle(res: HttpResponse, req: HttpRequest): void {\n    process.exit(1);\n',
    refusal: 'a worker died',
    cutsConnections: true,
  },
  'has workers that cannot start': {
    file: 'src/server/process/worker-process.ts',
    from: '    await worker.listen(port);\n',
    to: "    throw new Error('This version has none.');\n",
    refusal: 'This version has none.',
  },
};

/** A folder with several versions of the program. */
export class Distributions {
  readonly #folder: string;
  readonly #packed: boolean;

  /** @param packed creates complete distributions, as `make dist` packs them; otherwise versions share data and packages with this checkout. */
  constructor(folder: string, packed: boolean) {
    this.#folder = folder;
    this.#packed = packed;
  }

  /** The path of the program in use. */
  get program(): string {
    return join(this.#folder, 'pagegate/pagegate');
  }

  /** Creates a version from this checkout, with its own version number and, if given, a fault. */
  async make(version: string, fault?: DistributionFault): Promise<void> {
    const home = join(this.#folder, `pagegate-${version}`);
    mkdirSync(home, { recursive: true });
    if (this.#packed && fault === undefined) await fillDistribution(home, process.arch);
    else {
      cpSync(join(ROOT, 'src'), join(home, 'src'), { recursive: true });
      for (const name of ['data', 'node_modules']) symlinkSync(join(ROOT, name), join(home, name));
      cpSync(join(ROOT, 'package.json'), join(home, 'package.json'));
      symlinkSync('src/pagegate', join(home, 'pagegate'));
    }
    const manifest = readFileSync(join(home, 'package.json'), 'utf8');
    writeFileSync(join(home, 'package.json'), JSON.stringify({ ...JSON.parse(manifest), version }));
    if (fault === undefined) return;
    const text = readFileSync(join(home, fault.file), 'utf8');
    if (!text.includes(fault.from)) throw new Error(`${fault.file} has no "${fault.from}" any more`);
    writeFileSync(join(home, fault.file), text.replace(fault.from, fault.to));
  }

  /** Switches to a version. */
  use(version: string): void {
    const link = join(this.#folder, 'pagegate');
    symlinkSync(`pagegate-${version}`, `${link}.new`);
    renameSync(`${link}.new`, link);
  }
}
