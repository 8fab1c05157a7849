/** Explains a verdict: the result of every layer, in order, and which layer decided. */
import { counted } from '../counted.ts';
import { evaluate } from './evaluate.ts';
import { isFinal, LAYERS, type LayerStep } from './layers/order.ts';
import type { Policy } from './policy.ts';
import { Subject } from './subject.ts';
import type { Evidence, Layer, Request, Verdict } from './types.ts';

export interface ExplainStep {
  readonly step: LayerStep['step'];
  readonly layer: Layer;
  /** All matches in this layer, in the layer's order. */
  readonly matches: readonly Verdict[];
  /** A description of what the layer looked at or found. */
  readonly says: string;
  /** Whether this layer gave the final verdict. */
  readonly decides: boolean;
  /** Whether the evaluation asked this layer; false if an earlier layer ended the evaluation. */
  readonly reached: boolean;
}

export interface Explanation {
  readonly verdict: Verdict;
  readonly steps: readonly ExplainStep[];
}

/** Asks every layer, including those that the evaluation does not reach. */
export function explain(policy: Policy, request: Request, evidence: Evidence): Explanation {
  const verdict = evaluate(policy, request, evidence);
  const subject = new Subject(request, evidence, policy.tokens);
  let reached = true;
  let isDecided = false;
  const steps = LAYERS.map((layer) => {
    const matches: Verdict[] = [];
    const layerVerdict = layer.ask(policy, subject, matches);
    const decides = reached && !isDecided && matches.includes(verdict);
    const step = {
      step: layer.step,
      layer: layer.layer,
      matches,
      says: DESCRIBE[layer.step](policy, subject, matches),
    };
    const result = { ...step, decides, reached };
    isDecided ||= decides;
    if (layerVerdict !== undefined && isFinal(layer, layerVerdict)) reached = false;
    return result;
  });
  return { verdict, steps };
}

type Describe = (policy: Policy, subject: Subject, matches: readonly Verdict[]) => string;

/** Describes what each layer looked at or found. */
const DESCRIBE: Readonly<Record<LayerStep['step'], Describe>> = {
  high_value_hosts: (_policy, { host }, [entry]) =>
    entry === undefined ? `${host} is not on the list` : `${host} is on the list as ${entry.id}`,
  guard_rules: (_policy, _subject, matches) => count(matches, 'guard rule'),
  allow_entries: ({ document }, _subject, [entry]) => {
    if (entry === undefined) return 'no allow entry for this place and method';
    const { host, path } = document.allow.find(({ id }) => id === entry.id)!;
    return `allowed by name: ${host}${path}`;
  },
  page_type_db: ({ pages }, subject) => {
    const page = pages.match(subject);
    if (page !== undefined) return `on the verified page ${page.url}`;
    return `${counted([...subject.evidence.pages()].length, 'verified page')}, none of them here`;
  },
  pattern_rules: (_policy, _subject, matches) => count(matches, 'pattern rule'),
  default: (_policy, { evidence }) => {
    if (evidence.found) return 'the host is classified';
    return evidence.parentFound
      ? 'a domain above the host is classified, the host is not'
      : 'nothing is known about the host';
  },
};

function count(verdicts: readonly Verdict[], what: string): string {
  if (verdicts.length === 0) return `no ${what} matches`;
  return counted(verdicts.length, `${what} matches`, `${what}s match`);
}
