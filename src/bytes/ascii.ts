/** ASCII codes by name, for code that reads single characters or bytes. */

export const TAB = 0x09;
export const LINE_FEED = 0x0a;
export const QUOTE = 0x22;
export const NUMBER_SIGN = 0x23;
export const PERCENT = 0x25;
export const AMPERSAND = 0x26;
export const COMMA = 0x2c;
export const HYPHEN = 0x2d;
export const DOT = 0x2e;
export const SLASH = 0x2f;
export const NINE = 0x39;
export const COLON = 0x3a;
export const SEMICOLON = 0x3b;
export const EQUALS = 0x3d;
export const QUESTION_MARK = 0x3f;
export const OPENING_BRACKET = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSING_BRACKET = 0x5d;
export const UNDERSCORE = 0x5f;
