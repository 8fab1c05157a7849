/** One verdict: high-value hosts, guard rules, the licensee's own allow entries, verified pages, pattern rules, default. */
import { isFinal, LAYERS } from './layers/order.ts';
import type { Policy } from './policy.ts';
import { Subject } from './subject.ts';
import type { Evidence, Request, Verdict } from './types.ts';

/**
 * The verdict for a URL and a method. A deny ends the evaluation. A flag is a floor: a later layer may raise it to deny, never
 * lower it. An allow entry of the licensee ends it too, at the floor.
 */
export function evaluate(policy: Policy, request: Request, evidence: Evidence): Verdict {
  const subject = new Subject(request, evidence, policy.tokens);
  let flag: Verdict | undefined;
  let allow: Verdict | undefined;
  for (let at = 0; at < LAYERS.length; at++) {
    const layer = LAYERS[at]!;
    // A verified page stands above the default; a flag does not, because a write or an unvetted place may be denied.
    if (layer.step === 'default' && allow !== undefined) break;
    const said = layer.ask(policy, subject);
    if (said === undefined) continue;
    if (said.verdict === 'deny') return said;
    if (said.verdict === 'flag') flag ??= said;
    else allow ??= said;
    if (isFinal(layer, said)) break;
  }
  return (flag ?? allow)!;
}
