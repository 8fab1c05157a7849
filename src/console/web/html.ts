/** HTML templates. Every value in a template is escaped, wherever it comes from; there is no way around it. */
import { printable } from '../../platform/printable.ts';

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
};

/** Escapes a text for HTML. Line feeds are kept. */
const escapeText = (text: string): string =>
  text
    .split('\n')
    .map((line) => printable(line).replace(/[&<>"'`]/g, (character) => ESCAPES[character]!))
    .join('\n');

/** Escaped markup. Only {@link html} creates it. */
export class Html {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  /** For {@link html} only: the pieces are literals in the source code, the values are arbitrary. */
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

/** A value in a template; null, undefined and false are shown as nothing. */
export type Value = Html | string | number | null | undefined | false | readonly Value[];

function markup(value: Value): string {
  if (value instanceof Html) return value.toString();
  if (Array.isArray(value)) return value.map(markup).join('');
  if (value === null || value === undefined || value === false) return '';
  return escapeText(String(value));
}

/** Template tag for markup. Attribute values must be quoted. */
export function html(pieces: TemplateStringsArray, ...values: readonly Value[]): Html {
  return Html.of(pieces, values);
}
