/** The dataset generator: determinism, shape, dirt, and the command line. */
import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { zstdDecompressSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { keyFromHost } from '../../src/domain/host-key.ts';
import { isPublicSuffix } from '../../src/domain/public-suffix.ts';
import { readManifest } from '../../src/drop/manifest.ts';
import { LINE_MAX_BYTES, parseEntry } from '../../src/record/entry.ts';
import { DIRT } from '../../tools/dataset/dirt.ts';
import { Dataset, partCount, partRange } from '../../tools/dataset/parts.ts';
import { makeWheel } from '../../tools/dataset/weighted-choice.ts';

const tool = fileURLToPath(new URL('../../tools/dataset/generate.ts', import.meta.url));
const out = mkdtempSync(join(tmpdir(), 'pagegate-dataset-'));
afterAll(() => rmSync(out, { recursive: true, force: true }));

const dataset = (records: number, seed = 1, dirt = 0): Dataset =>
  new Dataset({ records, seed, dirt, compression: 'none' });
const bytesOf = (set: Dataset, from: number, to: number): Buffer => Buffer.concat([...set.chunks(from, to)]);
const run = (...args: string[]) => spawnSync(process.execPath, [tool, ...args], { encoding: 'buffer', maxBuffer: 1e9 });

describe('determinism', () => {
  it('is frozen: figures in our documents were measured with these bytes', () => {
    expect(hash('sha256', bytesOf(dataset(1_000_000), 0, 20_000))).toBe(
      '0451b93f73c441ef2bbc3861b0ebc08341499cc2d12b654fcc0f9059e22eeae5',
    );
  });

  it('does not depend on where a part starts', () => {
    const whole = bytesOf(dataset(5000, 3, 0.1), 0, 5000);
    const halves = [bytesOf(dataset(5000, 3, 0.1), 0, 1234), bytesOf(dataset(5000, 3, 0.1), 1234, 5000)];
    expect(hash('sha256', Buffer.concat(halves))).toBe(hash('sha256', whole));
  });

  it('gives other names and facts for another seed', () => {
    const [a, b] = [dataset(20_000, 1), dataset(20_000, 2)];
    const names = new Set(Array.from({ length: 20_000 }, (_, i) => a.nameOf(i)));
    const shared = Array.from({ length: 20_000 }, (_, i) => b.nameOf(i)).filter((name) => names.has(name));
    expect(shared.length).toBeLessThan(2000);
  });

  it('splits every number of records into parts without gap or overlap', () => {
    for (const records of [1, 7, 499_999, 500_001, 1_000_000, 40_000_000, 799_999_999]) {
      let at = 0;
      for (let part = 0; part < partCount(records); part += 1) {
        const { from, to } = partRange(records, part);
        expect(from).toBe(at);
        expect(to).toBeGreaterThan(from);
        at = to;
      }
      expect(at).toBe(records);
    }
  });
});

describe('shape', () => {
  const records = 30_000;
  const bytes = bytesOf(dataset(1_000_000, 5), 500_000, 500_000 + records);
  const lines = bytes.toString('utf8').split('\n').slice(0, -1);
  const entries = lines.map((line) => JSON.parse(line) as { domain: string; page_types: Record<string, string> });

  it('has nothing to reject or to repair, except that a synthetic name may be a public suffix, which has no pages below it', () => {
    expect(lines).toHaveLength(records);
    const findings = entries.flatMap(({ domain }, i) => {
      const { rejects, repairs } = parseEntry(Buffer.from(lines[i]!));
      const suffix = isPublicSuffix(domain, { private: true });
      return [...rejects.map(({ reason }) => (suffix ? `${reason} below a suffix` : reason)), ...repairs];
    });
    expect(findings.filter((finding) => finding !== 'page_off_domain below a suffix')).toEqual([]);
    expect(findings.length).toBeLessThan(records / 1000);
  });

  it('has the size and the pages stated in the README', () => {
    expect(bytes.length / records).toBeGreaterThan(560);
    expect(bytes.length / records).toBeLessThan(590);
    const pages = entries.reduce((sum, entry) => sum + Object.keys(entry.page_types).length, 0) / records;
    expect(pages).toBeGreaterThan(7.5);
    expect(pages).toBeLessThan(8.1);
  });

  it('has names that are keys, nearly all different, with a known share below .com and in families', () => {
    const names = entries.map(({ domain }) => domain);
    expect(
      names.filter((name) => !('key' in keyFromHost(name)) || (keyFromHost(name) as { key: string }).key !== name),
    ).toEqual([]);
    expect(new Set(names).size).toBeGreaterThan(records * 0.999);
    const com = names.filter((name) => name.endsWith('.com')).length / records;
    expect(com).toBeGreaterThan(0.38);
    expect(com).toBeLessThan(0.5);
    expect(names.filter((name) => name.includes('xn--')).length).toBeGreaterThan(10);
    const owners = new Map<string, number>();
    for (const name of names)
      owners.set(name.split('.').slice(1).join('.'), (owners.get(name.split('.').slice(1).join('.')) ?? 0) + 1);
    const largest = Math.max(
      ...[...owners]
        .filter(([owner]) => owner.includes('.') && !/^(co|com|org|net|ac|gov|go|edu|or|ne)\./.test(owner))
        .map(([, count]) => count),
    );
    expect(largest / records).toBeGreaterThan(0.01);
  });

  it('has ranks that are all different and in range', () => {
    const ranks = lines.flatMap((line) => (JSON.parse(line) as { global_rank?: number }).global_rank ?? []);
    expect(ranks.length).toBeGreaterThan(records * 0.25);
    expect(new Set(ranks).size).toBe(ranks.length);
    expect(Math.min(...ranks)).toBeGreaterThanOrEqual(1);
    expect(Math.max(...ranks)).toBeLessThanOrEqual(300_000);
  });

  it('can name a record without generating it', () => {
    const set = dataset(1_000_000, 5);
    expect([0, 1, 29_999].map((i) => set.nameOf(500_000 + i))).toEqual([0, 1, 29_999].map((i) => entries[i]?.domain));
  });
});

describe('absent names', () => {
  it('are keys of the same length that no record can have', () => {
    const set = dataset(10_000);
    for (let i = 0; i < 10_000; i += 1) {
      const name = set.absentNameOf(i);
      expect(name).toHaveLength(set.nameOf(i).length);
      expect(name.split('_')).toHaveLength(2);
      expect(keyFromHost(name)).toEqual({ key: name });
      expect(set.nameOf(i)).not.toContain('_');
    }
  });
});

describe('dirt', () => {
  /** Kind → the builder's reason or repair; undefined if a single line does not show it. */
  const OUTCOMES: Readonly<Record<string, string | undefined>> = {
    duplicate: undefined,
    duplicate_www: 'domain_www_stripped',
    upper_case: 'domain_case_folded',
    trailing_dot: 'domain_trailing_dot_stripped',
    mojibake: 'domain_mojibake',
    unicode_label: 'domain_idn_encoded',
    long_label: 'domain_label_too_long',
    long_name: 'domain_too_long',
    empty_label: 'domain_empty_label',
    edge_hyphen: 'domain_edge_hyphen',
    control_byte: 'domain_control_character',
    port: 'domain_port_stripped',
    path: 'domain_has_path',
    percent: 'domain_percent_encoded',
    wildcard: 'domain_forbidden_character',
    ip_address: 'domain_ip_address',
    single_label: 'domain_single_label',
    empty_domain: 'domain_empty',
    no_domain: 'domain_missing',
    domain_no_string: 'domain_wrong_type',
    page_off_domain: 'page_off_domain',
    page_type_unknown: 'page_type_unknown',
    page_not_url: 'page_url_invalid',
    language_unknown: 'language_unknown',
    rank_zero: 'global_rank_out_of_range',
    rank_huge: 'global_rank_out_of_range',
    rank_again: undefined,
    open_page_rank_high: 'open_page_rank_out_of_range',
    byte_order_mark: 'invalid_json',
    carriage_return: undefined,
    repeated_key: 'duplicate_key',
    unknown_key: 'unknown_field',
    cut_off: 'invalid_json',
    not_json: 'invalid_json',
    not_an_object: 'not_an_object',
    // The reader of parts rejects it before it is parsed: see below.
    over_long: 'unknown_field',
  };
  const text =
    '{"domain":"shop.example.com","language":"en","page_types":{"about":"https://shop.example.com/about"},"open_page_rank":3.1,"global_rank":9}';
  const dirty = (kind: string): string =>
    DIRT[kind]!({ text, domain: 'shop.example.com', earlier: 'first.example.com', number: 77 });

  it('has an outcome for every kind', () => {
    expect(Object.keys(OUTCOMES)).toEqual(Object.keys(DIRT));
  });

  it.each(Object.entries(OUTCOMES))('%s is reported as %s', (kind, outcome) => {
    const line = dirty(kind);
    expect(line).not.toBe(text);
    const { rejects, repairs } = parseEntry(Buffer.from(line));
    const findings = [...rejects.map(({ reason }) => reason as string), ...repairs];
    if (outcome === undefined) expect(findings.filter((finding) => finding !== 'crlf')).toEqual([]);
    else expect(findings).toContain(outcome);
  });

  it('contains a line that is longer than the maximum', () => {
    expect(dirty('over_long').length).toBeGreaterThan(LINE_MAX_BYTES);
  });

  it('has the requested share, with every kind', () => {
    const counts: Record<string, number> = {};
    for (const chunk of dataset(20_000, 9, 0.2).chunks(0, 20_000, counts)) expect(chunk.length).toBeGreaterThan(0);
    expect(Object.keys(counts).sort()).toEqual(Object.keys(DIRT).sort());
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
    expect(total / 20_000).toBeGreaterThan(0.19);
    expect(total / 20_000).toBeLessThan(0.21);
  });
});

describe('the command', () => {
  it('writes a drop with a valid manifest, the same with any number of workers', () => {
    const folders = ['1', '3'].map((workers) => {
      const folder = join(out, `workers-${workers}`);
      const { status } = run('--records', '2000', '--out', folder, '--compress', 'zstd', '--workers', workers);
      expect(status).toBe(0);
      return folder;
    });
    const [one = '', three = ''] = folders;
    const { manifest } = readManifest(one);
    expect(manifest.notice).toMatch(/^Made up/);
    expect(manifest.page_types).toBe('complete');
    expect(manifest.files.reduce((sum, { records }) => sum + records, 0)).toBe(2000);
    for (const { name, bytes, sha256: expected } of manifest.files) {
      const part = readFileSync(join(one, name));
      expect([part.length, hash('sha256', part)]).toEqual([bytes, expected]);
    }
    expect(readdirSync(three)).toEqual(readdirSync(one));
    for (const name of readdirSync(one))
      expect(readFileSync(join(three, name)).equals(readFileSync(join(one, name)))).toBe(true);
    const packed = manifest.files.map(({ name }) => zstdDecompressSync(readFileSync(join(one, name))));
    const piped = run('--records', '2000', '--out', '-');
    expect(piped.status).toBe(0);
    expect(hash('sha256', piped.stdout)).toBe(hash('sha256', Buffer.concat(packed)));
  });

  it('ends quietly if its reader stops', () => {
    const { status, stdout, stderr } = spawnSync(
      'sh',
      ['-c', `"${process.execPath}" "${tool}" --records 100000 --out - | head -n 1`],
      { encoding: 'utf8' },
    );
    expect([status, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toHaveProperty('domain');
  });

  it.each([
    [['--out', 'x'], '--records and --out are needed'],
    [['--records', '0', '--out', 'x'], '--records: expected a whole number'],
    [['--records', '1e9', '--out', 'x'], '--records: expected a whole number'],
    [['--records', '5', '--out', 'x', '--dirt', '2'], '--dirt: expected 0 to 0.5'],
    [['--records', '5', '--out', 'x', '--compress', 'rar'], '--compress'],
    [['--records', '5', '--out', 'x', '--nonsense'], '--nonsense'],
  ])('refuses %j', (args, message) => {
    const { status, stderr } = run(...args);
    expect(status).toBe(2);
    expect(stderr.toString()).toContain(message);
    expect(stderr.toString()).toContain('Usage:');
  });
});

describe('a weighted wheel', () => {
  it('divides its slots by weight, uses all of them, and gives none to a weight of zero', () => {
    const { table, base, width } = makeWheel([1, 0, 2, 1], 10);
    expect([...width]).toEqual([3, 0, 5, 2]);
    expect([...table]).toEqual([0, 0, 0, 2, 2, 2, 2, 2, 3, 3]);
    expect([...base]).toEqual([0, 3, 3, 8]);
  });
});
