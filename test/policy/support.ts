/** Helpers for the tests of the policy. They write a verdict as `deny rules/login`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseTarget } from '../../src/domain/target.ts';
import type { LicenseeDocument } from '../../src/policy/documents.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import { loadPolicy } from '../../src/policy/load.ts';
import type { Policy } from '../../src/policy/policy.ts';
import type { Evidence, Request } from '../../src/policy/types.ts';
import { withTempDirectory } from '../support/tiny-index.ts';

export const shipped = loadPolicy();

export interface Known {
  readonly found?: boolean;
  readonly parentFound?: boolean;
  readonly pages?: Readonly<Record<string, string>>;
  readonly categories?: readonly string[];
}

export function evidence(known: Known = {}): Evidence {
  const pages = Object.entries(known.pages ?? {}).map(([type, url]) => ({ type, url }));
  return {
    found: known.found ?? true,
    parentFound: known.parentFound ?? false,
    pages: () => pages,
    filteringCategories: () => known.categories ?? [],
  };
}

export function request(value: string, method = 'GET'): Request {
  const target = parseTarget(value);
  if ('problem' in target) throw new Error(`${value}: ${target.problem}`);
  return { url: target.url, method };
}

/** Returns `verdict layer/id` for a value, or `refused` if the answer is 400. A host is classified unless the test says otherwise. */
export function judge(value: string, known: Known = {}, method = 'GET', policy: Policy = shipped): string {
  const target = parseTarget(value);
  if ('problem' in target) return 'refused';
  const { verdict, layer, id } = evaluate(policy, { url: target.url, method }, evidence(known));
  return `${verdict} ${layer}/${id}`;
}

/** Returns a policy with a licensee's file on top, which is read from disk like a real one. */
export function licenseePolicy(
  document: Omit<LicenseeDocument, 'format'> | Record<string, unknown>,
  profile?: string,
): Policy {
  return withFile(JSON.stringify({ format: 'pagegate-policy/1', ...document }), (file) =>
    loadPolicy({ file, profile }),
  );
}

/** Runs a task with a file of the given content, and removes it afterwards. */
export function withFile<T>(text: string | Uint8Array, task: (file: string) => T): T {
  return withTempDirectory((directory) => {
    const file = join(directory, 'policy.json');
    writeFileSync(file, text);
    return task(file);
  });
}
