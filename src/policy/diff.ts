/** Compares two policies, entry by entry. */
import type { PolicyDocument } from './documents.ts';

export type ChangeKind = 'added' | 'removed' | 'changed';

export interface PolicyChange {
  readonly kind: ChangeKind;
  readonly part: string;
  readonly id: string;
  /** For a changed entry: the fields that differ, with old and new value. */
  readonly fields: readonly { readonly name: string; readonly before: unknown; readonly after: unknown }[];
}

type Entries = ReadonlyMap<string, object>;

/** The parts of a policy that a licensee's file can change. */
type Part = Exclude<
  keyof PolicyDocument,
  'categories' | 'lookalikes' | 'ignored_query_names' | 'identifying_lists' | 'warnings'
>;

function parts(document: PolicyDocument): Record<Part, Entries> {
  const by = <T extends object>(entries: readonly T[], id: (entry: T) => string): Entries =>
    new Map(entries.map((entry) => [id(entry), entry]));
  return {
    profile: new Map([['profile', document.profile]]),
    hosts: by(document.hosts, (entry) => entry.id),
    rules: by(document.rules, (entry) => entry.id),
    page_types: by(document.page_types, (entry) => entry.type),
    tokens: new Map(Object.entries(document.tokens)),
    defaults: by(document.defaults, (entry) => entry.id),
    allow: by(document.allow, (entry) => entry.id),
    excuses: by(document.excuses, ({ rule, host, port }) => `${rule} ${host}${port === undefined ? '' : `:${port}`}`),
    address_exceptions: by(document.address_exceptions, (entry) => entry.cidr),
    places: by(document.places, ({ hosts }) => hosts.join(' ')),
  };
}

/** Returns the changes from one policy to another, part by part. */
export function diffPolicies(before: PolicyDocument, after: PolicyDocument): PolicyChange[] {
  const left = parts(before);
  const right = parts(after);
  return (Object.keys(left) as Part[]).flatMap((part) => diffEntries(part, left[part], right[part]));
}

function diffEntries(part: string, before: Entries, after: Entries): PolicyChange[] {
  const changes: PolicyChange[] = [];
  for (const [id, old] of before) {
    const now = after.get(id);
    if (now === undefined) changes.push({ kind: 'removed', part, id, fields: [] });
    else {
      const fields = diffFields(old, now);
      if (fields.length > 0) changes.push({ kind: 'changed', part, id, fields });
    }
  }
  for (const id of after.keys()) if (!before.has(id)) changes.push({ kind: 'added', part, id, fields: [] });
  return changes;
}

/** Returns the fields in which two entries differ. */
export function diffFields(before: object, after: object): PolicyChange['fields'] {
  const [left, right] = [new Map(Object.entries(before)), new Map(Object.entries(after))];
  return [...new Set([...left.keys(), ...right.keys()])]
    .map((name) => ({ name, before: left.get(name) as unknown, after: right.get(name) as unknown }))
    .filter((field) => JSON.stringify(field.before) !== JSON.stringify(field.after));
}
