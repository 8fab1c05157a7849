import { describe, expect, it } from 'vitest';
import { parseEntry } from '../../src/record/entry.ts';
import { FACT_REASONS, LINE_REASONS, PAGE_REASONS, REPAIRS } from '../../src/record/reject-reasons.ts';

const text = (line: string | Uint8Array): Uint8Array => (typeof line === 'string' ? Buffer.from(line) : line);
const reasons = (line: string | Uint8Array): string[] => parseEntry(text(line)).rejects.map(({ reason }) => reason);
const entryOf = (domain: string, rest: Record<string, unknown> = {}): string => JSON.stringify({ domain, ...rest });
const page = (type: string, url: unknown): string => entryOf('example.com', { page_types: { [type]: url } });
const latin1 = (domain: string): Uint8Array => Buffer.from(`{"domain":"${domain}"}`, 'latin1');
const label64 = 'a'.repeat(64);

const LINE_CASES: readonly (readonly [string, string | Uint8Array])[] = [
  ['invalid_utf8', latin1('caf\u00e9.example.com')],
  ['invalid_json', '{"domain":"example.com"'],
  ['invalid_json', '\ufeff{"domain":"example.com"}'],
  ['invalid_json', '{"domain":"example.com","global_rank":01}'],
  ['not_an_object', '"example.com"'],
  ['not_an_object', '["example.com"]'],
  ['not_an_object', 'null'],
  ['duplicate_key', '{"domain":"example.com","domain":"example.org"}'],
  ['duplicate_key', '{"domain":"example.com","d\\u006fmain":"example.org"}'],
  [
    'duplicate_key',
    '{"domain":"example.com","page_types":{"login":"https://example.com/a","login":"https://example.com/b"}}',
  ],
  ['duplicate_key', '{"domain":"example.com","x":[{"a":1,"a":1}]}'],
  ['domain_missing', '{"language":"en"}'],
  ['domain_missing', '{}'],
  ['domain_wrong_type', '{"domain":5}'],
  ['domain_wrong_type', '{"domain":null}'],
  ['domain_mojibake', entryOf('mÃ¼nchen.de')],
  ['domain_mojibake', entryOf('mã¼nchen.de')],
  ['domain_mojibake', entryOf('m\ufffdnchen.de')],
  ['domain_scheme', entryOf('ftp://example.com')],
  ['domain_has_userinfo', entryOf('https://user@example.com')],
  ['domain_has_path', entryOf('example.com/login')],
  ['domain_has_path', entryOf('https://example.com/?q=1')],
  ['domain_has_path', entryOf('example.com\\login')],
  ['domain_percent_encoded', entryOf('%20example.com')],
  ['domain_percent_encoded', entryOf('%22example.com')],
  ['domain_empty', entryOf('')],
  ['domain_empty', entryOf('https://')],
  ['domain_unparsable', entryOf('example.0x')],
  ['domain_ip_address', entryOf('192.0.2.7')],
  ['domain_ip_address', entryOf('[2001:db8::1]')],
  ['domain_ip_address', entryOf('192.0.2.7:8080')],
  ['domain_single_label', entryOf('localhost')],
  ['domain_too_long', entryOf('a'.repeat(1025))],
  ['domain_too_long', entryOf(`${'abcdefghi.'.repeat(26)}com`)],
  ['domain_label_too_long', entryOf(`${label64}.com`)],
  ['domain_empty_label', entryOf('example..com')],
  ['domain_empty_label', entryOf('.example.com')],
  ['domain_edge_hyphen', entryOf('-example.com')],
  ['domain_edge_hyphen', entryOf('example-.com')],
  ['domain_control_character', entryOf('exam\u0001ple.com')],
  ['domain_control_character', entryOf('exam\u0000ple.com')],
  ['domain_forbidden_character', entryOf('exam ple.com')],
  ['domain_forbidden_character', entryOf('exam!ple.com')],
  ['domain_idn_invalid', entryOf('\u0300a.com')],
];

