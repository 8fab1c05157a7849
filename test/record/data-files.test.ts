import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { isLanguage, languages } from '../../src/record/language-codes.ts';
import {
  filteringCategories,
  filteringOrdinal,
  filteringTaxonomy,
  iabCategories,
  iabOrdinal,
  iabPaths,
} from '../../src/record/taxonomy.ts';
import { canonicalPageType, pageTypeOrdinal, pageTypes } from '../../src/record/vocabulary.ts';

const data = (path: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../data/${path}`, import.meta.url), 'utf8'));

function problems(schemaPath: string, value: unknown): unknown {
  const ajv = new Ajv2020({ allErrors: true, strict: false, formats: { uri: true } });
  const validate = ajv.compile(data(schemaPath) as object);
  return validate(value) ? [] : validate.errors;
}

describe('a shipped schema', () => {
  const folder = new URL('../../data/schema/', import.meta.url);
  const schemas = readdirSync(folder).map((name) => data(`schema/${name}`) as { $id: string });

  it('is valid: the program compiles it without checking', () => {
    const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
    addFormats.default(ajv);
    expect(schemas.length).toBeGreaterThan(10);
    for (const schema of schemas) ajv.addSchema(schema);
    for (const { $id } of schemas) expect(ajv.getSchema($id), $id).toBeTypeOf('function');
    expect(() => ajv.addSchema({ $id: 'broken', type: 'text' })).toThrow();
  });
});

describe('vocabulary', () => {
  const DENY = 'login signup password_reset account checkout cart upload post comment subscribe'.split(' ');
  const ALLOW = 'pricing docs contact about careers blog legal product help status'.split(' ');
  const EXTENDED = 'wiki_edit admin settings api_reference privacy terms forum download'.split(' ');

  it('has 28 types in the documented order, the first 20 the core', () => {
    expect(pageTypes('full').map((type) => type.name)).toEqual([...DENY, ...ALLOW, ...EXTENDED]);
    expect(pageTypes('core').map((type) => type.name)).toEqual([...DENY, ...ALLOW]);
  });

  it('gives each type its verdict', () => {
    const of = (verdict: string): string[] =>
      pageTypes('full')
        .filter((type) => type.verdict === verdict)
        .map((type) => type.name);
    expect(of('deny')).toEqual([...DENY, 'wiki_edit', 'admin', 'settings']);
    expect(of('allow')).toEqual([...ALLOW, 'api_reference', 'privacy', 'terms', 'forum']);
    expect(of('flag')).toEqual(['download']);
  });

  it.each([
    ['signin', 'login'],
    ['sign_in', 'login'],
    ['Sign-In', 'login'],
    ['register', 'signup'],
    ['documentation', 'docs'],
    ['privacy_policy', 'privacy'],
    ['terms of service', 'terms'],
    ['faq', 'help'],
    ['support', 'help'],
    ['login', 'login'],
  ])('reads the alias %s as %s', (alias, name) => {
    expect(canonicalPageType(alias)).toBe(name);
  });

  it('knows no other names, and no alias means two types', () => {
    expect(canonicalPageType('feed')).toBeUndefined();
    expect(canonicalPageType('')).toBeUndefined();
    expect(canonicalPageType('__proto__')).toBeUndefined();
    expect(pageTypeOrdinal('signin')).toBeUndefined();
    const names = pageTypes('full').flatMap((type) => [type.name, ...type.aliases]);
    expect(new Set(names).size).toBe(names.length);
    for (const type of pageTypes('full')) {
      for (const alias of type.aliases) expect(canonicalPageType(alias)).toBe(type.name);
    }
  });

  it('is valid against its schema', () => {
    expect(problems('schema/vocabulary.schema.json', data('vocabulary/page-types.json'))).toEqual([]);
    expect(problems('schema/vocabulary.schema.json', { name: 'page-types', version: 1, types: [] })).not.toEqual([]);
  });
});

describe('taxonomies', () => {
  it('has the 704 categories of IAB Content Taxonomy 3.1, found by path and by id', () => {
    expect(iabPaths).toHaveLength(704);
    expect(new Set(iabPaths).size).toBe(704);
    expect(iabPaths).toContain('Attractions > Amusement and Theme Parks');
    for (const [ordinal, category] of iabCategories.entries()) {
      expect(iabOrdinal(category.id)).toBe(ordinal);
      expect(iabOrdinal(category.path)).toBe(ordinal);
    }
    expect(iabCategories.filter((category) => !/^\d+$/.test(category.id)).length).toBeGreaterThan(10);
    expect(iabOrdinal('attractions')).toBeUndefined();
  });

  it('has 59 filtering categories, found by name and by id', () => {
    expect(filteringCategories).toHaveLength(59);
    expect(new Set(filteringTaxonomy.flatMap(({ id, name }) => [id, name])).size).toBe(118);
    for (const [ordinal, category] of filteringTaxonomy.entries()) {
      expect(filteringOrdinal(category.id)).toBe(ordinal);
      expect(filteringOrdinal(category.name)).toBe(ordinal);
    }
    expect(filteringOrdinal('MALWARE')).toBeUndefined();
    expect(filteringTaxonomy.filter((category) => category.threat).map((category) => category.id)).toEqual([
      'malware',
      'phishing',
      'scam',
      'botnet',
      'child_abuse',
    ]);
  });

  it.each(['iab-content-3.1', 'filtering-59'])('%s is valid against the schema', (name) => {
    const taxonomy = data(`taxonomies/${name}.json`) as { categories: object[] };
    expect(problems('schema/taxonomy.schema.json', taxonomy)).toEqual([]);
    const broken = { ...taxonomy, categories: taxonomy.categories.map((category) => ({ ...category, id: '' })) };
    expect(problems('schema/taxonomy.schema.json', broken)).not.toEqual([]);
  });
});

describe('languages', () => {
  it('has the 183 codes of ISO 639-1 in force, in order', () => {
    expect(languages).toHaveLength(183);
    expect([...languages].sort()).toEqual(languages);
    expect(new Set(languages).size).toBe(183);
  });

  it.each(['en', 'de', 'zh', 'ca', 'nb', 'nn', 'zu', 'aa'])('knows %s', (code) => {
    expect(isLanguage(code)).toBe(true);
    expect(languages).toContain(code);
  });

  it.each(['EN', 'eng', 'bh', 'xx', '', 'iw', 'sh'])('does not know "%s"', (code) => {
    expect(isLanguage(code)).toBe(false);
  });
});
