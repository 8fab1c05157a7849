/** Undoes what readers of a text undo in addition to percent escapes: compatibility letters, invisible characters, escapes of JSON and HTML. */

const BEYOND_ASCII = /[^\0-\x7f]/;
const INVISIBLE = /\p{Default_Ignorable_Code_Point}+/gu;
const JSON_ESCAPE = /\\(?:u00|x)([0-7][0-9a-f])/gi;
const HTML_ESCAPE = /&(?:#(?:0{0,6}([0-9]{1,3})|x0{0,6}([0-7]?[0-9a-f]))(?![0-9a-f]);?|(colon|sol);)/gi;

/** Normalizes a decoded text to plain letters (NFKC), removes invisible characters, and decodes JSON and HTML escapes of ASCII characters. */
export function plainText(text: string): string {
  let plain = BEYOND_ASCII.test(text) ? text.normalize('NFKC').replace(INVISIBLE, '') : text;
  if (plain.includes('\\')) plain = plain.replace(JSON_ESCAPE, (_sign, digits) => characterOf(digits, 16));
  if (plain.includes('&')) {
    plain = plain.replace(HTML_ESCAPE, (sign, decimal, digits) => {
      if (decimal !== undefined) return characterOf(decimal, 10);
      return digits !== undefined ? characterOf(digits, 16) : /^&c/i.test(sign) ? ':' : '/';
    });
  }
  return plain;
}

function characterOf(digits: string, base: number): string {
  return String.fromCharCode(Number.parseInt(digits, base));
}