const PAGE_CASES: readonly (readonly [string, string])[] = [
  ['page_type_unknown', page('mystery', 'https://example.com/x')],
  ['page_type_unknown', page('__proto__x', 'https://example.com/x')],
  [
    'page_type_duplicate',
    entryOf('example.com', { page_types: { signin: 'https://example.com/1', login: 'https://example.com/2' } }),
  ],
  ['page_url_wrong_type', page('login', 5)],
  ['page_url_wrong_type', page('login', ['https://example.com/x'])],
  ['page_url_too_long', page('login', `https://example.com/${'x'.repeat(2048)}`)],
  ['page_url_too_long', page('login', `https://example.com/${'\u00fc'.repeat(700)}`)],
  ['page_url_control_character', page('login', 'https://example.com/a\tb')],
  ['page_url_invalid', page('login', '/login')],
  ['page_url_invalid', page('login', '')],
  ['page_url_scheme', page('login', 'ftp://example.com/login')],
  ['page_url_scheme', page('login', 'javascript:alert(1)')],
  ['page_url_userinfo', page('login', 'https://a:b@example.com/login')],
  ['page_off_domain', page('login', 'https://example.org/login')],
  ['page_off_domain', page('login', 'https://notexample.com/login')],
  ['page_off_domain', page('login', 'https://192.0.2.7/login')],
  ['page_off_domain', entryOf('one.github.io', { page_types: { docs: 'https://two.github.io/' } })],
  ['page_off_domain', entryOf('github.io', { page_types: { docs: 'https://two.github.io/' } })],
];

const FACT_CASES: readonly (readonly [string, Record<string, unknown>])[] = [
  ['language_wrong_type', { language: 5 }],
  ['language_unknown', { language: 'xx' }],
  ['language_unknown', { language: '' }],
  ['language_unknown', { language: 'English' }],
  ['page_types_wrong_type', { page_types: ['login'] }],
  ['page_types_too_many', { page_types: Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`t${i}`, 'x'])) }],
  ['iab_category_wrong_type', { iab_category: 150 }],
  ['iab_category_unknown', { iab_category: 'Attractions>Nothing' }],
  ['filtering_categories_wrong_type', { filtering_categories: 'Malware' }],
  ['filtering_categories_too_many', { filtering_categories: Array.from({ length: 60 }, () => 'malware') }],
  ['filtering_category_wrong_type', { filtering_categories: ['malware', 7] }],
  ['filtering_category_unknown', { filtering_categories: ['malware', 'nonsense'] }],
  ['open_page_rank_wrong_type', { open_page_rank: '5' }],
  ['open_page_rank_out_of_range', { open_page_rank: 10.01 }],
  ['open_page_rank_out_of_range', { open_page_rank: -0.5 }],
  ['global_rank_wrong_type', { global_rank: 1.5 }],
  ['global_rank_wrong_type', { global_rank: '7' }],
  ['global_rank_out_of_range', { global_rank: 0 }],
  ['global_rank_out_of_range', { global_rank: 4294967296 }],
];

const REPAIR_CASES: readonly (readonly [string, string, Record<string, unknown>])[] = [
  ['null_field', entryOf('example.com', { language: null }), { domain: 'example.com' }],
  ['null_field', page('login', null), { pageTypes: [] }],
  ['unknown_field', entryOf('example.com', { sources: ['a'] }), { domain: 'example.com' }],
  ['domain_trimmed', entryOf(' example.com\t'), { domain: 'example.com' }],
  ['domain_url_reduced', entryOf('https://example.com/'), { domain: 'example.com' }],
  ['domain_url_reduced', entryOf('example.com/'), { domain: 'example.com' }],
  ['domain_port_stripped', entryOf('example.com:8443'), { domain: 'example.com' }],
  ['domain_case_folded', entryOf('Example.COM'), { domain: 'example.com' }],
  ['domain_idn_encoded', entryOf('münchen.de'), { domain: 'xn--mnchen-3ya.de' }],
  ['domain_www_stripped', entryOf('www.example.com'), { domain: 'example.com' }],
  ['domain_trailing_dot_stripped', entryOf('example.com.'), { domain: 'example.com' }],
  ['language_folded', entryOf('example.com', { language: 'pt-BR' }), { language: 'pt' }],
  [
    'page_type_alias',
    page('sign-in', 'https://example.com/l'),
    { pageTypes: [{ type: 'login', ordinal: 0, url: 'https://example.com/l' }] },
  ],
  [
    'page_url_canonicalized',
    page('login', 'HTTPS://EXAMPLE.com:443'),
    { pageTypes: [{ type: 'login', ordinal: 0, url: 'https://example.com/' }] },
  ],
  [
    'filtering_category_duplicate',
    entryOf('example.com', { filtering_categories: ['malware', 'Malware'] }),
    { filteringCategories: [0] },
  ],
  ['open_page_rank_rounded', entryOf('example.com', { open_page_rank: 4.357 }), { openPageRankHundredths: 436 }],
];

