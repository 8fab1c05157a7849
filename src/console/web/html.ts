/** Markup: everything that is put into a template is escaped, whatever it is and wherever it came from. There is no way around it. */
import { printable } from '../../platform/printable.ts';

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
};

/** Line ends stay: for text of several lines. */
const escapeText = (text: string): string =>
  text
    .split('\n')
    .map((line) => printable(line).replace(/[&<>"'`]/g, (character) => ESCAPES[character]!))
    .join('\n');

/** Finished markup. Only {@link html} makes it. */
export class Html {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  /** For {@link html}: the pieces are literals of our source, the values are anything. */
  static of(pieces: TemplateStringsArray, values: readonly Value[]): Html {
    let text = pieces[0] ?? '';
    values.forEach((value, i) => {
      text += markup(value) + (pieces[i + 1] ?? '');
    });
    return new Html(text);
  }

  toString(): string {
    return this.#text;
  }
}

/** What may stand in a template; nothing is shown for null, undefined and false. */
export type Value = Html | string | number | null | undefined | false | readonly Value[];

function markup(value: Value): string {
  if (value instanceof Html) return value.toString();
  if (Array.isArray(value)) return value.map(markup).join('');
  if (value === null || value === undefined || value === false) return '';
  return escapeText(String(value));
}

/** A template of markup. Attributes must stand in quotes. */
export function html(pieces: TemplateStringsArray, ...values: readonly Value[]): Html {
  return Html.of(pieces, values);
}
