/** A licensee's own file: add, override, disable, allow entries, exceptions, and what is refused. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { PagegateError } from '../../src/errors.ts';
import { diffPolicies } from '../../src/policy/diff.ts';
import { checkPolicy } from '../../src/policy/ineffective-entries.ts';
import { loadPolicy, readDocument } from '../../src/policy/load.ts';
import type { Policy } from '../../src/policy/policy.ts';
import { HARMLESS_JSON, HOSTILE_JSON } from '../support/hostile-json.ts';
import { judge, licenseePolicy, shipped, withFile } from './support.ts';

const NOTE = 'A note that a person can act on.';

describe('a document that comes with the program', () => {
  it.each(['hosts', 'rules', 'words', 'path-contents', 'defaults'] as const)('fits its schema: %s', (name) => {
    const file = fileURLToPath(new URL(`../../data/policy/${name}.json`, import.meta.url));
    expect(readDocument(file, name)).toBeTruthy();
    const spoiled = readFileSync(file, 'utf8').replace('{', '{"none": 1,');
    expect(() => withFile(spoiled, (path) => readDocument(path, name))).toThrow(/none/);
  });
});

const GROUPS = [...new Set(shipped.document.hosts.flatMap(({ group }) => group ?? []))];

describe("the licensee's file", () => {
  it('adds hosts, rules and token lists', () => {
    const policy = licenseePolicy({
      add: {
        hosts: [{ id: 'rival', host: 'rival.example.org', verdict: 'deny', note: NOTE }],
        rules: [{ id: 'payroll', kind: 'pattern', verdict: 'deny', when: [{ segment: 'payroll' }], note: NOTE }],
        tokens: { payroll: { meaning: 'Where salaries are.', phrases: { en: ['pay roll'], de: ['lohnabrechnung'] } } },
      },
    });
    expect(judge('https://x.rival.example.org/', {}, 'GET', policy)).toBe('deny high_value_hosts/rival');
    expect(judge('https://shop.org/hr/PayRoll.aspx', {}, 'GET', policy)).toBe('deny rules/payroll');
    expect(judge('https://shop.org/lohn-abrechnung', {}, 'GET', policy)).toBe('deny rules/payroll');
    expect(judge('https://shop.org/payrolls', {}, 'GET', policy)).toBe('allow default/classified_read');
    expect(judge('https://shop.org/payroll?next=https://evil.org/', {}, 'GET', policy)).toBe('deny rules/payroll');
    expect(policy.revision).not.toBe(shipped.revision);
  });

  it('adds words that lift no denial of a file', () => {
    const policy = licenseePolicy({
      add: {
        rules: [{ id: 'payroll', kind: 'pattern', verdict: 'deny', when: [{ segment: 'payroll' }], note: NOTE }],
        tokens: { payroll: { meaning: 'Where salaries are.', phrases: { en: ['pay roll'] } } },
      },
    });
    for (const path of ['/glossary/payroll.exe', '/hosting-lexikon/payroll.msi']) {
      expect(judge(`https://example.org${path}`)).toBe('flag rules/executable');
      expect(judge(`https://example.org${path}`, {}, 'GET', policy)).not.toMatch(/^allow/);
    }
  });

  it('overrides by id', () => {
    const policy = licenseePolicy({
      override: {
        hosts: { 'pastebin.com': { verdict: 'deny' }, 'bit.ly': { note: NOTE } },
        rules: { port: { allowed: [80, 443, 8443] }, category_flag: { categories: ['Gambling'] } },
        page_types: { pricing: { verdict: 'flag' } },
      },
    });
    expect(judge('https://pastebin.com/', {}, 'GET', policy)).toBe('deny high_value_hosts/pastebin.com');
    expect(judge('https://example.org:8443/', {}, 'GET', policy)).toBe('allow default/classified_read');
    expect(judge('https://example.org:8444/', {}, 'GET', policy)).toBe('deny rules/port');
    expect(judge('https://example.org/', { categories: ['Gambling'] }, 'GET', policy)).toBe('flag rules/category_flag');
    expect(judge('https://example.org/p', { pages: { pricing: 'https://example.org/p' } }, 'GET', policy)).toBe(
      'flag page_type_db/pricing',
    );
  });

  it('overrides only what it names', () => {
    const reads = (policy: Policy, id = 'pastebin.com'): string => judge(`https://${id}/`, {}, 'GET', policy);
    // Below an allow entry, only the host's own entry decides about a write.
    const writes = (policy: Policy, id = 'pastebin.com'): string => judge(`https://${id}/`, {}, 'POST', policy);
    const changed = (change: Record<string, string>): Policy =>
      licenseePolicy({
        override: { hosts: { 'pastebin.com': change } },
        allow: [{ id: 'all', host: 'pastebin.com', path: '/', methods: ['POST'] }],
      });
    const both = (policy: Policy): string[] => [reads(policy), writes(policy)].map((text) => text.split(' ')[0]!);
    expect(both(changed({ note: NOTE }))).toEqual(['flag', 'deny']);
    // A verdict for every method replaces those for reads and for writes, unless the change has these, too.
    expect(both(changed({ verdict: 'flag' }))).toEqual(['flag', 'flag']);
    expect(both(changed({ verdict: 'deny', reads: 'flag' }))).toEqual(['flag', 'deny']);
    expect(both(changed({ verdict: 'deny', writes: 'flag' }))).toEqual(['deny', 'flag']);
    expect(both(changed({ writes: 'flag' }))).toEqual(['flag', 'flag']);
    const hosts = [
      { id: 'sent', host: 'x.example.org', writes: 'flag', note: NOTE },
      { id: 'read', host: 'y.example.org', reads: 'flag', note: NOTE },
    ];
    const own = licenseePolicy({
      add: { hosts },
      override: { hosts: { sent: { verdict: 'deny' }, read: { verdict: 'deny' } } },
    });
    expect(writes(own, 'x.example.org')).toBe('deny high_value_hosts/sent');
    expect(reads(own, 'y.example.org')).toBe('deny high_value_hosts/read');
    const limits = licenseePolicy({
      override: {
        rules: {
          too_long: { max_length: 200 },
          dns_tunnel: { min_run: 20, min_run_digits: 4, max_subdomain_length: 12 },
          nested_internal: { max_urls: 2 },
          bulk_query: { max_query_length: 100, max_run: 30 },
        },
      },
    });
    const url = (start: string, length: number): string => start.padEnd(length, 'a');
    const rule = (value: string): string => judge(value, {}, 'GET', limits);
    const unknown = (value: string): string => judge(value, { found: false }, 'GET', limits);
    expect(rule(url('https://example.org/', 200))).toBe('allow default/classified_read');
    expect(rule(url('https://example.org/', 201))).toBe('deny rules/too_long');
    expect(unknown('https://1234abcdefghijklmnop.org/')).toBe('deny rules/dns_tunnel');
    expect(unknown('https://longlonglonglong.x.org/')).toBe('deny rules/dns_tunnel');
    expect(rule('https://example.org/?a=of+http://b.org,http://b.org')).toBe('allow default/classified_read');
    expect(rule('https://example.org/?a=of+http://b.org,http://b.org,http://b.org')).toBe('deny rules/nested_internal');
    expect(rule(`https://example.org/?q=${'some.'.repeat(20)}`)).toBe('flag rules/bulk_query');
    expect(rule(`https://example.org/?q=${'a1'.repeat(16)}`)).toBe('flag rules/bulk_query');
  });

  it('adds rules that have the usual limits where they name none', () => {
    const policy = licenseePolicy({
      disable: ['dns_tunnel', 'bulk_query'],
      add: {
        rules: [
          { id: 'names', kind: 'guard', check: 'dns_tunnel', verdict: 'flag', note: NOTE },
          { id: 'bulk', kind: 'pattern', check: 'bulk_query', verdict: 'flag', note: NOTE },
        ],
      },
    });
    const rule = (value: string): string => judge(value, {}, 'GET', policy);
    const unknown = (value: string): string => judge(value, { found: false }, 'GET', policy);
    expect(unknown(`https://12345${'abcdefghi'.repeat(3)}.evil.org/`)).toBe('flag rules/names');
    expect(unknown(`https://1234${'abcdefghi'.repeat(4)}.evil.org/`)).toBe('flag default/unclassified_read');
    expect(unknown(`https://12345${'abcdefgh'.repeat(3)}.evil.org/`)).toBe('flag default/unclassified_read');
    expect(unknown(`https://${'abcdefghij.'.repeat(10)}abcdefghijk.evil.org/`)).toBe('flag rules/names');
    expect(unknown(`https://${'abcdefghij.'.repeat(11)}evil.org/`)).toBe('flag default/unclassified_read');
    expect(rule(`https://example.org/?q=${'words.'.repeat(170)}12`)).toBe('allow default/classified_read');
    expect(rule(`https://example.org/?q=${'words.'.repeat(170)}123`)).toBe('flag rules/bulk');
    expect(rule(`https://example.org/?q=${'a1'.repeat(80)}`)).toBe('allow default/classified_read');
    expect(rule(`https://example.org/?q=${'a1'.repeat(80)}a`)).toBe('flag rules/bulk');
  });

  it('disables, and is warned when it takes a guard away', () => {
    const policy = licenseePolicy({ disable: ['webhook.site', 'cart', 'port'] });
    expect(judge('https://webhook.site/', {}, 'GET', policy)).toBe('allow default/classified_read');
    expect(judge('https://shop.org/basket', {}, 'GET', policy)).toBe('allow default/classified_read');
    expect(judge('https://shop.org:8080/', {}, 'GET', policy)).toBe('allow default/classified_read');
    expect(policy.warnings).toEqual([
      expect.stringContaining('guard rule "port" is disabled'),
      expect.stringContaining('pattern rule "cart" is disabled'),
      'The reads and writes of webhook.site are no longer denied, as they are by what ships.',
    ]);
  });

  it.each([
    [{ disable: ['group:console'] }, /^The group "console" is disabled: \d{3} of its hosts are denied as shipped\.$/],
    [{ override: { groups: { payment: { verdict: 'flag' } } } }, /^The group "payment" is flagged: \d{3} of its hosts/],
    [
      { override: { rules: { login: { verdict: 'flag' } } } },
      /^The pattern rule "login" flags what it denies as shipped\.$/,
    ],
    [
      { override: { rules: { port: { verdict: 'flag' } } } },
      /^The guard rule "port" flags what it denies as shipped\.$/,
    ],
    [
      { override: { page_types: { login: { verdict: 'allow' } } } },
      /^Verified pages of the type "login" get allow; as shipped/,
    ],
    // Hosts that are denied except for their documentation, and single paths.
    [
      { disable: ['accounts.google.com'] },
      'The reads and writes of accounts.google.com are no longer denied, as they are by what ships.',
    ],
    [
      { disable: ['signin.aws.amazon.com'] },
      'The reads and writes of signin.aws.amazon.com are no longer denied, as they are by what ships.',
    ],
    [
      { disable: ['discord.com/api/webhooks'] },
      'The reads and writes of discord.com/api/webhooks are no longer denied, as they are by what ships.',
    ],
    [
      { override: { hosts: { 'paypal.com': { verdict: 'flag' } } } },
      'The reads and writes of paypal.com are no longer denied, as they are by what ships.',
    ],
    [
      { override: { hosts: { 'paypal.com': { reads: 'flag' } } } },
      'The reads of paypal.com are no longer denied, as they are by what ships.',
    ],
    [
      { override: { hosts: { 'pastebin.com': { verdict: 'flag' } } } },
      'The writes of pastebin.com are no longer denied, as they are by what ships.',
    ],
    [
      { override: { hosts: { 'paypal.com': { host: '=paypal.com' } } } },
      'The reads and writes of paypal.com are denied in fewer places than by what ships.',
    ],
    [
      { override: { hosts: { 'paypal.com': { paths: ['/pay'] } } } },
      'The reads and writes of paypal.com are denied in fewer places than by what ships.',
    ],
    [
      { override: { hosts: { 'discord.com/api/webhooks': { paths: ['/api/webhooks/mine'] } } } },
      'The reads and writes of discord.com/api/webhooks are denied in fewer places than by what ships.',
    ],
    // A write is denied in every context.
    [
      { override: { hosts: { 'accounts.google.com': { not_in: ['reading'] } } } },
      'The reads of accounts.google.com are denied in fewer places than by what ships.',
    ],
    [
      { override: { hosts: { 'webhook.site': { not_in: ['documentation'] } } } },
      'The reads of webhook.site are denied in fewer places than by what ships.',
    ],
    // Changed rules.
    [{ override: { rules: { port: { allowed: [80, 443, 22, 8443] } } } }, 'The guard rule "port" is changed: allowed.'],
    [
      { override: { rules: { dns_tunnel: { min_run: 60, max_subdomain_length: 253 } } } },
      'The guard rule "dns_tunnel" is changed: min_run, max_subdomain_length.',
    ],
    [
      { override: { rules: { embedded_address: { excusable: true } } } },
      'The guard rule "embedded_address" is changed: excusable.',
    ],
    [{ override: { rules: { cart: { when: [{ segment: 'cart' }] } } } }, 'The pattern rule "cart" is changed: when.'],
    [{ override: { rules: { bulk_query: { max_run: 8192 } } } }, 'The pattern rule "bulk_query" is changed: max_run.'],
  ])('is warned once of what weakens a denial: %j', (document, expected) => {
    const expectation = typeof expected === 'string' ? expected : expect.stringMatching(expected);
    expect(licenseePolicy(document).warnings).toEqual([expectation]);
  });

  it.each([
    [{ disable: ['group:shortener', 'signed_url'] }],
    [{ override: { groups: { shortener: { verdict: 'deny' } }, page_types: { download: { verdict: 'deny' } } } }],
    [{ override: { rules: { executable: { verdict: 'deny' } } } }],
    [{ override: { groups: Object.fromEntries(GROUPS.map((name) => [name, { verdict: 'deny' }])) } }],
    [
      {
        override: { rules: { port: { allowed: [80, 443], note: NOTE }, category_flag: { categories: ['Gambling'] } } },
      },
    ],
    [{ disable: ['google.com/amp'], override: { hosts: { 'paypal.com': { note: NOTE, not_in: ['documentation'] } } } }],
    // Another entry denies the same place.
    [
      {
        disable: ['discord.com/api/webhooks'],
        add: { hosts: [{ id: 'mine', host: 'discord.com', verdict: 'deny', note: NOTE }] },
      },
    ],
    [{ override: { hosts: { 'discord.com/api/webhooks': { paths: ['/api/'] } } } }],
  ])('is not where no denial is: %j', (document) => {
    expect(licenseePolicy(document).warnings).toEqual([]);
  });

  it('is warned of a host that it names beside the line about its group, unless that is off', () => {
    const line = expect.stringMatching(/^The group "payment" is (?:flagged|disabled)/);
    const paypal = 'The reads and writes of paypal.com are no longer denied, as they are by what ships.';
    const flagged = { groups: { payment: { verdict: 'flag' } } };
    expect(licenseePolicy({ disable: ['paypal.com'], override: flagged }).warnings).toEqual([line, paypal]);
    expect(licenseePolicy({ disable: ['paypal.com', 'group:payment'] }).warnings).toEqual([line]);
  });

  it('chooses the profile, which the one who starts the program stands above', () => {
    expect(judge('https://a.org/', { found: false }, 'GET', licenseePolicy({ profile: 'strict' }))).toMatch(/^deny/);
    expect(judge('https://a.org/', { found: false }, 'GET', licenseePolicy({ profile: 'strict' }, 'open'))).toMatch(
      /^allow/,
    );
    const own = { unclassified_read: 'allow' };
    expect(judge('https://a.org/', { found: false }, 'GET', licenseePolicy(own))).toMatch(/^allow/);
    expect(judge('https://a.org/', { found: false }, 'GET', licenseePolicy(own, 'strict'))).toMatch(/^deny/);
    const mixed = licenseePolicy({ profile: 'strict', unclassified_subdomain: 'allow' });
    expect(judge('https://a.org/', { found: false, parentFound: true }, 'GET', mixed)).toMatch(/^allow/);
    expect(judge('https://a.org/', { found: false }, 'GET', mixed)).toMatch(/^deny/);
  });

  describe('allow entries', () => {
    const policy = licenseePolicy({
      allow: [
        { id: 'api', host: 'api.example.org', path: '/v1/', methods: ['POST', 'get'] },
        { id: 'tree', host: '*.corp-tools.org', path: '/', methods: ['POST'] },
        { id: 'shop', host: 'shop.org', path: '/checkout', methods: ['GET'] },
        { id: 'paste', host: 'pastebin.com', path: '/', methods: ['GET'] },
        { id: 'things', host: 'api.example.org', path: '/v2/things', methods: ['POST'] },
        { id: 'deep', host: 'api.example.org', path: '/v2/things/deep', methods: ['POST'] },
        { id: 'near', host: '=a.near.org', path: '/x', methods: ['POST'] },
        { id: 'far', host: '*.near.org', path: '/x', methods: ['POST', 'PUT'] },
      ],
    });

    it.each([
      ['https://api.example.org/v1/', 'POST', 'allow rules/api'],
      ['https://api.example.org/v1', 'POST', 'allow rules/api'],
      ['https://api.example.org/v1/login', 'GET', 'allow rules/api'],
      ['https://api.example.org/v10/', 'POST', 'deny default/unclassified_write'],
      ['https://api.example.org/v1/', 'PUT', 'deny default/unclassified_write'],
      ['https://api.example.org/v1/../v2/', 'POST', 'deny default/unclassified_write'],
      ['https://api.example.org/v1/%2e%2e/v2/', 'POST', 'deny default/unclassified_write'],
      ['https://api.example.org/v1/..%2fv2/', 'POST', 'deny rules/encoded_traversal'],
      ['https://api.example.org/v1/..;/v2/', 'POST', 'deny rules/encoded_traversal'],
      ['https://api.example.org/v1/..%20/v2/', 'POST', 'deny rules/encoded_traversal'],
      ['https://api.example.org/v1/..%c0%afv2/', 'POST', 'deny rules/encoded_traversal'],
      ['https://api.example.org/v1/..%u2215v2/', 'POST', 'deny rules/encoded_traversal'],
      ['https://api.example.org/v1/..%ef%bc%8fv2/', 'POST', 'deny rules/encoded_traversal'],
      ['https://api.example.org/v1/.%C2%AD./v2/', 'POST', 'deny rules/encoded_traversal'],
      ['https://api.example.org/v1/..%3f', 'POST', 'deny rules/encoded_traversal'],
      ['https://api.example.org/v1/..%23/v2/', 'POST', 'deny rules/encoded_traversal'],
      ['https://api.example.org/v1/a%20b', 'POST', 'allow rules/api'],
      ['https://api.example.org/%76%31/x', 'POST', 'allow rules/api'],
      ['https://api.example.org/v1%2fx', 'POST', 'deny default/unclassified_write'],
      ['https://api.example.org/v1%c0%afx', 'POST', 'deny default/unclassified_write'],
      ['https://api.example.org/v1%u002fx/y', 'POST', 'deny default/unclassified_write'],
      ['https://api.example.org/%76%31', 'POST', 'allow rules/api'],
      ['https://api.example.org/v2/th%69ngs', 'POST', 'allow rules/things'],
      ['https://api.example.org/v2/th%69ngs/x%20y/z', 'POST', 'allow rules/things'],
      ['https://api.example.org/v2%2fthings', 'POST', 'deny default/unclassified_write'],
      ['https://api.example.org/v2%2fthings/', 'POST', 'deny default/unclassified_write'],
      ['https://api.example.org/v2/things%2fdeep', 'POST', 'deny default/unclassified_write'],
      ['https://api.example.org/v2%2fthings/deep', 'POST', 'deny default/unclassified_write'],
      ['https://api.example.org/v2/things/deep/er', 'POST', 'allow rules/deep'],
      ['https://a.near.org/x', 'POST', 'allow rules/near'],
      ['https://a.near.org/x', 'PUT', 'allow rules/far'],
      ['https://b.near.org/x', 'POST', 'allow rules/far'],
      ['https://a.b.corp-tools.org/x%20y', 'POST', 'allow rules/tree'],
      ['https://api.example.org/v1/%25%32%65%25%32%65/v2/', 'POST', 'flag rules/double_encoding'],
      ['https://api.example.org/v1/?x=1;_method=DELETE', 'POST', 'deny rules/method_override'],
      ['https://x.api.example.org/v1/', 'POST', 'deny default/unclassified_write'],
      ['https://a.b.corp-tools.org/x', 'POST', 'allow rules/tree'],
      ['https://corp-tools.org/x', 'POST', 'deny default/unclassified_write'],
      ['https://shop.org/checkout/2', 'GET', 'allow rules/shop'],
      ['https://pastebin.com/x', 'GET', 'flag high_value_hosts/pastebin.com'],
      ['https://api.example.org:8080/v1/', 'POST', 'deny rules/port'],
    ])('%s with %s: %s', (url, method, expected) => {
      expect(judge(url, {}, method, policy)).toBe(expected);
    });
  });

  it('takes hosts in any spelling, local names and addresses too', () => {
    const policy = licenseePolicy({
      add: {
        hosts: ['Wiki', 'MÜNCHEN.de', '=www.Exact.org', '*.below.org', '0xA9.254.1'].map((host, at) => ({
          id: `mine${at}`,
          host,
          verdict: 'deny',
          note: NOTE,
        })),
      },
      disable: ['special_name', 'link_local', 'obfuscated_address'],
    });
    const id = (host: string): string => judge(`http://${host}/`, {}, 'GET', policy).replace(/.*\//, '');
    expect(['wiki', 'a.münchen.de', 'exact.org', 'www.exact.org', 'a.below.org', '169.254.0.1'].map(id)).toEqual([
      'mine0',
      'mine1',
      'mine2',
      'mine2',
      'mine3',
      'mine4',
    ]);
    expect(['a.exact.org', 'below.org', '169.254.0.2'].map(id)).toEqual([
      'classified_read',
      'classified_read',
      'public_address',
    ]);
  });

  it('takes a category by its name and by its id', () => {
    const policy = licenseePolicy({ override: { rules: { category_flag: { categories: ['spam', 'Gambling'] } } } });
    for (const category of ['Spam', 'Gambling'])
      expect(judge('https://example.org/', { categories: [category] }, 'GET', policy)).toBe('flag rules/category_flag');
    expect(judge('https://example.org/', { categories: ['News'] }, 'GET', policy)).toMatch(/^allow/);
  });

  it('excuses addresses of its own networks, and nothing that hides one', () => {
    const policy = licenseePolicy({
      address_exceptions: [
        { cidr: '10.1.0.0/16' },
        { cidr: 'fd12::/16' },
        { cidr: '127.0.0.1' },
        { cidr: '::ffff:0:0/96' },
      ],
      allow: [{ id: 'intern', host: '10.1.2.3', path: '/api/', methods: ['POST'] }],
    });
    const known = { found: false };
    expect(judge('http://10.1.2.3/', known, 'GET', policy)).toBe('flag default/unclassified_read');
    expect(judge('http://10.1.2.3/api/x', known, 'POST', policy)).toBe('allow rules/intern');
    expect(judge('http://10.2.0.1/', known, 'GET', policy)).toBe('deny rules/private_network');
    expect(judge('http://[fd12::1]/', known, 'GET', policy)).toBe('flag default/unclassified_read');
    expect(judge('http://127.1/', known, 'GET', policy)).toBe('deny rules/obfuscated_address');
    expect(judge('http://[::ffff:10.1.2.3]/', known, 'GET', policy)).toBe('deny rules/embedded_address');
    // The last one allows nothing: `policy check` reports it.
    expect(policy.warnings).toEqual([
      'The guard rules "private_network", "public_address" do not hold for 10.1.0.0/16.',
      'The guard rules "private_network", "public_address" do not hold for fd12::/16 (a very wide range).',
      'The guard rules "loopback", "public_address" do not hold for 127.0.0.1 (includes loopback addresses).',
    ]);
  });

  it.each([
    ['8.8.8.8', 'rule "public_address" does not hold for 8.8.8.8: Ours alone.'],
    ['10.0.0.0/9', '"public_address" do not hold for 10.0.0.0/9: Ours alone.'],
    ['10.0.0.0/8', '"public_address" do not hold for 10.0.0.0/8 (a very wide range): Ours alone.'],
    ['2a00:1:2::/33', '"public_address" does not hold for 2a00:1:2::/33: Ours alone.'],
    ['2a00:1::/32', '"public_address" does not hold for 2a00:1::/32 (a very wide range): Ours alone.'],
    ['::/0', ' for ::/0 (a very wide range, includes loopback addresses, link-local addresses): Ours alone.'],
    ['fe80::/16', ' for fe80::/16 (a very wide range, includes link-local addresses): Ours alone.'],
    ['169.254.7.0/24', ' for 169.254.7.0/24 (includes link-local addresses): Ours alone.'],
    [
      '169.254.0.0/16',
      ' for 169.254.0.0/16 (includes link-local addresses, cloud metadata (169.254.169.254)): Ours alone.',
    ],
    [
      '0.0.0.0/0',
      'The guard rules "loopback", "link_local", "private_network", "reserved_address", "public_address" do not hold for ' +
        '0.0.0.0/0 (a very wide range, includes loopback addresses, link-local addresses, ' +
        'cloud metadata (169.254.169.254)): Ours alone.',
    ],
  ])('names what the address exception %s opens', (cidr, expected) => {
    const { warnings } = licenseePolicy({ address_exceptions: [{ cidr, note: 'Ours alone.' }] });
    expect(warnings).toEqual([expect.stringContaining(expected)]);
  });

  it('names of the rules that an address exception is let past only those that are in force', () => {
    const { warnings } = licenseePolicy({ disable: ['public_address'], address_exceptions: [{ cidr: '127.0.0.1' }] });
    expect(warnings.slice(1)).toEqual([
      'The guard rule "loopback" does not hold for 127.0.0.1 (includes loopback addresses).',
    ]);
  });
});

const invalid = (document: Record<string, unknown>): PagegateError => {
  try {
    licenseePolicy(document);
  } catch (error) {
    if (error instanceof PagegateError) return error;
    throw error;
  }
  throw new Error('the policy was accepted');
};

describe('a policy is refused', () => {
  it.each([
    ['an unknown field', { hosts: [] }, 'hosts'],
    ['an unknown profile', { profile: 'lenient' }, 'lenient'],
    ['an override of nothing', { override: { rules: { nothing: { verdict: 'deny' } } } }, 'nothing'],
    ['a page type of nobody', { override: { page_types: { nothing: { verdict: 'deny' } } } }, 'nothing'],
    ['a disabled id of nobody', { disable: ['nothing'] }, 'nothing'],
    ['an id that ships', { add: { hosts: [{ id: 'bit.ly', host: 'x.org', verdict: 'deny', note: NOTE }] } }, 'bit.ly'],
    ['a host that ships', { add: { hosts: [{ id: 'mine', host: 'bit.ly', verdict: 'deny', note: NOTE }] } }, 'bit.ly'],
    ...['a b', 'me@10.0.0.1', '10.0.0.1:80', '10.0.0.1/x', '256.1.1.1', '1.2.3.4.5', 'in!tranet', 'int%72anet'].map(
      (host): [string, Record<string, unknown>, string] => [
        `the host ${host}, which is not one`,
        { add: { hosts: [{ id: 'mine', host, verdict: 'deny', note: NOTE }] } },
        `"${host}" of "mine" is not a host`,
      ],
    ),
    ['an allowing host', { add: { hosts: [{ id: 'mine', host: 'x.org', verdict: 'allow', note: NOTE }] } }, 'mine'],
    ['a host without a verdict', { add: { hosts: [{ id: 'mine', host: 'x.org', note: NOTE }] } }, 'mine'],
    ['an allow path without a slash', { allow: [{ id: 'a', host: 'x.org', path: 'v1', methods: ['POST'] }] }, '"a"'],
    ['an allow entry without methods', { allow: [{ id: 'a', host: 'x.org', path: '/', methods: [] }] }, '"a"'],
    ['an invalid range', { address_exceptions: [{ cidr: '10.0.0.0/99' }] }, '10.0.0.0/99'],
    [
      'a port out of range',
      { override: { rules: { port: { allowed: [443, 70_000] } } } },
      'allowed[1] must be at most 65535',
    ],
    ['the port 0', { override: { rules: { port: { allowed: [0] } } } }, 'allowed[0] must be at least 1'],
    [
      'a port out of range, in a rule of its own',
      { add: { rules: [{ id: 'r', kind: 'guard', check: 'port', verdict: 'deny', allowed: [-1], note: NOTE }] } },
      '(id "r") must be at least 1',
    ],
    ['an invalid address', { address_exceptions: [{ cidr: '10.0.0.256' }] }, '10.0.0.256'],
    [
      'a list that does not exist',
      { add: { rules: [{ id: 'r', kind: 'pattern', verdict: 'deny', when: [{ segment: 'nolist' }], note: NOTE }] } },
      'nolist',
    ],
    ['a guard without a check', { add: { rules: [{ id: 'r', kind: 'guard', verdict: 'deny', note: NOTE }] } }, '"r"'],
    [
      'a pattern check as a guard',
      { add: { rules: [{ id: 'r', kind: 'guard', check: 'bulk_query', verdict: 'deny', note: NOTE }] } },
      '"r"',
    ],
    ['a short note', { add: { hosts: [{ id: 'mine', host: 'x.org', verdict: 'deny', note: 'no' }] } }, 'mine'],
    [
      'a token list that ships',
      { add: { tokens: { login: { meaning: 'Something else.', phrases: { en: ['x'] } } } } },
      'login',
    ],
    ['a mistyped field', { alow: [] }, '(did you mean "allow"?)'],
    ['a mistyped group', { disable: ['group:paymnt'] }, '(did you mean "group:payment"?)'],
    ['a mistyped rule', { override: { rules: { logn: { verdict: 'flag' } } } }, '(did you mean "login"?)'],
    ['a mistyped excuse', { excuse: [{ rule: 'prot', host: 'x.org' }] }, 'not in force (did you mean "port"?)'],
    ['a host with a port', { excuse: [{ rule: 'port', host: 'x.org:8443' }] }, 'without scheme, port and path'],
    [
      'a host without a verdict, in one sentence',
      { add: { hosts: [{ id: 'mine', host: 'x.org', note: NOTE }] } },
      ': add.hosts[0] (id "mine") must have one of verdict, reads, writes.',
    ],
  ])('for %s, and says which', (_what, document, named) => {
    const error = invalid(document);
    expect(error.code).toBe('policy_invalid');
    expect(error.message).toContain(named);
  });

  const own = '{"format":"pagegate-policy/1","override":{"hosts":{}},"disable":[]}';
  const cases = '[{"url":"example.com","expect":{"verdict":"flag"}}]';

  it.each(HOSTILE_JSON)('with $name, and so is a file of cases', ({ spoil, expected }) => {
    const refused = expect.objectContaining({ code: 'policy_invalid', message: expect.stringMatching(expected) });
    expect(() => withFile(spoil(own), (file) => loadPolicy({ file }))).toThrow(refused);
    expect(() => withFile(spoil(cases), (file) => readDocument(file, 'cases'))).toThrow(refused);
  });

  it.each(HARMLESS_JSON)('but not with $name', ({ spoil }) => {
    expect(withFile(spoil(own), (file) => loadPolicy({ file })).revision).toBe(shipped.revision);
    expect(withFile(spoil(cases), (file) => readDocument(file, 'cases'))).toHaveLength(1);
  });

  const note = 'A note that is long enough.';
  it.each<[string, object, RegExp]>([
    ['a token list', { add: { tokens: { name: { meaning: note, phrases: { en: ['y'] } } } } }, /tokens must match/],
    ['a host', { override: { hosts: { name: { note } } } }, /names the host "__proto__", which does not exist/],
    ['a page type', { override: { page_types: { name: { note } } } }, /names the page type "__proto__"/],
    ['a field', { name: 1 }, /the document has "__proto__", which is not one of its fields/],
  ])('with __proto__ for the name of %s', (_what, document, expected) => {
    const text = JSON.stringify({ format: 'pagegate-policy/1', ...document }).replace('"name"', '"__proto__"');
    const refused = expect.objectContaining({ code: 'policy_invalid', message: expect.stringMatching(expected) });
    expect(() => withFile(text, (file) => loadPolicy({ file }))).toThrow(refused);
  });

  it('with its name, where an entry names what does not exist; a profile of the command line is in no file', () => {
    const load = (document: object, profile?: string) => () =>
      withFile(JSON.stringify({ format: 'pagegate-policy/1', ...document }), (file) => loadPolicy({ file, profile }));
    expect(load({ disable: ['logn'] })).toThrow(/ \/\S+\.json: "disable" names "logn", .*\(did you mean "login"\?\)/);
    expect(load({ profile: 'strict' }, 'stict')).toThrow(/ as it is\. There is no profile "stict"/);
  });

  it('when it cannot be read, is no JSON, or has another format', () => {
    const code = (task: () => unknown): string => {
      try {
        task();
        return 'accepted';
      } catch (error) {
        return (error as PagegateError).code;
      }
    };
    expect(code(() => loadPolicy({ file: '/nonexistent/policy.json' }))).toBe('policy_missing');
    expect(code(() => withFile('{', (file) => loadPolicy({ file })))).toBe('policy_invalid');
    expect(code(() => withFile('{"format":"pagegate-policy/2"}', (file) => loadPolicy({ file })))).toBe(
      'policy_invalid',
    );
    expect(code(() => withFile('[]', (file) => loadPolicy({ file })))).toBe('policy_invalid');
  });
});

describe('policy check', () => {
  const found = (document: Record<string, unknown>): string[] =>
    checkPolicy(licenseePolicy(document), shipped).map(({ id, by }) => `${id} by ${by}`);

  it('finds nothing in what ships', () => {
    expect(checkPolicy(shipped)).toEqual([]);
  });

  it.each([
    [
      'a host below one with the same verdict',
      { add: { hosts: [{ id: 'mine', host: 'x.webhook.site', verdict: 'deny', note: NOTE }] } },
      ['mine by webhook.site'],
    ],
    [
      'an allow entry on a denied host',
      { allow: [{ id: 'a', host: 'webhook.site', path: '/', methods: ['POST'] }] },
      ['a by webhook.site'],
    ],
    [
      'an allow entry on a private address',
      { allow: [{ id: 'a', host: '10.0.0.1', path: '/', methods: ['POST'] }] },
      ['a by private_network'],
    ],
    [
      'an allow entry on a local name',
      { allow: [{ id: 'a', host: 'wiki.internal', path: '/', methods: ['POST'] }] },
      ['a by special_name'],
    ],
    [
      'an allow entry inside another',
      {
        allow: [
          { id: 'a', host: 'x.org', path: '/v1/', methods: ['POST', 'GET'] },
          { id: 'b', host: 'x.org', path: '/v1/things/', methods: ['POST'] },
        ],
      },
      ['b by a'],
    ],
    [
      'an exception that excuses nothing',
      { address_exceptions: [{ cidr: '::ffff:0:0/96' }] },
      ['::ffff:0:0/96 by undefined'],
    ],
    [
      'an unknown category',
      { override: { rules: { category_flag: { categories: ['Gambling', 'Gambeling'] } } } },
      ['category_flag by undefined'],
    ],
    [
      'an allow entry whose path has a sign that means nothing there',
      { allow: [{ id: 'a', host: 'x.org', path: '/v1/*', methods: ['POST'] }] },
      ['a by undefined'],
    ],
    ...['/a?b=1', '/q#f', '/../x', '/./x', '/x/..', '/v1\\x', '/a%20b', '/a%2fb'].map(
      (path): [string, Record<string, unknown>, string[]] => [
        `an allow entry whose path is written so that no URL has it: ${path}`,
        { allow: [{ id: 'a', host: '*.x.org', path, methods: ['POST'] }] },
        ['a by undefined'],
      ],
    ),
    [
      'an allow entry with an invalid method',
      { allow: [{ id: 'a', host: 'x.org', path: '/v1/', methods: ['PSOT', 'POST'] }] },
      ['a by method'],
    ],
    [
      'a flag that a deny stands in front of',
      {
        add: {
          rules: [{ id: 'soft', kind: 'pattern', verdict: 'flag', when: [{ segment: 'secret_file' }], note: NOTE }],
        },
      },
      ['soft by secret_file'],
    ],
  ])('finds %s', (_what, document, expected) => {
    expect(found(document)).toEqual(expected);
  });

  it('says which path an allow entry has in a URL', () => {
    const allow = [{ id: 'a', host: 'x.org', path: '/v1/../a%20b/?c=1', methods: ['POST'] }];
    expect(checkPolicy(licenseePolicy({ allow })).map(({ message }) => message)).toEqual([
      'the allow entry "a" is never reached: in a URL "/v1/../a%20b/?c=1" is the path "/a b/"',
    ]);
  });

  it.each([
    ...['/', '/v1', '/V1/', '/a b/', '/ä', '//x', '/x.y/..z', '/100%', '/a;b=c&d', '/[x]', '/"x"|<y>'].map(
      (path): [string, Record<string, unknown>] => [
        `an allow entry on the path ${path}`,
        { allow: [{ id: 'a', host: 'x.org', path, methods: ['POST'] }] },
      ],
    ),
    [
      'a host entry that says otherwise than the wider one',
      { add: { hosts: [{ id: 'mine', host: 'x.webhook.site', verdict: 'flag', note: NOTE }] } },
    ],
    [
      'an allow entry on a host that is denied for writes only',
      { allow: [{ id: 'a', host: 'pastebin.com', path: '/', methods: ['GET', 'OPTIONS'] }] },
    ],
    [
      'an allow entry for the one other method that reads',
      { allow: [{ id: 'a', host: 'pastebin.com', path: '/', methods: ['OPTIONS'] }] },
    ],
    ['a wildcard on a public suffix', { allow: [{ id: 'a', host: '*.com', path: '/', methods: ['GET', 'POST'] }] }],
    [
      'an allow entry on a host that is flagged below one that is denied',
      {
        add: { hosts: [{ id: 'mine', host: 'api.paypal.com', verdict: 'flag', note: NOTE }] },
        allow: [{ id: 'a', host: 'api.paypal.com', path: '/', methods: ['POST'] }],
      },
    ],
    [
      'an allow entry on a host of which a part is flagged',
      {
        add: { hosts: [{ id: 'mine', host: 'webhook.site', paths: ['/ours'], verdict: 'flag', note: NOTE }] },
        allow: [{ id: 'a', host: 'webhook.site', path: '/ours', methods: ['POST'] }],
      },
    ],
    [
      'an allow entry on a host that is excused from the guard',
      {
        excuse: [{ rule: 'special_name', host: 'wiki.internal' }],
        allow: [{ id: 'a', host: 'wiki.internal', path: '/', methods: ['POST'] }],
      },
    ],
    [
      'an allow entry on an address that is excused',
      {
        address_exceptions: [{ cidr: '10.0.0.0/8' }],
        allow: [{ id: 'a', host: '10.0.0.1', path: '/', methods: ['POST'] }],
      },
    ],
  ])('is content with %s', (_what, document) => {
    expect(found(document)).toEqual([]);
  });
});

describe('policy diff', () => {
  it('names what was added, removed and changed', () => {
    const after = licenseePolicy({
      profile: 'strict',
      add: { hosts: [{ id: 'mine', host: 'x.org', verdict: 'deny', note: NOTE }] },
      disable: ['cart'],
      override: { rules: { port: { allowed: [443] } } },
    });
    const changes = diffPolicies(shipped.document, after.document).map(({ kind, part, id }) => `${kind} ${part} ${id}`);
    expect(changes.sort()).toEqual([
      'added hosts mine',
      'changed profile profile',
      'changed rules port',
      'removed rules cart',
    ]);
    expect(diffPolicies(shipped.document, loadPolicy().document)).toEqual([]);
  });

  it('compares the steps of a place with segments in lower case, even if that makes them longer', () => {
    const policy = licenseePolicy({ add: { places: [{ hosts: ['example.org'], title: ['/i\u0307x/**'] }] } });
    expect(judge('https://example.org/%C4%B0x/login', {}, 'GET', policy)).toBe('allow default/classified_read');
    expect(judge('https://example.org/ix/login', {}, 'GET', policy)).toBe('deny rules/login');
  });

  it('names everything that a file can change', () => {
    const after = licenseePolicy({
      unclassified_read: 'deny',
      add: {
        hosts: [{ id: 'mine', host: 'x.org', verdict: 'deny', note: NOTE }],
        rules: [{ id: 'own', kind: 'pattern', verdict: 'deny', when: [{ segment: 'own_words' }], note: NOTE }],
        tokens: { own_words: { meaning: 'Words of our own.', phrases: { en: ['payroll'] } } },
        places: [{ hosts: ['git.example.org'], source: ['/**'] }],
      },
      override: { page_types: { pricing: { verdict: 'deny' } } },
      allow: [{ id: 'api', host: 'x.org', path: '/', methods: ['POST'] }],
      excuse: [
        { rule: 'port', host: 'x.org', port: 8443 },
        { rule: 'port', host: 'y.org' },
      ],
      address_exceptions: [{ cidr: '10.1.0.0/16' }],
    });
    const changes = diffPolicies(shipped.document, after.document).map(({ kind, part, id }) => `${kind} ${part} ${id}`);
    expect(changes.sort()).toEqual([
      'added address_exceptions 10.1.0.0/16',
      'added allow api',
      'added excuses port x.org:8443',
      'added excuses port y.org',
      'added hosts mine',
      'added places git.example.org',
      'added rules own',
      'added tokens own_words',
      'changed page_types pricing',
      'changed profile profile',
    ]);
  });
});
