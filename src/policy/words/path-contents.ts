/** What stands where: on hosts whose paths hold names and files (package registries, source trees, documentation), and in addresses of forums. */
import { invalidPolicy, type PlaceEntry } from '../documents.ts';
import { HOST_FORM, type HostFilter, HostMap, type HostReach, readPolicyHost } from '../url/host-map.ts';
import { areDigits } from '../url/keys.ts';
import { type PathSegments, SEGMENT_HAS } from '../url/path-segments.ts';
import { nameEnd } from '../url/segments.ts';
import { isAnyIn } from './token-table.ts';
import { CONTEXT } from './word-contexts.ts';

/**
 * A template such as `/{owner}/{name}/blob/**`, compiled: what the first segments must be, and the context of those that follow. Where
 * everything that follows is meant, so is what stands behind the first segments alone: their folder.
 */
export interface PlaceTemplate {
  /** Lower case; `*` is any segment, `@` the name of an owner. */
  readonly steps: readonly string[];
  readonly context: number;
  /** Whether everything that follows is meant, or the next segment alone. */
  readonly isRest: boolean;
}

/** What stands where on one host. */
export interface HostPlaces {
  /** The host that they are named for: that of the URL, or one above it. */
  readonly host: string;
  /** The context of every segment. */
  readonly everywhere: number;
  /** First segments that are the host's own pages: any other is an owner. Undefined where only a name that no rule asks for is one. */
  readonly own: ReadonlySet<string> | undefined;
  readonly templates: readonly PlaceTemplate[];
}

function placesOf(host: string, templates: readonly PlaceTemplate[], own: readonly string[] | undefined): HostPlaces {
  const isEverywhere = ({ steps, isRest }: PlaceTemplate): boolean => steps.length === 0 && isRest;
  const everywhere = templates.filter(isEverywhere).map(({ context }) => context);
  return {
    host,
    everywhere: Math.max(CONTEXT.none, ...everywhere),
    own: own && new Set(own.map((name) => withoutSeparators(name.slice(0, nameEnd(name, 0, name.length))))),
    templates: templates.filter((one) => !isEverywhere(one)),
  };
}

const KINDS = ['documentation', 'topic', 'title', 'source'] as const;

/**
 * What several entries say of one host counts together, whether they reach the hosts below it or not.
 * @throws PagegateError policy_invalid
 */
export function compilePlaces(entries: readonly PlaceEntry[], filter: HostFilter): HostMap<HostPlaces> {
  const said = new Map<string, { readonly host: string; readonly reach: HostReach; readonly entries: PlaceEntry[] }>();
  for (const entry of entries) {
    for (const host of entry.hosts) {
      const read = readPolicyHost(host);
      if (read === undefined) throw invalidPolicy(host, `The host "${host}" of a place is not a host: ${HOST_FORM}.`);
      const name = `${read.reach} ${read.host}`;
      const before = said.get(name);
      if (before === undefined) said.set(name, { ...read, entries: [entry] });
      else before.entries.push(entry);
    }
  }
  const map = new HostMap<HostPlaces>(filter);
  for (const { host, reach, entries: own } of said.values()) {
    const all = reach === 'suffix' ? own : [...(said.get(`suffix ${host}`)?.entries ?? []), ...own];
    map.add(host, reach, placesOf(host, all.flatMap(templatesOf), ownOf(all)));
  }
  return map;
}

function templatesOf(entry: PlaceEntry): PlaceTemplate[] {
  return KINDS.flatMap((kind) => (entry[kind] ?? []).map((text) => readTemplate(text, CONTEXT[kind])));
}

/** First segments that are a host's own pages; undefined where no entry says which. */
function ownOf(entries: readonly PlaceEntry[]): readonly string[] | undefined {
  const lists = entries.flatMap(({ own }) => (own === undefined ? [] : [own]));
  return lists.length === 0 ? undefined : lists.flat();
}

function readTemplate(text: string, context: number): PlaceTemplate {
  const steps = text.slice(1).split('/');
  const last = steps.pop();
  if (!text.startsWith('/') || (last !== '**' && last !== '{}'))
    throw invalidPolicy(text, `The place "${text}" must start with a slash and end with "**" or "{}".`);
  return { steps, context, isRest: last === '**' };
}

/**
 * The context that the places of a host give each segment of a path, by position, and at last what they give to all that stands behind it;
 * undefined where they give none but the one everywhere. `wanted`: lists that rules ask for.
 */
