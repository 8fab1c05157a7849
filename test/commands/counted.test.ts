/** Numbers and times in the output of commands. */
import { describe, expect, it } from 'vitest';
import { counted } from '../../src/counted.ts';
import { rfc3339, rfc3339OrNull } from '../../src/times.ts';

describe('a number with its noun', () => {
  it.each([
    [0, '0 files'],
    [1, '1 file'],
    [2, '2 files'],
    [12_000, '12,000 files'],
  ])('%i', (count, text) => {
    expect(counted(count, 'file')).toBe(text);
  });

  it('accepts a plural that does not end with an s', () => {
    expect(counted(1, 'entry', 'entries')).toBe('1 entry');
    expect(counted(2, 'entry', 'entries')).toBe('2 entries');
  });
});

describe('a time', () => {
  it('has a fraction of a second only if it is not zero', () => {
    expect(rfc3339(1_767_225_600)).toBe('2026-01-01T00:00:00Z');
    expect(rfc3339(1_767_225_600.25)).toBe('2026-01-01T00:00:00.250Z');
    expect(rfc3339OrNull(null)).toBeNull();
  });
});
