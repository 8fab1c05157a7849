/** The last layer: a default verdict by classified or not, read or write. */
import { type DefaultId, invalidPolicy, type PolicyDocument } from '../documents.ts';
import type { Verdict } from '../types.ts';
import { type Ask, verdictOf } from './layer.ts';

export type Defaults = Readonly<Record<DefaultId, Verdict>>;

const IDS: readonly DefaultId[] = [
  'classified_read',
  'unclassified_subdomain',
  'unclassified_read',
  'unclassified_write',
];

/** Compiles the defaults with the verdicts of the profile. @throws PagegateError policy_invalid */
export function compileDefaults({ defaults, profile }: PolicyDocument): Defaults {
  const compiled: Partial<Record<DefaultId, Verdict>> = {};
  for (const { id, verdict, note } of defaults) {
    const profileVerdict = id === 'unclassified_read' || id === 'unclassified_subdomain' ? profile[id] : undefined;
    const name = profileVerdict ?? verdict;
    if (name === undefined) throw invalidPolicy(id, `The default "${id}" has no verdict.`);
    compiled[id] = verdictOf(name, 'default', id, note);
  }
  for (const id of IDS) {
    if (compiled[id] === undefined) throw invalidPolicy(id, `The default "${id}" is missing.`);
  }
  return compiled as Defaults;
}

export const defaultVerdict: Ask<{ readonly defaults: Defaults }> = ({ defaults }, { evidence, isRead }, all) => {
  const verdict = chosen(defaults, isRead, evidence.found ? 'found' : evidence.parentFound ? 'parent' : 'none');
  all?.push(verdict);
  return verdict;
};

function chosen(defaults: Defaults, isRead: boolean, known: 'found' | 'parent' | 'none'): Verdict {
  if (!isRead) return defaults.unclassified_write;
  if (known === 'found') return defaults.classified_read;
  return known === 'parent' ? defaults.unclassified_subdomain : defaults.unclassified_read;
}

/** Returns a warning for each default that allows unclassified reads. */
export function defaultWarnings(defaults: Defaults): string[] {
  return (['unclassified_read', 'unclassified_subdomain'] as const)
    .filter((id) => defaults[id].verdict === 'allow')
    .map(
      (id) => `${id} is "allow": reads of places that nobody has classified pass, and data can leave in their URLs.`,
    );
}
