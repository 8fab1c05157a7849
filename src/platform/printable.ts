/** Makes untrusted text safe to show. */

/** Characters that a terminal or a browser would interpret: control characters except the tab, and marks that change the text's direction. */
export const UNPRINTABLE = /[^\P{Cc}\t]|[\u202a-\u202e\u2066-\u2069]/gu;

/** Returns untrusted text as one line that is safe to show: `\x1b` for the escape character. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`;
  });
}
