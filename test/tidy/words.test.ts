/** Retired words do not return to code, messages, documents and names of tests. docs/glossary.md has the current terms. */
import { describe, expect, it } from 'vitest';
import { filesUnder, textOf } from './tree.ts';

/** The replacement, and the pattern of the retired word. Written so that this file does not match itself. */
const RETIRED: readonly (readonly [string, RegExp])[] = [
  ['module', /\br[o]oms?\b(?! of)/i],
  ['ledger writer', /\bk[e]epers?\b/i],
  ['valid, consistent or intact', /\bs[o]und\b(?!,? code)|S[o]undLines/],
  ['watchdog, timeout, heartbeat', /\bpati[e]nce\b|signs? of l[i]fe|\bLIFE_S[I]GN|S[i]lenceWatch/i],
  ['without an error', /\bin s[i]lence\b/i],
  ['partitioned, separated', /\bp[a]rted\b/i],
  ['inherited or passed', /\bh[a]nded ?over\b/i],
  ['killOnExit, child cleanup', /killWith[U]s|side ?d[o]ors?\b/i],
  ['withEffectivePlan, resolve', /settled[I]n\b/],
  ['NOT_FOUND', /NOT_TH[E]RE|\bNO = -[1]/],
  ['identifying', /\btell[i]ng\b|tell[i]ng(?=[A-Z_])/],
  ['section, destination', /\bsh[e]lf\b|\bsh[e]lves\b/i],
  ['last known good, active', /\bAccept[a]nce\b|Accepted[P]arts/],
  ['belongs in', /\bbelongs? [i]nto\b/i],
  ['is not one, is not valid', /(?<!\b(?:[Tt]here|soon) )\b(?:is|are) n[o]ne\b(?! of)/],
  ['lookup', /\blook-[u]ps?\b/i],
  ['repaired', /\bput r[i]ght\b/i],
  ['synthetic', /(?<!pagegate-)\bmade-[u]p\b/i],
  ['explicitly', /\bin so many w[o]rds\b/i],
  ['alert on', /\bw[a]ke somebody\b/i],
  ['cycle usage', /\bMeter[a]ge\b/],
  ['report, refuse', /\bcompl[a]in(?:s|ts?|ed|ing)?\b/i],
  ['low vowel share', /\bunw[o]rdly\b/i],
  ['catalog', /(?<!bad_plan_)catal[o]gues?\b/i],
  ['burst limit', /\bburst[- ]?g[u]ard\b/i],
  ['who makes the change, whoever', /\bwho a[c]ts\b|\bwhose the\b/],
  ['on a tie', /\bof e[q]uals\b/],
  ['bucket (of the index)', /\blineC[o]unt\b|\bLINE_S[I]ZE_BYTES\b|\bRECORDS_PER_L[I]NE/],
];

/** Data with words from the web, and names given by others. */
const OTHERS =
  /^(?:data\/(?:policy|sample|taxonomies|vocabulary|provenance)\/|data\/NOTICE|test\/data\/|docs\/vocabulary\.md$|LICENSE$|(?:bench\/)?package-lock\.json$)/;
const files = filesUnder('').filter(
  (path) =>
    /\.(?:ts|mts|js|md|sh|yml|yaml|json|py|svg|service|timer|conf|nft)$|(?:^|\/)Makefile$/.test(path) &&
    !OTHERS.test(path),
);

describe('retired words', () => {
  it('are searched in everything that people read', () => {
    expect(files.length).toBeGreaterThan(500);
    expect(files.some((path) => path.startsWith('src/'))).toBe(true);
    expect(files).toContain('docs/README.md');
  });

  it.each(RETIRED)('are replaced: %s', (_instead, pattern) => {
    const found = files.flatMap((path) =>
      textOf(path)
        .split('\n')
        .flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}: ${line.trim().slice(0, 120)}`] : [])),
    );
    expect(found).toEqual([]);
  });
});
