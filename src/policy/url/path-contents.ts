/** What stands where on hosts whose paths hold names and files: package registries, source trees, documentation. */
import { invalid, type PlaceEntry } from '../documents.ts';
import { type HostFilter, HostMap, readPolicyHost } from './host-map.ts';
import type { PathSegments } from './path-segments.ts';
import { CONTEXT } from './word-contexts.ts';

/** A template such as `/{owner}/{name}/blob/**`, compiled: what the first segments must be, and the context of those that follow. */
export interface PlaceTemplate {
  /** Lower case; `*` is any segment, `@` a name that no rule asks for. */
  readonly steps: readonly string[];
  readonly context: number;
  /** Whether everything that follows is meant, or the next segment alone. */
  readonly isRest: boolean;
}

/** What stands where on one host. */
export interface HostPlaces {
  /** The context of every segment. */
  readonly everywhere: number;
  readonly templates: readonly PlaceTemplate[];
}

function placesOf(templates: readonly PlaceTemplate[]): HostPlaces {
  const isEverywhere = ({ steps, isRest }: PlaceTemplate): boolean => steps.length === 0 && isRest;
  const everywhere = templates.filter(isEverywhere).map(({ context }) => context);
  return {
    everywhere: Math.max(CONTEXT.none, ...everywhere),
    templates: templates.filter((one) => !isEverywhere(one)),
  };
}

const KINDS = ['documentation', 'topic', 'title', 'source'] as const;

/** @throws PagegateError policy_invalid */
export function compilePlaces(entries: readonly PlaceEntry[], filter: HostFilter): HostMap<HostPlaces> {
  const map = new HostMap<HostPlaces>(filter);
  for (const entry of entries) {
    const templates = KINDS.flatMap((kind) => (entry[kind] ?? []).map((text) => readTemplate(text, CONTEXT[kind])));
    for (const host of entry.hosts) {
      const read = readPolicyHost(host);
      if (read === undefined) throw invalid(host, `The host "${host}" of a place is not a host.`);
      if (map.add(read.host, read.reach, placesOf(templates)) !== undefined)
        throw invalid(host, `The host "${host}" has its places twice.`);
    }
  }
  return map;
}

function readTemplate(text: string, context: number): PlaceTemplate {
  const steps = text.slice(1).split('/');
  const last = steps.pop();
  if (!text.startsWith('/') || (last !== '**' && last !== '{}'))
    throw invalid(text, `The place "${text}" must start with a slash and end with "**" or "{}".`);
  return { steps, context, isRest: last === '**' };
}

/**
 * The context that the places of a host give each segment of a path, by position; undefined where they give none but the one everywhere.
 * `wanted`: lists that rules ask for.
 */
export function contextsAt(
  { templates, everywhere }: HostPlaces,
  segments: PathSegments,
  wanted: Uint8Array,
): Uint8Array | undefined {
  if (templates.length === 0) return undefined;
  // Those that have a name.
  const named: number[] = [];
  for (let at = 0; at < segments.count; at++) if (segments.stops[at]! > segments.starts[at]!) named.push(at);
  const contexts = new Uint8Array(named.length).fill(everywhere);
  for (const { steps, context, isRest } of templates) {
    if (named.length <= steps.length || !steps.every((step, at) => isStep(step, segments, named[at]!, wanted)))
      continue;
    const end = isRest ? named.length : steps.length + 1;
    for (let at = steps.length; at < end; at++) contexts[at] = Math.max(contexts[at]!, context);
  }
  return contexts;
}

/** Whether the segment `at` is what a template asks for. */
function isStep(step: string, segments: PathSegments, at: number, wanted: Uint8Array): boolean {
  if (step === '*') return true;
  const segment = segments.path.slice(segments.starts[at], segments.ends[at]);
  if (step === '@') return /[\p{L}\p{N}]/u.test(segment) && !segments.lists[at]!.some((list) => wanted[list] === 1);
  return step === segment.toLowerCase();
}
