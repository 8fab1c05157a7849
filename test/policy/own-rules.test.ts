/** Rules and words of a licensee's own: what would have no effect is refused or reported, and values match in any case. */
import { describe, expect, it } from 'vitest';
import { checkPolicy } from '../../src/policy/ineffective-entries.ts';
import { normalizedRule } from '../../src/policy/layers/rule-fields.ts';
import type { Policy } from '../../src/policy/policy.ts';
import { judge, licenseePolicy, shipped } from './support.ts';

const NOTE = 'A note that a person can act on.';

const ruled = (rule: Record<string, unknown>, phrases: readonly string[] = ['payroll', 'hr']): Policy =>
  licenseePolicy({
    add: {
      rules: [{ id: 'mine', kind: 'guard', verdict: 'deny', note: NOTE, ...rule }],
      tokens: { own_words: { meaning: 'Words of our own.', phrases: { en: phrases } } },
    },
  });

const conditional = (condition: Record<string, unknown>): Policy => ruled({ kind: 'pattern', when: [condition] });

describe('a rule that ships', () => {
  it('is written as one of a licensee must be', () => {
    for (const rule of shipped.document.rules) expect(normalizedRule(rule)).toEqual(rule);
  });
});

describe('words of the own', () => {
  it('lift no denial of what ships', () => {
    const phrases = ['school login', 'signup start', 'mein example login', 'passphraseinit schoollogin', 'delete item'];
    const policy = licenseePolicy({
      add: {
        tokens: { mine: { meaning: 'Words of our own.', phrases: { en: phrases } } },
        rules: [{ id: 'mine', kind: 'pattern', verdict: 'deny', note: NOTE, when: [{ segment: 'mine', at: 'only' }] }],
      },
    });
    for (const name of ['school-login.do', 'signup-start', 'mein-example-login', 'deleteItem.do']) {
      for (const path of [`/x/${name}`, `/en/x/${name}/`])
        expect(judge(`https://example.org${path}`, {}, 'GET', policy)).toBe(judge(`https://example.org${path}`));
      expect(judge(`https://example.org/x/${name}`)).toMatch(/^deny rules/);
    }
  });
});

describe('values of a rule', () => {
  it('count whatever their case', () => {
    const methods = ruled({ check: 'method_is', methods: ['Delete'] });
    expect(judge('https://example.org/', {}, 'DELETE', methods)).toBe('deny rules/mine');
    const allowed = licenseePolicy({
      override: { rules: { method: { allowed: ['get', 'post'] }, scheme: { allowed: ['HTTP', 'HTTPS'] } } },
    });
    expect(judge('https://example.org/', {}, 'GET', allowed)).toBe('allow default/classified_read');
    expect(judge('https://example.org/', {}, 'PUT', allowed)).toBe('deny rules/method');
    const names = ruled({ check: 'host_name', suffixes: ['Intra.Bank.org', 'bücher.org'] });
    expect(judge('https://x.intra.bank.org/', {}, 'GET', names)).toBe('deny rules/mine');
    expect(judge('https://a.bücher.org/', {}, 'GET', names)).toBe('deny rules/mine');
    const nested = licenseePolicy({ override: { rules: { nested_internal: { schemes: ['FILE'] } } } });
    expect(judge('https://example.org/?x=file:///etc/passwd', {}, 'GET', nested)).toBe('deny rules/nested_internal');
  });

  it.each([
    [{ port: { allowed: ['443'] } }, '"443" in "allowed" of the rule "port" is not a port'],
    [{ scheme: { allowed: [443] } }, '443 in "allowed" of the rule "scheme" is not a scheme'],
    [{ scheme: { allowed: ['https://'] } }, '"https://" of the rule "scheme" is not a scheme'],
    [{ method: { allowed: ['GET POST'] } }, '"GET POST" in "allowed" of the rule "method" is not a method'],
    [{ special_name: { suffixes: ['*.corp'] } }, '"*.corp" of the rule "special_name" is not a name'],
    [{ special_name: { inside_suffixes: ['.prod'] } }, '".prod" of the rule "special_name" is not a name'],
    [
      { port: { ranges: ['10.0.0.0/8'] } },
      'The rule "port" has "ranges", which nothing reads there; it takes allowed.',
    ],
    [{ port: { when: [{ segment: 'login' }] } }, 'The rule "port" has "when", which nothing reads there'],
    [{ login: { allowed: [1] } }, 'The rule "login" has "allowed", which nothing reads there; it takes when.'],
    [{ userinfo: { max_length: 99 } }, 'which nothing reads there; it takes no parameter.'],
  ])('that no request has are refused: %j', (rules, expected) => {
    expect(() => licenseePolicy({ override: { rules } })).toThrow(expected);
  });
});

