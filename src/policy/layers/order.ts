/** The order of the layers, shared by the verdict and its explanation. */
import type { Policy } from '../policy.ts';
import type { Layer, Verdict } from '../types.ts';
import { allowVerdict } from './allow-entries.ts';
import { defaultVerdict } from './defaults.ts';
import { guardVerdict } from './guard-rules.ts';
import { hostVerdict } from './high-value-hosts.ts';
import type { Ask } from './layer.ts';
import { patternVerdict } from './pattern-rules.ts';
import { pageVerdict } from './verified-pages.ts';

export interface LayerStep {
  readonly step: 'high_value_hosts' | 'guard_rules' | 'allow_entries' | 'page_type_db' | 'pattern_rules' | 'default';
  readonly layer: Layer;
  readonly ask: Ask<Policy>;
}

export const LAYERS: readonly LayerStep[] = [
  { step: 'high_value_hosts', layer: 'high_value_hosts', ask: hostVerdict },
  { step: 'guard_rules', layer: 'rules', ask: guardVerdict },
  { step: 'allow_entries', layer: 'rules', ask: allowVerdict },
  { step: 'page_type_db', layer: 'page_type_db', ask: pageVerdict },
  { step: 'pattern_rules', layer: 'rules', ask: patternVerdict },
  { step: 'default', layer: 'default', ask: defaultVerdict },
];

/** Whether a layer's verdict ends the evaluation: a deny, or an allow entry of the licensee. */
export function isFinal({ step }: LayerStep, { verdict }: Verdict): boolean {
  return verdict === 'deny' || step === 'allow_entries';
}
