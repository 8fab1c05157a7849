/** Creates installations for tests and tools: a state directory with license, keys and configuration, and synthetic drops for the real program. */
import { execFile } from 'node:child_process';
import { createPrivateKey, hash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { signManifest } from '../src/drop/signature.ts';
import { createLicenseKey, issueLicense } from '../src/license/license.ts';
import { VOCABULARY_NAME, VOCABULARY_VERSION } from '../src/record/vocabulary.ts';
import { removeCountersOf } from './remove-counters.ts';

export const PAGEGATE = fileURLToPath(new URL('../src/pagegate', import.meta.url));
const run = promisify(execFile);

/** The fields that tests read from the JSON output of commands. A failure has `error`. */
export interface Report {
  readonly error?: string;
  readonly outcome?: string;
  readonly reused?: boolean;
  readonly ok?: boolean;
  readonly generations?: readonly object[];
  readonly checks?: readonly { readonly id: string; readonly status: string; readonly advice?: string }[];
  readonly removed_litter?: readonly string[];
  readonly key?: string;
  readonly quota_used?: number;
  readonly workers?: readonly { readonly pid: number; readonly data?: string | null }[];
}

export interface CommandOutcome {
  readonly code: number;
  /** An empty object if the output is not JSON. */
  readonly json: Report;
  readonly stderr: string;
}

export interface DropSpec {
  readonly revision: number;
  readonly dataset?: string;
  /** Number of synthetic domains. */
  readonly domains?: number;
  /** The verified pages of each domain; by default one whose URL contains the revision. */
  readonly pages?: (domain: string) => Readonly<Record<string, string>>;
  /** Changes the part after its hash was put into the manifest. */
  readonly damage?: (part: Buffer) => Buffer;
  /** Changes the part before its hash is put into the manifest. */
  readonly prepare?: (part: Buffer) => Buffer;
}

export interface Installation {
  readonly root: string;
  readonly state: string;
  readonly store: string;
  readonly configFile: string;
  /** Writes a signed drop to a folder of that name, and returns the folder's path. */
  drop(name: string, spec: DropSpec): string;
  /** Runs the program with `--config` and `--json`. On a failure, the JSON is read from its standard error. */
  pagegate(...args: string[]): Promise<CommandOutcome>;
  remove(): void;
}

/** The default page of a domain in the drop of a revision. */
export const pageOf = (domain: string, revision: number): string => `https://${domain}/pricing-${revision}`;

export const domainOf = (i: number): string => `site-${i}.example.com`;

export interface InstallationOptions {
  /** Additional settings for the configuration. */
  readonly config?: object;
  /** The dataset that the license covers; `test` by default. */
  readonly dataset?: string;
}

export function createInstallation({ config, dataset: licensed = 'test' }: InstallationOptions = {}): Installation {
  const root = mkdtempSync(join(tmpdir(), 'pagegate-installation-'));
  const vendor = createLicenseKey();
  const state = join(root, 'state');
  mkdirSync(join(state, 'license'), { recursive: true });
  const entitlement = { kind: 'refreshes_until', until: '2099-01-01' } as const;
  const terms = { licensee: 'Test', dataset: licensed, entitlement };
  writeFileSync(join(state, 'license/license.json'), issueLicense(terms, vendor.privateKey, 'vendor'));
  const configFile = join(root, 'config.json');
  const trusted = { trusted_keys: { vendor: vendor.publicKey } };
  writeFileSync(configFile, JSON.stringify({ state_dir: state, license: trusted, refresh: trusted, ...config }));
  return {
    root,
    state,
    store: join(state, 'index'),
    configFile,
    drop(name, { revision, dataset = 'test', domains = 200, pages, damage, prepare }) {
      const pagesOf = pages ?? ((domain) => ({ pricing: pageOf(domain, revision) }));
      const folder = join(root, name);
      mkdirSync(folder, { recursive: true });
      const lines = Array.from({ length: domains }, (_, i) => {
        const domain = domainOf(i);
        return JSON.stringify({ domain, language: 'en', page_types: pagesOf(domain) });
      });
      const packed = gzipSync(`${lines.join('\n')}\n`, { level: 1 });
      const part = prepare?.(packed) ?? packed;
      const manifest = Buffer.from(
        JSON.stringify({
          format: 'pagegate-drop/1',
          dataset,
          revision,
          created: '2026-01-02T03:04:05Z',
          kind: 'full',
          vocabulary: { name: VOCABULARY_NAME, version: VOCABULARY_VERSION },
          page_types: 'complete',
          files: [{ name: 'part.ndjson.gz', bytes: part.length, records: domains, sha256: hash('sha256', part) }],
        }),
      );
      writeFileSync(join(folder, 'part.ndjson.gz'), damage?.(part) ?? part);
      writeFileSync(join(folder, 'manifest.json'), manifest);
      writeFileSync(join(folder, 'manifest.json.sig'), signManifest(manifest, createPrivateKey(vendor.privateKey)));
      return folder;
    },
    async pagegate(...args) {
      try {
        const { stdout, stderr } = await run(PAGEGATE, [...args, '--config', configFile, '--json'], {
          timeout: 300_000,
        });
        return { code: 0, json: JSON.parse(stdout), stderr };
      } catch (error) {
        const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
        const text = stdout === '' ? stderr : stdout;
        return { code, json: text.startsWith('{') ? JSON.parse(text) : {}, stderr };
      }
    },
    remove: () => {
      removeCountersOf(state);
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Writes a drop and refreshes an installation with it. @throws Error if the refresh fails */
export async function activate(place: Installation, spec: DropSpec): Promise<void> {
  const { code, stderr } = await place.pagegate('refresh', place.drop(`r${spec.revision}`, spec));
  if (code !== 0) throw new Error(`the refresh to revision ${spec.revision} failed: ${stderr}`);
}