describe('conditions', () => {
  it('ask for everything that stands in them', () => {
    const both = conditional({ segment: 'own_words', host_label: 'own_words', query_flag: 'own_words' });
    const of = (url: string): string => judge(url, {}, 'GET', both);
    expect(of('https://hr.example.org/payroll?hr=1')).toBe('deny rules/mine');
    for (const url of [
      'https://hr.example.org/payroll',
      'https://example.org/payroll?hr=1',
      'https://hr.example.org/?hr=1',
    ])
      expect(of(url)).toBe('allow default/classified_read');
  });

  it.each([
    [{ segment: 'own_words', query_name: 'own_words', query_value: 'own_words' }, '"query_name" beside "segment"'],
    [{ segment: 'own_words', file: 'own_words' }, '"file" beside "segment"'],
    [{ segment: 'own_words', min_value_length: 3 }, '"min_value_length" beside "segment"'],
    [{ file: 'own_words', host_label: 'own_words' }, '"file" beside "host_label"'],
    [{ file: 'own_words', extension: 'own_words' }, '"extension" beside "file"'],
    [{ host_label: 'own_words', query_flag: 'own_words' }, '"query_flag" beside "host_label"'],
    [
      { query_name: 'own_words', query_value: 'own_words', query_flag: 'own_words' },
      '"query_flag" beside "query_name"',
    ],
    [{ not_in: ['reading'] }, 'asks for no word'],
    [{ min_value_length: 3 }, 'asks for no word'],
  ])('of which a part would not be asked are refused: %j', (condition, expected) => {
    expect(() => conditional(condition)).toThrow(expected);
  });
});

describe('words', () => {
  it.each([
    ['pay/roll', 'has "/": a phrase is one whole segment'],
    ['payroll*', 'has "*"'],
    ['p%61yroll', 'has "%"'],
    ['payroll?x', 'has "?"'],
    ['!!!', 'must have 1 to 96 letters and digits'],
    ['x'.repeat(97), 'must have 1 to 96 letters and digits'],
  ])('that no segment can be are refused: %s', (phrase, expected) => {
    expect(() => ruled({ kind: 'pattern', when: [{ segment: 'own_words' }] }, [phrase])).toThrow(expected);
  });

  it.each([
    ['payroll.php', 'write "payroll", or ask for "own_words" as a "file"'],
    ['hr.forms', 'write "hr"'],
    ['payroll.css', 'write "payroll"'],
    ['.hr.forms', 'write ".hr"'],
  ])('with an extension are refused where names of segments are asked for: %s', (phrase, expected) => {
    const when = [{ segment: 'own_words' }];
    expect(() => ruled({ kind: 'pattern', when }, [phrase])).toThrow(expected);
    expect(() => ruled({ kind: 'pattern', when: [{ segment: 'login', also: 'own_words' }] }, [phrase])).toThrow(
      expected,
    );
    // As a file, the whole name is compared.
    const filed = ruled({ kind: 'pattern', when: [...when, { file: 'own_words' }] }, [phrase]);
    expect(judge(`https://example.org/a/${phrase}`, {}, 'GET', filed)).toBe('deny rules/mine');
    // The phrase that the message gives matches.
    const met = /"([^"]+)"/.exec(expected)![1]!;
    const named = ruled({ kind: 'pattern', when }, [met]);
    if (!phrase.endsWith('.css'))
      expect(judge(`https://example.org/a/${phrase}`, {}, 'GET', named)).toBe('deny rules/mine');
  });

  it.each(['payroll 2.0', '.payroll', 'pay-roll.', 'v1.2'])('that names of segments can be are taken: %s', (phrase) => {
    const policy = ruled({ kind: 'pattern', when: [{ segment: 'own_words' }] }, [phrase]);
    expect(judge(`https://example.org/a/${phrase}`, {}, 'GET', policy)).toBe('deny rules/mine');
  });

  it('that no rule asks for are found', () => {
    const tokens = { own_words: { meaning: 'Words of our own.', phrases: { en: ['payroll'] } } };
    expect(checkPolicy(licenseePolicy({ add: { tokens } }), shipped).map(({ id }) => id)).toEqual(['own_words']);
    expect(checkPolicy(conditional({ segment: 'own_words' }), shipped)).toEqual([]);
  });
});

describe('what cannot be meant', () => {
  it.each([
    [{ disable: ['login'], override: { rules: { login: { verdict: 'flag' } } } }, 'both name "login"'],
    [{ disable: ['bit.ly'], override: { hosts: { 'bit.ly': { verdict: 'deny' } } } }, 'both name "bit.ly"'],
    [
      { disable: ['group:paste'], override: { groups: { paste: { verdict: 'deny' } } } },
      'both name "group:paste": remove it from one of them',
    ],
  ])('is refused: %j', (document, expected) => {
    expect(() => licenseePolicy(document)).toThrow(expected);
  });

  it('is found: groups of look-alikes that no host is in', () => {
    const policy = licenseePolicy({ override: { rules: { idn_confusable: { groups: ['bank_login', 'bnak'] } } } });
    expect(checkPolicy(policy, shipped).map(({ message }) => message)).toEqual([
      'the rule "idn_confusable" names groups that no host is in: bnak',
    ]);
    expect(checkPolicy(licenseePolicy({ disable: ['group:payment'] }), shipped)).toEqual([]);
  });
});