describe('the reason, if several things are wrong,', () => {
  it.each([
    ['{"domain":"a.example","domain":""}', 'duplicate_key'],
    [`{"domain":"${'é'.repeat(1025)}"}`, 'domain_too_long'],
    [entryOf('mÃ¼ ftp://u@x%41/path'), 'domain_mojibake'],
    [entryOf('ftp://u@ex%41mple.com/path'), 'domain_scheme'],
    [entryOf('http://u@ex%41mple.com/path'), 'domain_has_userinfo'],
    [entryOf('ex%41mple.com/path'), 'domain_has_path'],
    [entryOf('ex%41mple..com'), 'domain_percent_encoded'],
    [entryOf('http://'), 'domain_empty'],
    [entryOf('https:///'), 'domain_empty'],
    [entryOf('/'), 'domain_empty'],
    [entryOf('a\u0001 b'), 'domain_control_character'],
    [entryOf('\u0300 a..com'), 'domain_forbidden_character'],
    [entryOf('[192.0.2.7'), 'domain_forbidden_character'],
    [entryOf(`${'xn--.'.repeat(2)}\u0300..0x`), 'domain_idn_invalid'],
    [entryOf(`a!..${label64}.0x`), 'domain_unparsable'],
    [entryOf(`-a!..${label64}`), 'domain_empty_label'],
    [entryOf(`-a!${label64.repeat(5)}`), 'domain_label_too_long'],
    [entryOf(`-a!.${'abcdefghi.'.repeat(26)}com`), 'domain_too_long'],
    [entryOf('-a!'), 'domain_single_label'],
    [entryOf('-a!.com'), 'domain_forbidden_character'],
  ])('of the line %s is %s', (line, reason) => {
    expect(reasons(line)).toEqual([reason]);
  });

  it.each([
    [{ nope: 5 }, ['page_url_wrong_type']],
    [{ nope: '' }, ['page_url_invalid']],
    [{ nope: `ftp://${'x'.repeat(2048)}` }, ['page_url_too_long']],
    [{ nope: 'ftp://u@elsewhere.test/' }, ['page_type_unknown']],
    [{ login: 'ftp://u@elsewhere.test/\t' }, ['page_url_control_character']],
    [{ login: 'http://' }, ['page_url_invalid']],
    [{ login: 'ftp://u@elsewhere.test/' }, ['page_url_scheme']],
    [{ login: 'http://u@elsewhere.test/' }, ['page_url_userinfo']],
    [{ login: `http://elsewhere.test/${'é'.repeat(500)}` }, ['page_off_domain']],
    [{ login: `http://example.com/${'é'.repeat(500)}` }, ['page_url_too_long']],
    // The type's own name wins before its URL is checked, unless it is rejected before names are compared.
    [{ login: 'bad', 'sign-in': 'https://example.com/login' }, ['page_type_duplicate', 'page_url_invalid']],
    [{ login: 5, 'sign-in': 'https://example.com/login' }, ['page_url_wrong_type']],
    [{ login: null, 'sign-in': 'https://example.com/login' }, []],
  ])('of the pages %j is %j', (pages, expected) => {
    expect(reasons(entryOf('example.com', { page_types: pages }))).toEqual(expected);
  });
});

