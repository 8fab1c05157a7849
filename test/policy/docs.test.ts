/** The page about the verdict agrees with the shipped policy. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hostileForms } from '../evasion/hostile-urls.ts';
import { licenseePolicy, shipped } from './support.ts';

const textOf = (name: string): string => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
const page = textOf('verdict.md');

/** Returns the rows of the table under a heading, cell by cell. */
function rowsOf(heading: string, text = page): string[][] {
  const section = text.split(new RegExp(`^#{2,3} ${heading}\n`, 'm'))[1]?.split(/\n#{2,3} /)[0] ?? '';
  return section
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|[-:|]+\|$/.test(line))
    .slice(1)
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

describe('docs/verdict.md', () => {
  it.each([
    ['Guard rules', 'guard'],
    ['Pattern rules', 'pattern'],
  ])('lists the %s that ship, and no others', (heading, kind) => {
    const listed = rowsOf(heading).map(([id, verdict]) => `${id} ${verdict}`);
    const rules = shipped.document.rules.filter((rule) => rule.kind === kind);
    expect(rules.length).toBeGreaterThan(15);
    expect(listed).toEqual(rules.map((rule) => `\`${rule.id}\` ${rule.verdict}`));
  });

  it('lists the groups of high-value hosts that ship, each with its verdict and size, and no others', () => {
    const listed = rowsOf('High-value hosts').map((cells) => cells.slice(0, 3).join(' '));
    const groups = Map.groupBy(shipped.document.hosts, ({ group }) => group);
    const shippedGroups = [...groups].map(([group, entries]) => {
      const { verdict, reads, writes } = entries[0]!;
      return `\`${group}\` ${verdict ?? `reads ${reads}, writes ${writes}`} ${entries.length}`;
    });
    expect(shippedGroups.length).toBeGreaterThan(10);
    expect(listed).toEqual(shippedGroups);
  });

  it('shows a policy file that is valid', () => {
    const example = /```json\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    const policy = licenseePolicy(JSON.parse(example));
    expect(policy.document.allow.map((entry) => entry.id)).toEqual(['crm']);
  });
});

it('docs/evaluation.md counts the hostile URLs that are tried, by class', () => {
  const listed = rowsOf('Evasion', textOf('evaluation.md')).map((cells) => cells.join(' '));
  const { classes } = hostileForms(licenseePolicy({}, 'open').document);
  const count = (forms: readonly string[]): string => forms.length.toLocaleString('en-US');
  expect(listed).toEqual(Object.entries(classes).map(([name, forms]) => `${name} ${count(forms)}`));
});
