/**
 * A client that keeps records and judges on them (the guard's local verdicts) relies on one revision meaning one verdict everywhere. The
 * revision covers the engine by a number that a developer has to raise. This test detects when.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { parseTarget } from '../../src/domain/target.ts';
import type { PolicyDocument } from '../../src/policy/documents.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import { compilePolicy, POLICY_CODE_VERSION } from '../../src/policy/policy.ts';
import { type Evidence, NO_EVIDENCE } from '../../src/policy/types.ts';
import { pageTypes } from '../../src/record/vocabulary.ts';

/** A policy and URLs that never change, whatever lists and labeled pages ship. */
const { document, urls } = JSON.parse(
  gunzipSync(readFileSync(new URL('../data/engine.json.gz', import.meta.url))).toString('utf8'),
) as { readonly document: PolicyDocument; readonly urls: readonly string[] };

/** Digest of the verdicts of this version. After an intended change: raise POLICY_CODE_VERSION, and put the new digest here. */
const KNOWN = { version: 19, digest: '3c65ab5eb37ff721' };

test('the engine’s version is raised when its verdicts change', () => {
  const policy = compilePolicy({ ...document, warnings: [] });
  const types = pageTypes().map(({ name }) => name);
  const hash = createHash('sha256');
  let judged = 0;
  for (const [at, text] of urls.entries()) {
    const target = parseTarget(text);
    if ('problem' in target) continue;
    const classified: Evidence = {
      found: at % 2 === 0,
      parentFound: true,
      pages: () => [{ type: types[at % types.length]!, url: text }],
      filteringCategories: () => (at % 5 === 0 ? ['Gambling'] : []),
    };
    for (const evidence of [NO_EVIDENCE, classified]) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const { verdict, layer, id } = evaluate(policy, { url: target.url, method }, evidence);
        hash.update(`${verdict} ${layer}/${id}\n`);
        judged++;
      }
    }
  }
  expect(judged).toBeGreaterThan(6_000);
  expect({ version: POLICY_CODE_VERSION, digest: hash.digest('hex').slice(0, 16) }).toEqual(KNOWN);
});
