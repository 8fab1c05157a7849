/** Formats times in UTC as in RFC 3339. */

/** The number of milliseconds in a day. */
export const DAY_MS = 86_400_000;

/** Formats a time in seconds since 1970. */
export const rfc3339 = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');

/** Like {@link rfc3339}, but returns null for null. */
export const rfc3339OrNull = (seconds: number | null): string | null => (seconds === null ? null : rfc3339(seconds));

/** Converts a time from a file to UTC. Returns the text unchanged if it is not a valid time. */
export function utc(time: string): string {
  const ms = Date.parse(time);
  return time.endsWith('Z') || Number.isNaN(ms) ? time : rfc3339(ms / 1000);
}
