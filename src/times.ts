/** Times as they are told: RFC 3339, in UTC. */

/** The milliseconds of a day. */
export const DAY_MS = 86_400_000;

/** A second since 1970. */
export const rfc3339 = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');

/** The same; null stays null. */
export const rfc3339OrNull = (seconds: number | null): string | null => (seconds === null ? null : rfc3339(seconds));

/** A time that a file tells, perhaps in another zone; what is no time stays what it is. */
export function utc(time: string): string {
  const ms = Date.parse(time);
  return time.endsWith('Z') || Number.isNaN(ms) ? time : rfc3339(ms / 1000);
}