describe('places', () => {
  it('with pages of the host alone say that every other first segment is a name', () => {
    const policy = licenseePolicy({ add: { places: [{ hosts: ['git.example.org'], own: ['login', 'user'] }] } });
    expect(judge('https://git.example.org/signup', {}, 'GET', policy)).toBe('allow default/classified_read');
    expect(judge('https://git.example.org/login', {}, 'GET', policy)).toBe('deny rules/login');
  });

  it('add to what ships about the same host, and to each other', () => {
    const policy = licenseePolicy({
      add: {
        places: [
          { hosts: ['github.com', 'git.example.org'], own: ['our-page'], title: ['/@/*/letters/{}'] },
          { hosts: ['git.example.org'], source: ['/files/**'], own: ['login'] },
        ],
      },
    });
    const on = (url: string) => judge(`https://${url}`, {}, 'GET', policy);
    expect(on('github.com/auth0/x/letters/checkout')).toBe('allow default/classified_read');
    expect(on('github.com/auth0/x/blob/main/.env')).toBe(judge('https://github.com/auth0/x/blob/main/.env'));
    for (const host of ['github.com', 'git.example.org']) expect(on(`${host}/login`)).toBe('deny rules/login');
    expect(on('git.example.org/files/checkout')).toBe('allow default/classified_read');
    expect(on('git.example.org/me/x/letters/checkout')).toBe('allow default/classified_read');
  });

  it('of one host alone add to what ships about it and all below', () => {
    const policy = licenseePolicy({
      add: { places: [{ hosts: ['=github.com', '*.github.com'], title: ['/@/*/letters/{}'] }] },
    });
    for (const path of ['auth0/x/letters/checkout', 'auth0/x/blob/main/login'])
      for (const host of ['github.com', 'a.github.com'])
        expect(judge(`https://${host}/${path}`, {}, 'GET', policy)).toBe('allow default/classified_read');
    expect(judge('https://github.com/login', {}, 'GET', policy)).toBe('deny rules/login');
  });
});

describe('excuses without effect', () => {
  const found = (excuse: readonly object[], more: object = {}): string[] =>
    checkPolicy(licenseePolicy({ excuse, ...more }), shipped).map(({ message }) => message);

  it.each([
    [{ rule: 'special_name', host: 'wiki.example.org' }, 'the rule "special_name" does not deny it'],
    [{ rule: 'special_name', host: '*.example.org' }, 'the rule "special_name" does not deny it'],
    [{ rule: 'private_network', host: '8.8.8.8' }, 'the rule "private_network" does not deny it'],
    [{ rule: 'private_network', host: 'example.org' }, 'the rule "private_network" does not deny it'],
    [{ rule: 'idn_confusable', host: 'example.org' }, 'the rule "idn_confusable" does not flag it'],
    [{ rule: 'dns_tunnel', host: 'example.org' }, 'the rule "dns_tunnel" does not deny it'],
    [{ rule: 'spelled_address', host: 'example.org' }, 'the rule "spelled_address" does not deny it'],
    [{ rule: 'port', host: 'example.org', port: 443 }, 'the rule "port" allows the port 443 everywhere'],
    [{ rule: 'secret_in_url', host: 'webhook.site' }, 'the host entry "webhook.site" denies before it'],
  ])('are found: %j', (excuse, why) => {
    expect(found([excuse])).toEqual([`the excuse of "${excuse.rule}" for ${excuse.host} has no effect: ${why}`]);
  });

  it('are found: what another one excuses', () => {
    const [one, all] = [
      { rule: 'port', host: 'ci.example.org', port: 8443 },
      { rule: 'port', host: '*.example.org' },
    ];
    expect(found([all, one])).toEqual([
      'the excuse of "port" for ci.example.org has no effect: the one for *.example.org excuses it',
    ]);
    expect(found([one, { ...one }])).toHaveLength(1);
    expect(found([one, { ...one, port: 9443 }, { ...one, rule: 'secret_in_url' }])).toEqual([]);
  });

  it.each([
    { rule: 'special_name', host: 'wiki.corpname' },
    { rule: 'special_name', host: '*.corp' },
    // Names of internal networks are below it.
    { rule: 'special_name', host: '*.cloudapp.net' },
    { rule: 'private_network', host: '10.0.0.5' },
    { rule: 'spelled_address', host: '*.example.org' },
    { rule: 'dns_tunnel', host: '*.example.org' },
    { rule: 'idn_confusable', host: '*.xn--80ak6aa92e.com' },
    { rule: 'idn_confusable', host: 'xn--80ak6aa92e.com' },
    { rule: 'secret_in_url', host: 'api.example.org' },
    { rule: 'userinfo', host: 'api.example.org' },
    { rule: 'method', host: 'api.example.org' },
    { rule: 'too_long', host: '*.example.org' },
    { rule: 'category_threat', host: 'example.org' },
    { rule: 'port', host: 'example.org' },
    { rule: 'port', host: 'example.org', port: 8443 },
    // Only writes are denied before it.
    { rule: 'secret_in_url', host: 'pastebin.com' },
  ])('are none of those that have one: %j', (excuse) => {
    expect(found([excuse])).toEqual([]);
  });
});