describe('the key of a domain', () => {
  it('counts everything that was removed from it', () => {
    const { repairs } = parseEntry(text(entryOf(' WWW.example.com.:80/ ')));
    expect(repairs).toEqual([
      'domain_trimmed',
      'domain_url_reduced',
      'domain_port_stripped',
      'domain_case_folded',
      'domain_www_stripped',
      'domain_trailing_dot_stripped',
    ]);
  });

  it.each([
    [' \t example.com\r\n', 'example.com'],
    ['https://example.com:99999/', 'example.com'],
    ['www.www.example.com', 'example.com'],
    ['www.com', 'www.com'],
    ['www.co.uk', 'www.co.uk'],
    ['www.github.io', 'github.io'],
    ['xn--a.example', 'xn--a.example'],
    ['\u000cexample.com', undefined],
    ['\u00a0example.com', undefined],
    ['exam ple.com', undefined],
    ['example.com:', undefined],
    ['example.com:123456', undefined],
    ['example.com//', undefined],
  ])('%j is %s', (domain, key) => {
    expect(parseEntry(text(entryOf(domain))).entry?.domain).toBe(key);
  });
});

describe('a page rank', () => {
  it.each([
    [0.005, 1],
    [0.015, 2],
    [1.005, 101],
    [1.255, 126],
    [4.345, 435],
    [4.355, 436],
    [8.165, 817],
    [9.995, 1000],
    [4.3449999, 434],
    [0.0049, 0],
    [1e-7, 0],
    [5e-324, 0],
    [9.999, 1000],
  ])('%d is rounded as written, halves up: %d hundredths', (rank, hundredths) => {
    const { entry, repairs } = parseEntry(text(entryOf('example.com', { open_page_rank: rank })));
    expect(entry?.openPageRankHundredths).toBe(hundredths);
    expect(repairs).toEqual(['open_page_rank_rounded']);
  });

  it('with two decimals is kept unchanged', () => {
    for (let hundredths = 0; hundredths <= 1000; hundredths++) {
      const rank = Number((hundredths / 100).toFixed(2));
      const { entry, repairs } = parseEntry(text(entryOf('example.com', { open_page_rank: rank })));
      expect([entry?.openPageRankHundredths, repairs]).toEqual([hundredths, []]);
    }
  });
});

describe('a line with an error', () => {
  it.each(LINE_CASES)('%s (case %#)', (reason, line) => {
    const parsed = parseEntry(text(line));
    expect(parsed.rejects).toEqual([{ level: 'line', reason, detail: expect.any(String) }]);
    expect(parsed.entry).toBeUndefined();
  });

  it.each(PAGE_CASES)('%s keeps the entry (case %#)', (reason, line) => {
    const parsed = parseEntry(text(line));
    expect(parsed.rejects).toEqual([{ level: 'page', reason, detail: expect.any(String) }]);
    expect(parsed.entry).toBeDefined();
    expect(parsed.entry?.pageTypes.length).toBe(reason === 'page_type_duplicate' ? 1 : 0);
  });

  it.each(FACT_CASES)('%s keeps the entry (case %#)', (reason, fields) => {
    const parsed = parseEntry(text(entryOf('example.com', fields)));
    expect(parsed.rejects).toEqual([{ level: 'fact', reason, detail: expect.any(String) }]);
    expect(parsed.entry?.domain).toBe('example.com');
    const kept = reason.startsWith('filtering_category_') ? [0] : [];
    expect(parsed.entry).toEqual({ domain: 'example.com', pageTypes: [], filteringCategories: kept });
  });

  it('keeps the categories before and after a rejected one', () => {
    const { entry } = parseEntry(text(entryOf('example.com', { filtering_categories: [7, 'malware', 8, 'phishing'] })));
    expect(entry?.filteringCategories).toHaveLength(2);
  });

  it.each(REPAIR_CASES)('%s is repaired and counted (case %#)', (repair, line, part) => {
    const parsed = parseEntry(text(line));
    expect(parsed.rejects).toEqual([]);
    expect(parsed.repairs).toEqual([repair]);
    expect(parsed.entry).toMatchObject(part);
  });

  it('has a test case for every name except those of the line splitter and the core scope', () => {
    const named = new Set([...LINE_CASES, ...PAGE_CASES, ...FACT_CASES, ...REPAIR_CASES].map(([name]) => name));
    const elsewhere = new Set(['line_too_long', 'bom_stripped', 'crlf', 'blank_line', 'page_type_outside_scope']);
    const all = [...LINE_REASONS, ...PAGE_REASONS, ...FACT_REASONS, ...REPAIRS].filter((name) => !elsewhere.has(name));
    expect([...named].sort()).toEqual([...all].sort());
  });
});

