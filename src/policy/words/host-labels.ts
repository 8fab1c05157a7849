/** What the first label of a host announces (`login.`, `sso-eu.`, `docs.`), if it is below the registrable domain. */
import { isPublicSuffix } from '../../domain/public-suffix.ts';
import { isDigit } from '../url/characters.ts';
import type { HostFilter } from '../url/host-map.ts';
import { MEANING, type PlaceWords } from './place-words.ts';
import { NO_LISTS } from './token-table.ts';
import type { TokenIndex } from './tokens.ts';

/** Reads the first label of hosts. */
export class HostLabels {
  readonly #tokens: TokenIndex;
  readonly #placeWords: PlaceWords;
  readonly #hosts: HostFilter;

  /** @param hosts reads the hosts */
  constructor(tokens: TokenIndex, placeWords: PlaceWords, hosts: HostFilter) {
    this.#tokens = tokens;
    this.#placeWords = placeWords;
    this.#hosts = hosts;
  }

  /** Returns the token lists of the first label; none if that label belongs to the registrable domain. */
  listsOf(host: string): readonly number[] {
    const { starts, count } = this.#hosts.read(host);
    if (count < 3) return NO_LISTS;
    const dot = starts[count - 2]! - 1;
    const lists = this.#listsOfLabel(host, dot);
    return lists.length === 0 || isPublicSuffix(host.slice(dot + 1), { private: true }) ? NO_LISTS : lists;
  }

  /** Returns the lists of the label. If it is in no list, tries it without a number or a part that says where the server is (`login2`, `sso-eu`). */
  #listsOfLabel(host: string, dot: number): readonly number[] {
    const whole = this.#tokens.find(host, 0, dot);
    if (whole.length > 0) return whole;
    const first = firstHyphen(host, dot);
    if (first < 0 && !isDigit(host.charCodeAt(dot - 1))) return NO_LISTS;
    let end = dot;
    while (end > 0 && isDigit(host.charCodeAt(end - 1))) end--;
    if (end === 0) return NO_LISTS;
    if (end < dot && host.charCodeAt(end - 1) === 0x2d) end--;
    const hyphen = host.lastIndexOf('-', end - 1);
    if (hyphen <= 0) return end === dot ? NO_LISTS : this.#tokens.find(host, 0, end);
    const isPart = (start: number, stop: number): boolean =>
      this.#placeWords.means(this.#tokens.find(host, start, stop), MEANING.serverPart);
    if (isPart(hyphen + 1, end)) return this.#tokens.find(host, 0, hyphen);
    return isPart(0, first) ? this.#tokens.find(host, first + 1, end) : this.#tokens.find(host, 0, end);
  }
}

/** Returns the offset of the first hyphen in a host's first label; -1 if there is none. */
function firstHyphen(host: string, dot: number): number {
  for (let at = 0; at < dot; at++) if (host.charCodeAt(at) === 0x2d) return at;
  return -1;
}
