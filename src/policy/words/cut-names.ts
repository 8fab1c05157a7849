/** Names that a sign cuts, behind which some servers read on and others do not: `login!input.action`, `docs?x=1` with the sign encoded. */
import { isMethodMark, nameStop } from '../url/segments.ts';
import type { TokenIndex } from './tokens.ts';

/** Extensions behind the name of a method. */
const ACTION_EXTENSIONS: ReadonlySet<string> = new Set(['.action', '.do']);
/** No more methods of one name are looked at. */
const METHOD_MARKS_MAX = 4;

/** Where a cut name stands in a path. */
export interface CutName {
  readonly start: number;
  /** Where the first sign stands. */
  readonly stop: number;
  /** Where the whole name ends, before its extension. */
  readonly wholeEnd: number;
  /** Where the segment ends. */
  readonly end: number;
}

/** Token lists of a cut name: of the part before each sign, of the whole, and of a method of an action (`x!login.action`). */
export function listsOfCutName(tokens: TokenIndex, path: string, name: CutName): readonly number[] {
  const { start, stop, wholeEnd, end } = name;
  const part = tokens.findName(path, start, stop);
  const whole = tokens.findName(path, start, wholeEnd);
  const extensionEnd = nameStop(path, wholeEnd, end);
  const isMethod =
    isMethodMark(path, stop, end) && ACTION_EXTENSIONS.has(path.slice(wholeEnd, extensionEnd).toLowerCase());
  const method = isMethod ? tokens.find(path, stop + 1, wholeEnd) : [];
  const lists = new Set([...part, ...whole, ...method]);
  for (let at = stop + 1, marks = 0; at < wholeEnd && marks < METHOD_MARKS_MAX; at++) {
    if (!isMethodMark(path, at, end)) continue;
    marks++;
    for (const list of tokens.findName(path, start, at)) lists.add(list);
  }
  return [...lists];
}
