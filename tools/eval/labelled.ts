/** Labelled real URLs: each row says what a page is for, by somebody who did not look at our rules. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { registrableDomain } from '../../src/domain/public-suffix.ts';
import { parseTarget, type Target } from '../../src/domain/target.ts';

export interface LabelledUrl {
  readonly source: string;
  readonly type: string;
  /** `field`, `list`, `label` or `path`: how the source tells what the page is for. */
  readonly evidence: string;
  readonly url: string;
  readonly target: Target;
  readonly half: 'develop' | 'report';
}

export interface Labelled {
  readonly rows: readonly LabelledUrl[];
  /** Rows whose URL is no URL. */
  readonly unparsable: number;
  /** Rows that say the same of the same canonical URL as an earlier one. */
  readonly duplicates: number;
}

/** Which half a URL is in: by a hash of its registrable domain, so that no site is in both. */
function halfOf(key: string): 'develop' | 'report' {
  const owner = registrableDomain(key) ?? key;
  return (createHash('sha256').update(owner).digest()[0]! & 1) === 0 ? 'develop' : 'report';
}

/** Reads rows of `source, type, evidence, …, url` (tab-separated, a heading first, gzip or plain). Nothing is picked by hand. */
export function readLabelled(path: string, types: ReadonlySet<string>): Labelled {
  const bytes = readFileSync(path);
  const text = (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString('utf8');
  const [heading = '', ...lines] = text.split('\n');
  const names = heading.split('\t');
  const at = {
    source: names.indexOf('source'),
    type: names.indexOf('type'),
    evidence: names.indexOf('evidence'),
    url: names.indexOf('url'),
  };
  const seen = new Set<string>();
  const rows: LabelledUrl[] = [];
  let unparsable = 0;
  let duplicates = 0;
  for (const line of lines) {
    if (line === '') continue;
    const cells = line.split('\t');
    const type = cells[at.type] ?? '';
    const url = cells[at.url] ?? '';
    if (!types.has(type)) continue;
    const target = parseTarget(url);
    if ('problem' in target) {
      unparsable++;
      continue;
    }
    const identity = `${type} ${target.url.href}`;
    if (seen.has(identity)) {
      duplicates++;
      continue;
    }
    seen.add(identity);
    rows.push({
      source: cells[at.source] ?? '',
      type,
      evidence: cells[at.evidence] ?? '',
      url,
      target,
      half: halfOf(target.key),
    });
  }
  return { rows, unparsable, duplicates };
}
