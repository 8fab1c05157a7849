/** Words that say what stands around them: below them, before them, or in the same name. */
import type { TokenIndex } from './tokens.ts';

/** Token lists of such words, by their names in the policy. */
const PLACE_LISTS = {
  /** Segments below which everything is reading matter. */
  reading: 'reading',
  /** Those of them that are also a part of a site where things are done; the others are documentation. */
  workingPlace: 'working_place',
  /** The same of a host's label alone. */
  workingHost: 'working_host',
  /** Segments below which a word names a topic, the words for a login too. */
  topicPlace: 'topic_place',
  /** Segments before a title. */
  titleOpener: 'title_opener',
  /** Segments before a branch and its files. */
  sourceTree: 'source_tree',
  /** Segments that end a path of text, whatever stands before them. */
  textPage: 'text_page',
  /** Segments that documentation stands below: what is before one is what that is about. */
  documentationPlace: 'documentation_place',
  /** First labels of hosts for people who build on an interface. */
  developerHost: 'developer_host',
  /** Words that open the title of an explanation. */
  question: 'question_word',
  /** Words that make a place for reading matter of the name of a folder that they begin or end. */
  placeWord: 'place_word',
  /** Dictionaries, alone or in such a name: below it every word is a topic, and an entry ends the path. */
  dictionaryWord: 'dictionary_word',
  /** Words that end the name of a text which explains an act. */
  guideWord: 'guide_word',
  /** Parts of a host's label that say where or for whom it serves. */
  serverPart: 'server_part',
  /** Words before the colon in the title of a wiki's page. */
  wikiNamespace: 'wiki_namespace',
  /** Segments that say what the key behind them is, or what an act is done to: they may stand between the two. */
  keyName: 'key_name',
} as const;

/** A bit for each of {@link PLACE_LISTS}. */
export const MEANING = Object.fromEntries(Object.keys(PLACE_LISTS).map((name, at) => [name, 1 << at])) as Readonly<
  Record<keyof typeof PLACE_LISTS, number>
>;

/** Knows what words mean, by the token lists that they are in. */
export class PlaceWords {
  /** For each token list its bits of {@link MEANING}. */
  readonly #meanings: Uint32Array;

  /** @throws PagegateError policy_invalid, where a list is missing */
  constructor(tokens: TokenIndex) {
    this.#meanings = new Uint32Array(tokens.names.length);
    for (const [name, list] of Object.entries(PLACE_LISTS))
      this.#meanings[tokens.ordinal(list)]! |= MEANING[name as keyof typeof MEANING];
  }

  /** All that a word means, as bits of {@link MEANING}. */
  meaningOf(lists: readonly number[]): number {
    let meaning = 0;
    for (let at = 0; at < lists.length; at++) meaning |= this.#meanings[lists[at]!]!;
    return meaning;
  }

  /** Whether a word has one of the meanings in `what`. */
  means(lists: readonly number[], what: number): boolean {
    return (this.meaningOf(lists) & what) !== 0;
  }
}