export function contextsAt(places: HostPlaces, segments: PathSegments, wanted: Uint8Array): Uint8Array | undefined {
  const { templates, everywhere, own } = places;
  if (templates.length === 0 && own === undefined) return undefined;
  const { path, count, starts, stops, ends, lists } = segments;
  const names: string[] = [];
  for (let at = 0; at < count; at++) names.push(path.slice(starts[at], ends[at]).toLowerCase());
  const isWanted = (position: number): boolean => isAnyIn(lists[position]!, wanted);
  const contexts = new Uint8Array(names.length + 1).fill(everywhere);
  const isFirstOwner =
    names.length > 0 && (own === undefined ? !isWanted(0) : isForeign(names[0]!, stops[0]! - starts[0]!, own));
  if (own !== undefined && isFirstOwner) contexts[0] = CONTEXT.title;
  const isStep = (step: string, position: number): boolean => {
    if (step === '*') return true;
    if (step !== '@') return step === names[position];
    return position === 0 ? isFirstOwner : !isWanted(position);
  };
  for (const { steps, context, isRest } of templates) {
    const end = isRest ? contexts.length : steps.length + 1;
    if (names.length < (isRest ? steps.length : end) || !steps.every(isStep)) continue;
    for (let at = steps.length; at < end; at++) contexts[at] = Math.max(contexts[at]!, context);
  }
  return contexts;
}

/** Whether a first segment is a name, and none of the host's own pages in one of its forms. `size` is its length without an extension. */
function isForeign(name: string, size: number, own: ReadonlySet<string>): boolean {
  return /^[a-z\d]+(?:[._-][a-z\d]+)*$/.test(name) && !own.has(withoutSeparators(name.slice(0, size)));
}

/** `sign_in` and `sign-in` are one page of a host. */
function withoutSeparators(name: string): string {
  return name.replace(/[._-]/g, '');
}

/**
 * What Khoros writes between the title of a thread and a number: whether that is of a topic, a message, an article, an idea or a question.
 */
const NUMBERED = new Set(['td-p', 'm-p', 'ta-p', 'tac-p', 'ba-p', 'bc-p', 'idi-p', 'idc-p', 'qaq-p', 'qaa-p']);
/** The same between the title of a place and its name: a category, a board, a blog, a knowledge base, ideas, questions, a group. */
const NAMED = new Set(['ct-p', 'bd-p', 'bg-p', 'tkb-p', 'idb-p', 'qa-p', 'con-p', 'gh-p', 'gp-p']);

/**
 * The context of the segment `at` in the addresses of two forum programs that write them in a way of their own: Discourse
 * (`/t/slug/123`, `/t/slug/123/4`; `/c/board/5`, `/c/board/board/5`) and Khoros (`/t5/board/title/td-p/123`, `/t5/title/bd-p/name`). A thread's title
 * is a title, and so is the name of its board. A single word before a number may be a command elsewhere (`/t/unsubscribe/123`), so the name of
 * a board of Discourse is only a topic.
 */
export function forumContext(segments: PathSegments, at: number): number {
  if (isThreadTitle(segments, at)) return CONTEXT.title;
  return isBoardName(segments, at) ? CONTEXT.topic : CONTEXT.none;
}

function isThreadTitle(segments: PathSegments, at: number): boolean {
  const { bits, count } = segments;
  if (at >= 1 && isKhorosPlace(segments)) return true;
  if (at < 1 || at + 1 >= count) return false;
  if (isAt(segments, at - 1, 't') && at === 1 && (bits[at]! & SEGMENT_HAS.separator) !== 0 && isNumberAt(segments, 2))
    return count === 3 || (count === 4 && isNumberAt(segments, 3));
  // The board of a Khoros thread is named before its title.
  const kind = isAt(segments, at - 1, 't5') ? at + 2 : at >= 2 && isAt(segments, at - 2, 't5') ? at + 1 : count;
  if (!isNumberAt(segments, kind + 1)) return false;
  return NUMBERED.has(nameAt(segments, kind));
}

/** Whether the segment `at` names a board of Discourse, or the board above it. */
function isBoardName(segments: PathSegments, at: number): boolean {
  const { count } = segments;
  if (at < 1 || at >= count - 1 || count > 4) return false;
  return isAt(segments, 0, 'c') && isNumberAt(segments, count - 1);
}

/** Whether the path is that of a place of Khoros, and of nothing on it. */
function isKhorosPlace(segments: PathSegments): boolean {
  return segments.count === 4 && isAt(segments, 0, 't5') && NAMED.has(nameAt(segments, 2));
}

function isNumberAt({ path, starts, ends, count }: PathSegments, at: number): boolean {
  return at < count && areDigits(path, starts[at]!, ends[at]!);
}

function isAt(segments: PathSegments, at: number, text: string): boolean {
  return segments.ends[at]! - segments.starts[at]! === text.length && nameAt(segments, at) === text;
}

function nameAt({ path, starts, ends }: PathSegments, at: number): string {
  return path.slice(starts[at], ends[at]).toLowerCase();
}
