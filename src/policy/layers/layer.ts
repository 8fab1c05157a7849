/** What all layers have in common. */

import type { VerdictName } from '../../record/vocabulary.ts';
import type { Subject } from '../subject.ts';
import type { Layer, Verdict } from '../types.ts';

/**
 * Asks a layer, with its tables of the policy: the verdict that counts, undefined where nothing in the layer matches. With `all`,
 * everything that matches is put there, in the layer's order.
 */
export type Ask<Tables> = (tables: Tables, subject: Subject, all?: Verdict[]) => Verdict | undefined;

/** A verdict as every answer of its entry carries it: one object, made at the start. */
export function verdictOf(verdict: VerdictName, layer: Layer, id: string, note: string): Verdict {
  return Object.freeze({ verdict, layer, id, note });
}

/** Deny before flag before allow; otherwise the order stays. */
export function strictestFirst<T extends { readonly verdict: Verdict }>(entries: readonly T[]): T[] {
  const of = (name: VerdictName): T[] => entries.filter((entry) => entry.verdict.verdict === name);
  return [...of('deny'), ...of('flag'), ...of('allow')];
}

/** The first of the entries that matches, and with `all` every one. */
export function firstMatch<T extends { readonly verdict: Verdict }>(
  entries: readonly T[],
  matches: (entry: T, at: number) => boolean,
  all: Verdict[] | undefined,
): Verdict | undefined {
  let first: Verdict | undefined;
  for (let at = 0; at < entries.length; at++) {
    const entry = entries[at]!;
    if (!matches(entry, at)) continue;
    first ??= entry.verdict;
    if (all === undefined) break;
    all.push(entry.verdict);
  }
  return first;
}
