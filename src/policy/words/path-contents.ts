/**
 * What the segments of a path are: on hosts whose paths hold names and files (package registries, source trees, documentation), and in the
 * URLs of forums.
 */
import { invalidPolicy, type PlaceEntry } from '../documents.ts';
import { HOST_FORM, type HostFilter, HostMap, type HostReach, readPolicyHost } from '../url/host-map.ts';
import { areDigits } from '../url/keys.ts';
import { type PathSegments, SEGMENT_HAS } from '../url/path-segments.ts';
import { nameEnd } from '../url/segments.ts';
import { isAnyIn } from './token-table.ts';
import { CONTEXT } from './word-contexts.ts';

/**
 * A compiled template such as `/packages/@/**`: what the first segments must be, and the context of those that follow. If it covers
 * everything that follows, it also covers a path that ends after the first segments, which is their folder.
 */
export interface PlaceTemplate {
  /** In lower case. `*` matches any segment, `@` the name of an owner. */
  readonly steps: readonly string[];
  readonly context: number;
  /** Whether it covers everything that follows (`**`), or only the next segment (`{}`). */
  readonly isRest: boolean;
}

/** What the segments of a path are on one host. */
export interface HostPlaces {
  /** The host that the policy names: that of the URL, or a parent of it. */
  readonly host: string;
  /** The context that every segment has at least. */
  readonly everywhere: number;
  /** First segments that are the host's own pages: any other is an owner. If undefined, it is an owner only if no rule asks for its words. */
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
 * Compiles the places of all hosts. Entries for the same host count together, whether they also apply to its subdomains or not.
 * @throws PagegateError policy_invalid
 */
export function compilePlaces(entries: readonly PlaceEntry[], filter: HostFilter): HostMap<HostPlaces> {
  const groups = new Map<
    string,
    { readonly host: string; readonly reach: HostReach; readonly entries: PlaceEntry[] }
  >();
  for (const entry of entries) {
    for (const host of entry.hosts) {
      const parsed = readPolicyHost(host);
      if (parsed === undefined) throw invalidPolicy(host, `The host "${host}" of a place is not a host: ${HOST_FORM}.`);
      const key = `${parsed.reach} ${parsed.host}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, { ...parsed, entries: [entry] });
      else group.entries.push(entry);
    }
  }
  const map = new HostMap<HostPlaces>(filter);
  for (const { host, reach, entries: hostEntries } of groups.values()) {
    const all = reach === 'suffix' ? hostEntries : [...(groups.get(`suffix ${host}`)?.entries ?? []), ...hostEntries];
    map.add(host, reach, placesOf(host, all.flatMap(templatesOf), ownOf(all)));
  }
  return map;
}

function templatesOf(entry: PlaceEntry): PlaceTemplate[] {
  return KINDS.flatMap((kind) => (entry[kind] ?? []).map((text) => readTemplate(text, CONTEXT[kind])));
}

/** Returns the first segments that are a host's own pages; undefined if no entry lists any. */
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
 * Computes the context that a host's places give each segment of a path, by index, and after those one for everything that follows the
 * path. Writes them to the start of `contexts`.
 * @param wanted for each token list, 1 if a rule asks for it
 */
export function writeContexts(
  places: HostPlaces,
  segments: PathSegments,
  wanted: Uint8Array,
  contexts: number[],
): void {
  const { templates, everywhere, own } = places;
  const { count } = segments;
  for (let at = 0; at <= count; at++) contexts[at] = everywhere;
  const isFirstOwner = count > 0 && (own === undefined ? !isWantedAt(segments, 0, wanted) : isOwner(segments, own));
  if (own !== undefined && isFirstOwner) contexts[0] = CONTEXT.title;
  for (let index = 0; index < templates.length; index++) {
    const { steps, context, isRest } = templates[index]!;
    const end = isRest ? count + 1 : steps.length + 1;
    if (count < (isRest ? steps.length : end) || !areSteps(steps, segments, wanted, isFirstOwner)) continue;
    for (let at = steps.length; at < end; at++) if (contexts[at]! < context) contexts[at] = context;
  }
}

function isWantedAt({ lists }: PathSegments, at: number, wanted: Uint8Array): boolean {
  return isAnyIn(lists[at]!, wanted);
}

/** Whether the first segments of a path match the steps of a template. */
function areSteps(
  steps: readonly string[],
  segments: PathSegments,
  wanted: Uint8Array,
  isFirstOwner: boolean,
): boolean {
  for (let at = 0; at < steps.length; at++) {
    const step = steps[at]!;
    if (step === '*') continue;
    if (step !== '@') {
      if (nameAt(segments, at) !== step) return false;
    } else if (at === 0 ? !isFirstOwner : isWantedAt(segments, at, wanted)) return false;
  }
  return true;
}

/** Whether the first segment is the name of an owner, and not one of the host's own pages in any spelling. */
function isOwner(segments: PathSegments, own: ReadonlySet<string>): boolean {
  const { starts, stops } = segments;
  const name = nameAt(segments, 0);
  // An extension is not part of the name of a page.
  const page = name.slice(0, stops[0]! - starts[0]!);
  return /^[a-z\d]+(?:[._-][a-z\d]+)*$/.test(name) && !own.has(withoutSeparators(page));
}

/** Spellings such as `sign_in` and `sign-in` are one page of a host. */
function withoutSeparators(name: string): string {
  return name.replace(/[._-]/g, '');
}

/** What Khoros puts between the title of a thread and a number: whether it is that of a topic, a message, an article, an idea or a question. */
const KHOROS_THREADS = new Set(['td-p', 'm-p', 'ta-p', 'tac-p', 'ba-p', 'bc-p', 'idi-p', 'idc-p', 'qaq-p', 'qaa-p']);
/** The same between the title of a place and its name: a category, a board, a blog, a knowledge base, ideas, questions, a group. */
const KHOROS_PLACES = new Set(['ct-p', 'bd-p', 'bg-p', 'tkb-p', 'idb-p', 'qa-p', 'con-p', 'gh-p', 'gp-p']);

/**
 * The context of the segment at index `at` in the URLs of two forum programs with formats of their own: Discourse (`/t/slug/123`,
 * `/t/slug/123/4`; boards: `/c/board/5`, `/c/board/board/5`) and Khoros (`/t5/board/title/td-p/123`, `/t5/title/bd-p/name`). The title of a
 * thread is a title, and so is the name of its board in Khoros. A single word before a number may be a command instead
 * (`/t/unsubscribe/123`), so the name of a Discourse board is only a topic.
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
  // The name of the board counts as a title, too.
  const kind = isAt(segments, at - 1, 't5') ? at + 2 : at >= 2 && isAt(segments, at - 2, 't5') ? at + 1 : count;
  if (!isNumberAt(segments, kind + 1)) return false;
  return KHOROS_THREADS.has(nameAt(segments, kind));
}

/** Whether the segment at index `at` is the name of a Discourse board, or of the board above it. */
function isBoardName(segments: PathSegments, at: number): boolean {
  const { count } = segments;
  if (at < 1 || at >= count - 1 || count > 4) return false;
  return isAt(segments, 0, 'c') && isNumberAt(segments, count - 1);
}

/** Whether the path is that of a Khoros place itself, and not of something in it. */
function isKhorosPlace(segments: PathSegments): boolean {
  return segments.count === 4 && isAt(segments, 0, 't5') && KHOROS_PLACES.has(nameAt(segments, 2));
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
