/** Text from elsewhere, made safe to show. */

/** What a terminal or a browser would act on instead of showing it: control characters but the tab, and marks that turn the order of the text. */
export const UNPRINTABLE = /[^\P{Cc}\t]|[\u202a-\u202e\u2066-\u2069]/gu;

/** Text from elsewhere as one line that is safe to show: `\x1b` for the escape character. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`;
  });
}
