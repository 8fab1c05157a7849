/** Computes a verdict from high-value hosts, guard rules, the licensee's allow entries, verified pages, pattern rules and defaults. */
import { isFinal, LAYERS } from './layers/order.ts';
import type { Policy } from './policy.ts';
import { Subject } from './subject.ts';
import type { Evidence, Request, Verdict } from './types.ts';

/**
 * Returns the verdict for a URL and a method. A deny ends the evaluation. A flag is a floor: a later layer may raise it to deny,
 * but never lowers it. An allow entry of the licensee also ends the evaluation: with the floor if there is one, otherwise with allow.
 */
export function evaluate(policy: Policy, request: Request, evidence: Evidence): Verdict {
  const subject = new Subject(request, evidence, policy.tokens);
  let flag: Verdict | undefined;
  let allow: Verdict | undefined;
  for (let at = 0; at < LAYERS.length; at++) {
    const layer = LAYERS[at]!;
    // An allowed verified page overrides the default. A flag does not: the default may still deny a write or an unclassified read.
    if (layer.step === 'default' && allow !== undefined) break;
    const verdict = layer.ask(policy, subject);
    if (verdict === undefined) continue;
    if (verdict.verdict === 'deny') return verdict;
    if (verdict.verdict === 'flag') flag ??= verdict;
    else allow ??= verdict;
    if (isFinal(layer, verdict)) break;
  }
  return (flag ?? allow)!;
}
