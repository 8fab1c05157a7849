/** Words that announce what is near them: below them, before them, or in the same name. */
import type { TokenIndex } from './tokens.ts';

/** Token lists of such words, as the policy names them. */
const PLACE_LISTS = {
  /** Segments below which everything is reading matter. */
  reading: 'reading',
  /** Those of them where things are done as well. The others announce documentation. */
  workingPlace: 'working_place',
  /** The same for the first label of a host only. */
  workingHost: 'working_host',
  /** Segments below which every word names a topic, even a word for a login. */
  topicPlace: 'topic_place',
  /** Segments right before a title. */
  titleOpener: 'title_opener',
  /** Segments right before a branch and its files. */
  sourceTree: 'source_tree',
  /** Last segments of paths that lead to a text, whatever comes before them. */
  textPage: 'text_page',
  /** Segments that documentation is below. The segment before one says what the documentation is about. */
  documentationPlace: 'documentation_place',
  /** First labels of hosts for developers who use an API. */
  developerHost: 'developer_host',
  /** First words in the title of an explanation. */
  question: 'question_word',
  /** First or last words of a folder's name that make the folder one of reading matter. */
  placeWord: 'place_word',
  /** Words for a dictionary, alone or in such a name. Below it every word is a topic, and an entry ends the path. */
  dictionaryWord: 'dictionary_word',
  /** Last words in the name of a text that explains an act. */
  guideWord: 'guide_word',
  /** Parts of a host's label that say where, or for whom, the server is. */
  serverPart: 'server_part',
  /** Words before the colon in the title of a wiki's page. */
  wikiNamespace: 'wiki_namespace',
  /** Segments that name the key after them, or the object of an act. They may come between an act and its key. */
  keyName: 'key_name',
} as const;

/** One bit for each of {@link PLACE_LISTS}. */
export const MEANING = Object.fromEntries(Object.keys(PLACE_LISTS).map((name, at) => [name, 1 << at])) as Readonly<
  Record<keyof typeof PLACE_LISTS, number>
>;

/** The meanings of words, by the token lists that they are in. */
export class PlaceWords {
  /** For each token list, its bits of {@link MEANING}. */
  readonly #meanings: Uint32Array;

  /** @throws PagegateError policy_invalid, if a list is missing */
  constructor(tokens: TokenIndex) {
    this.#meanings = new Uint32Array(tokens.names.length);
    for (const [name, list] of Object.entries(PLACE_LISTS))
      this.#meanings[tokens.ordinal(list)]! |= MEANING[name as keyof typeof MEANING];
  }

  /** Returns all meanings of a word, as bits of {@link MEANING}. */
  meaningOf(lists: readonly number[]): number {
    let meaning = 0;
    for (let at = 0; at < lists.length; at++) meaning |= this.#meanings[lists[at]!]!;
    return meaning;
  }

  /** Whether a word has at least one of the given meanings. */
  means(lists: readonly number[], meanings: number): boolean {
    return (this.meaningOf(lists) & meanings) !== 0;
  }
}
