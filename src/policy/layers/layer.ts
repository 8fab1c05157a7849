/** Types and functions that all layers share. */

import type { VerdictName } from '../../record/vocabulary.ts';
import type { Subject } from '../subject.ts';
import type { Layer, Verdict } from '../types.ts';

/**
 * Asks a layer about a request. Returns the layer's verdict; undefined if nothing in the layer matches. If `all` is given, appends every
 * match to it, in the layer's order.
 */
export type Ask<Tables> = (tables: Tables, subject: Subject, all?: Verdict[]) => Verdict | undefined;

/** Creates the verdict of a policy entry. Each entry has one frozen verdict object, created when the policy is compiled. */
export function verdictOf(verdict: VerdictName, layer: Layer, id: string, note: string): Verdict {
  return Object.freeze({ verdict, layer, id, note });
}

/** Sorts deny before flag before allow, otherwise in the given order. */
export function strictestFirst<T extends { readonly verdict: Verdict }>(entries: readonly T[]): T[] {
  const of = (name: VerdictName): T[] => entries.filter((entry) => entry.verdict.verdict === name);
  return [...of('deny'), ...of('flag'), ...of('allow')];
}
