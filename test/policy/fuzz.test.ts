/** A short run of the fuzzer. `make fuzz` is the long one, which also measures. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fuzzAdditions } from '../../tools/fuzz/additions.ts';
import { longValues } from '../../tools/fuzz/urls.ts';
import { fuzzVerdicts, judgeValue } from '../../tools/fuzz/verdict.ts';
import { hostileForms } from '../evasion/hostile-urls.ts';
import { shipped } from './support.ts';

/** Kinds of additions that only some URLs can have: more than this many are tried. */
const SELDOM: Readonly<Record<string, number>> = {
  'a language in front': 800,
  'another form of the host': 200,
  'another order': 200,
  'a parameter again': 1000,
  'a parameter of a route': 200,
};

describe('the fuzzer', () => {
  it.each([1, 2])('with seed %d finds no crash, and one verdict for every spelling', (seed) => {
    const report = fuzzVerdicts(shipped, seed, 8000);
    expect(report.failures).toEqual([]);
    expect(report.judged).toBeGreaterThan(3000);
    expect(report.pairs).toBeGreaterThan(1500);
    expect(report.harder).toBeLessThan(report.pairs / 2);
  });

  it('finds nothing that anyone can add to a denial or a flag to make an allow of it', () => {
    const acts = ['hard-acts', 'own-urls', 'code-urls'].flatMap((name) => {
      const rows = readFileSync(new URL(`../data/eval/${name}.tsv`, import.meta.url), 'utf8')
        .trimEnd()
        .split('\n');
      return rows.slice(1).map((row) => row.split('\t').at(-1)!);
    });
    const { tried, failures } = fuzzAdditions(shipped, 3, 8000, [...acts, ...hostileForms(shipped.document).all]);
    expect(failures).toEqual([]);
    for (const [kind, count] of Object.entries(tried))
      expect([kind, count > (SELDOM[kind] ?? 2000)]).toEqual([kind, true]);
  });

  it('judges the longest hostile values', () => {
    const values = Object.entries(longValues(8000));
    expect(values.length).toBeGreaterThan(20);
    for (const [name, value] of values)
      if (name !== 'dot segments') expect([name, judgeValue(shipped, value, 'GET')?.verdict]).not.toContain('allow');
  });
});

/** Nested repetitions that stay linear: each round needs a character that the inner one does not match. */
const BOUNDED = new Set<string>([]);

describe('linear time', () => {
  const files = ['domain', 'policy'].flatMap((module) => {
    const dir = new URL(`../../src/${module}/`, import.meta.url);
    return (readdirSync(dir, { recursive: true }) as string[])
      .filter((name) => name.endsWith('.ts'))
      .map((name) => [`${module}/${name}`, readFileSync(new URL(name, dir), 'utf8')] as const);
  });

  /** Bodies of the regular expressions in a source text: from a slash after something that cannot end a value, up to the next slash of its own. */
  const expressions = (text: string): string[] =>
    [...text.matchAll(/(?<=[=(,:?!&|]\s*)\/((?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/[a-z]*(?=[.,;)\s])/g)].map(
      (match) => match[1] ?? '',
    );

  it('is not put at risk by a pattern that repeats a repetition', () => {
    const all = files.flatMap(([name, text]) => expressions(text).map((body) => [name, body] as const));
    expect(all.length).toBeGreaterThan(15);
    // A group that has a repetition, and is itself repeated without limit: the classic way to exponential time.
    const risky = all
      .filter(([, body]) => /[+*}]\)(?:[+*]|\{\d+,\})/.test(body))
      .map(([name, body]) => `${name}: ${body}`);
    expect(risky.filter((text) => !BOUNDED.has(text))).toEqual([]);
  });
});
