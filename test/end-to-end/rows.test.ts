/** Each row of the documents has a test that names it. Otherwise a row without a test would not be noticed. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const CASES = readdirSync(import.meta.dirname)
  .filter((name) => name.endsWith('.test.ts') && name !== 'rows.test.ts')
  .map((name) => readFileSync(join(import.meta.dirname, name), 'utf8'))
  .join('\n');

const ROWS: Readonly<Record<string, readonly string[]>> = {
  'spec 2.1': ['domain', 'found', 'language', 'page_types', 'quota_remaining', 'verdict', 'matched', 'iab_category'],
  'spec 2.1 ': ['filtering_categories', 'open_page_rank', 'global_rank'],
  'spec 2.2': ['layer: high_value_hosts', 'layer: page_type_db', 'layer: rules', 'layer: default', 'id', 'note'],
  'spec 3.1': [
    'not activated, payment completes',
    'not activated, a lookup with a valid key',
    'activated, each lookup, found or not',
    'activated, the last unit is used',
    'quota exhausted, the next 30-day cycle starts',
    'quota exhausted, upgrade to a larger plan',
  ],
  'spec 4': ['domain/url', 'url', 'method', 'api_key', 'X-API-Key', 'rule 1', 'rule 2', 'rule 3'],
  'spec 4 ': ['behavior 1', 'behavior 2', 'behavior 3', 'behavior 4', 'behavior 5', 'behavior 6', 'behavior 7'],
  'spec 5': ['rule 1', 'rule 2', 'rule 3', 'rule 4', 'rule 5', 'rule 6', 'rule 7'],
  'spec 7': ['200', '400', '401', '403', '429', '503'],
  'spec 8.1': ['rule 1', 'rule 2', 'rule 3', 'rule 4', 'rule 5'],
  'spec 8.3': ['240 requests', '429'],
  'contract request': [
    'domain and url both sent',
    'a parameter sent twice',
    'a query parameter nobody knows',
    'decoding',
    'key in header and in query',
    'the order of the checks',
    'blanks around the value',
    'longest value',
    'method',
    'other HTTP methods on the path',
    'a body on the GET',
    'size on the wire',
    'bare domain or full URL',
  ],
  'contract normalization': [
    'IPv4/IPv6 literal or single label, empty, unparsable',
    'the same with a scheme or a path',
    'another scheme',
    'subdomain of a classified domain',
    'key of a key',
  ],
  'contract response': [
    'always present',
    'present on found domains',
    'a fact that is not known is absent',
    'key order',
    'iab_category',
    'filtering_categories',
    'global_rank',
    'vocabulary order',
    'headers',
    'the same input on two plans',
  ],
  'contract errors': ['form', '403 fields', 'Retry-After', 'only a 200 consumes a lookup'],
  'contract accounts': [
    'Business quota',
    'cycle',
    'upgrade',
    'not activated',
    'clock moved back',
    'key',
    'what consumes',
    'plan volumes above Enterprise',
  ],
  'contract burst limit': ['per client IP', 'whatever their status', 'X-Forwarded-For'],
  'contract transport': ['the public port has the one endpoint'],
};

describe.each(Object.entries(ROWS))('%s', (section, rows) => {
  it.each(rows)('%s has a case', (row) => {
    const name = `${section.trim()} ${row}`.toLowerCase();
    expect(
      CASES.toLowerCase()
        .replaceAll(/[:,] ?/g, ' ')
        .includes(name.replaceAll(/[:,] ?/g, ' ')),
      name,
    ).toBe(true);
  });
});