describe('the contents of a line', () => {
  it('include every field, pages in vocabulary order, categories by path, id or name', () => {
    const line = entryOf('example.com', {
      global_rank: 17,
      open_page_rank: 4.35,
      filtering_categories: ['phishing', 'Malware'],
      iab_category: '151',
      page_types: { pricing: 'https://example.com/pricing', login: 'http://id.example.com/?next=%2F' },
      language: 'en',
    });
    const parsed = parseEntry(text(line));
    expect(parsed).toEqual({
      rejects: [],
      repairs: [],
      entry: {
        domain: 'example.com',
        language: 'en',
        pageTypes: [
          { type: 'login', ordinal: 0, url: 'http://id.example.com/?next=%2F' },
          { type: 'pricing', ordinal: 10, url: 'https://example.com/pricing' },
        ],
        iabCategory: 1,
        filteringCategories: [0, 1],
        openPageRankHundredths: 435,
        globalRank: 17,
      },
    });
    const path = parseEntry(text(entryOf('example.com', { iab_category: 'Attractions > Amusement and Theme Parks' })));
    expect(path.entry?.iabCategory).toBe(1);
  });

  it('exclude pages outside the core on request', () => {
    const line = entryOf('example.com', {
      page_types: { privacy: 'https://example.com/p', login: 'https://example.com/l' },
    });
    const parsed = parseEntry(text(line), 'core');
    expect(parsed.entry?.pageTypes.map(({ type }) => type)).toEqual(['login']);
    expect(parsed.repairs).toEqual(['page_type_outside_scope']);
    expect(parseEntry(text(line)).entry?.pageTypes).toHaveLength(2);
  });

  it('keep valid values next to invalid ones', () => {
    const line = entryOf('example.com', {
      language: 'xx',
      page_types: { login: 'https://example.com/l', mystery: 'https://example.com/', cart: 'https://evil.example/' },
      open_page_rank: 99,
      global_rank: 3,
    });
    expect(reasons(line).sort()).toEqual([
      'language_unknown',
      'open_page_rank_out_of_range',
      'page_off_domain',
      'page_type_unknown',
    ]);
    const { entry } = parseEntry(text(line));
    expect(entry?.pageTypes.map(({ type }) => type)).toEqual(['login']);
    expect(entry?.globalRank).toBe(3);
  });

  it('are not affected by names of built-in properties', () => {
    const line =
      '{"domain":"example.com","__proto__":{"language":"en"},"page_types":{"constructor":"https://example.com/","__proto__":"x"}}';
    const parsed = parseEntry(text(line));
    expect(parsed.entry).toEqual({ domain: 'example.com', pageTypes: [], filteringCategories: [] });
    expect(reasons(line)).toEqual(['page_type_unknown', 'page_type_unknown']);
  });

  it('may have deep nesting in an unknown field', () => {
    const line = `{"domain":"example.com","x":${'['.repeat(30_000)}${']'.repeat(30_000)}}`;
    expect(parseEntry(text(line)).entry?.domain).toBe('example.com');
  });

  it('are shortened when quoted', () => {
    const detail = parseEntry(text(entryOf(`${'a'.repeat(1000)}.com`))).rejects[0]?.detail ?? '';
    expect(detail.length).toBeLessThanOrEqual(160);
  });
});
