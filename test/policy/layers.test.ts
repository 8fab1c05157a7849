/** Which layer decides, in which order, and with which verdict. */
import { describe, expect, it } from 'vitest';
import { evaluate } from '../../src/policy/evaluate.ts';
import { pageTypes } from '../../src/record/vocabulary.ts';
import { judge, licenseePolicy, request, shipped } from './support.ts';

describe('known answers', () => {
  it.each([
    ['https://stripe.com/login', { pages: { login: 'https://stripe.com/login' } }, 'GET', 'deny page_type_db/login'],
    ['https://github.com/login', {}, 'GET', 'deny rules/login'],
    ['https://example.org/settings/delete-account', {}, 'GET', 'deny rules/account'],
    ['https://example.org/wiki/Foo?action=edit', {}, 'GET', 'deny rules/wiki_edit'],
    [
      'https://stripe.com/pricing',
      { pages: { pricing: 'https://stripe.com/pricing' } },
      'GET',
      'allow page_type_db/pricing',
    ],
    [
      'https://stripe.com/pricing',
      { pages: { pricing: 'https://stripe.com/pricing' } },
      'POST',
      'deny default/unclassified_write',
    ],
    ['http://169.254.169.254/latest/meta-data/', { found: false }, 'GET', 'deny high_value_hosts/169.254.169.254'],
    ['https://example.org/anything', { categories: ['Phishing'] }, 'GET', 'deny rules/category_threat'],
    ['https://example.org/blog/login-tips', {}, 'GET', 'allow default/classified_read'],
    ['https://example.org/docs/authentication', {}, 'GET', 'allow default/classified_read'],
    ['stripe.com/login', {}, 'GET', 'deny rules/login'],
    ['example.org', {}, 'POST', 'deny default/unclassified_write'],
  ])('%s with %j and %s: %s, as the design says', (url, known, method, expected) => {
    expect(judge(url, known, method)).toBe(expected);
  });
});

describe('the default', () => {
  it.each([
    ['GET', {}, 'allow default/classified_read'],
    ['HEAD', {}, 'allow default/classified_read'],
    ['GET', { found: false, parentFound: true }, 'flag default/unclassified_subdomain'],
    ['GET', { found: false }, 'flag default/unclassified_read'],
    ['POST', {}, 'deny default/unclassified_write'],
    ['PUT', { found: false }, 'deny default/unclassified_write'],
    ['PROPFIND', {}, 'deny default/unclassified_write'],
    ['OPTIONS', {}, 'flag rules/method_options'],
    ['CONNECT', {}, 'deny rules/method'],
    ['TRACE', {}, 'deny rules/method'],
    ['BREW', {}, 'deny rules/method'],
  ])('%s with %j: %s', (method, known, expected) => {
    expect(judge('https://example.org/', known, method)).toBe(expected);
  });

  it.each([
    ['strict', 'deny', 'deny', 0],
    ['default', 'flag', 'flag', 0],
    ['open', 'allow', 'allow', 2],
  ])(
    'the profile %s answers %s for an unclassified read and warns as often as it must',
    (profile, read, subdomain, warnings) => {
      const policy = licenseePolicy({}, profile);
      expect(judge('https://example.org/', { found: false }, 'GET', policy)).toBe(`${read} default/unclassified_read`);
      expect(judge('https://example.org/', { found: false, parentFound: true }, 'GET', policy)).toBe(
        `${subdomain} default/unclassified_subdomain`,
      );
      expect(judge('https://example.org/', { found: false }, 'POST', policy)).toBe('deny default/unclassified_write');
      expect(policy.warnings).toHaveLength(warnings);
    },
  );
});

describe('guards', () => {
  it.each([
    ['http://10.0.0.1/', 'OPTIONS', {}, 'deny rules/private_network'],
    ['https://example.org/', 'OPTIONS', { categories: ['Malware'] }, 'deny rules/category_threat'],
    ['https://example.org/a%252fb', 'OPTIONS', {}, 'flag rules/double_encoding'],
  ])('%s with %s and %j: the first that denies, else the first that flags: %s', (url, method, known, expected) => {
    expect(judge(url, known, method)).toBe(expected);
  });
});

describe('high-value hosts', () => {
  it.each([
    ['https://webhook.site/x', 'GET', 'deny high_value_hosts/webhook.site'],
    ['https://a.b.webhook.site/x', 'GET', 'deny high_value_hosts/webhook.site'],
    ['https://www.webhook.site/', 'GET', 'deny high_value_hosts/webhook.site'],
    ['https://notwebhook.site/', 'GET', 'allow default/classified_read'],
    ['https://accounts.google.com/', 'GET', 'deny high_value_hosts/accounts.google.com'],
    ['https://pastebin.com/abc', 'GET', 'flag high_value_hosts/pastebin.com'],
    ['https://pastebin.com/abc', 'POST', 'deny high_value_hosts/pastebin.com'],
    ['https://acme.okta.com/', 'GET', 'deny high_value_hosts/okta.com'],
    ['https://okta.com/', 'GET', 'allow default/classified_read'],
    ['https://www.okta.com/', 'GET', 'allow default/classified_read'],
    ['http://[fd00:ec2::254]/latest/', 'GET', 'deny high_value_hosts/[fd00:ec2::254]'],
    ['http://0xA9FEA9FE/', 'GET', 'deny high_value_hosts/169.254.169.254'],
    ['http://metadata.google.internal./', 'GET', 'deny high_value_hosts/metadata.google.internal'],
    ['https://10-0-0-1.nip.io/', 'GET', 'deny high_value_hosts/nip.io'],
  ])('%s with %s: %s', (url, method, expected) => {
    expect(judge(url, {}, method)).toBe(expected);
  });

  it('give a floor that later layers raise, and never lower', () => {
    expect(judge('https://pastebin.com/login')).toBe('deny rules/login');
    expect(judge('https://pastebin.com/about', { pages: { about: 'https://pastebin.com/about' } })).toBe(
      'flag high_value_hosts/pastebin.com',
    );
  });

  it('are many, in groups, each with an id of its own and in one group', () => {
    const { hosts } = shipped.document;
    expect(hosts.length).toBeGreaterThan(1000);
    expect(new Set(hosts.map((entry) => entry.id)).size).toBe(hosts.length);
    expect(hosts.filter(({ group }) => group === undefined)).toEqual([]);
  });

  it.each([
    ['https://paypal.me/somebody/25EUR', 'deny high_value_hosts/paypal.me'],
    ['https://mail.google.com/mail/u/0/', 'deny high_value_hosts/mail.google.com'],
    ['https://www.google.com/gmail/about/', 'allow default/classified_read'],
    ['https://na2.docusign.net/x', 'deny high_value_hosts/docusign.net'],
    ['https://www.docusign.com/products', 'allow default/classified_read'],
    ['https://d-1234567890.awsapps.com/start', 'deny high_value_hosts/awsapps.com'],
    ['https://lnkd.in/abc', 'flag high_value_hosts/lnkd.in'],
    ['https://eur01.safelinks.protection.outlook.com/?x=1', 'flag high_value_hosts/safelinks.protection.outlook.com'],
    ['https://cdn.ampproject.org/v0.js', 'allow default/classified_read'],
    ['https://example-org.cdn.ampproject.org/c/s/example.org/x', 'flag high_value_hosts/cdn.ampproject.org'],
    ['https://beeceptor.com/', 'allow default/classified_read'],
    ['https://x.beeceptor.com/', 'deny high_value_hosts/beeceptor.com'],
    ['https://x.oast.live/', 'deny high_value_hosts/oast.live'],
    ['https://metadata.tencentyun.com/', 'deny high_value_hosts/metadata.tencentyun.com'],
    ['https://doh.opendns.com/dns-query?dns=AAAB', 'deny high_value_hosts/doh.opendns.com'],
  ])('cover what takes data in or leads elsewhere: %s: %s', (url, expected) => {
    expect(judge(url)).toBe(expected);
  });

  it.each([
    ['https://www.google.com/amp/s/example.org/', 'flag high_value_hosts/google.com/amp'],
    ['https://www.google.com/AMP', 'flag high_value_hosts/google.com/amp'],
    ['https://www.google.com/amphibians', 'allow default/classified_read'],
    ['https://discord.com/api/webhooks/1/x', 'deny high_value_hosts/discord.com/api/webhooks'],
    ['https://discord.com/company', 'allow default/classified_read'],
  ])('count below their paths alone: %s: %s', (url, expected) => {
    expect(judge(url)).toBe(expected);
  });

  it.each([
    ['https://www.paypal.com/us/legalhub/useragreement-full', 'allow default/classified_read'],
    ['https://developer.paypal.com/docs/checkout/', 'allow default/classified_read'],
    ['https://www.coinbase.com/careers/positions', 'allow default/classified_read'],
    ['https://careers.paypal.com/', 'allow default/classified_read'],
    ['https://careers.paypal.com/login', 'deny rules/login'],
    ['https://business.paypal.com/', 'deny high_value_hosts/paypal.com'],
    ['https://help.okta.com/en/prod/', 'allow default/classified_read'],
    ['https://status.auth0.com/', 'allow default/classified_read'],
    ['https://www.paypal.com/anything', 'deny high_value_hosts/paypal.com'],
    ['https://www.paypal.com/signin/help', 'deny rules/login'],
    ['https://acme.okta.com/app/x', 'deny high_value_hosts/okta.com'],
    ['https://acme.okta.com/whois/docs', 'deny high_value_hosts/okta.com'],
    ['https://acme.okta.com/whois/docs....', 'deny high_value_hosts/okta.com'],
    ['https://acme.okta.com/whois/docs.html', 'deny high_value_hosts/okta.com'],
    // A fragment announces nothing, and a write is never reading matter.
    ['https://www.paypal.com/anything#/docs', 'deny high_value_hosts/paypal.com'],
  ])('leave the reading matter of a company alone: %s: %s', (url, expected) => {
    expect(judge(url)).toBe(expected);
  });

  it('deny writes to the same pages', () => {
    expect(judge('https://www.paypal.com/us/legalhub', {}, 'POST')).toBe('deny high_value_hosts/paypal.com');
  });

  it('fall through to the next one for a method that the nearest says nothing about', () => {
    const hosts = [{ id: 'mine', host: 'x.webhook.site', writes: 'flag', note: 'Our own place to test writes.' }];
    const policy = licenseePolicy({ add: { hosts } });
    expect(judge('https://x.webhook.site/', {}, 'GET', policy)).toBe('deny high_value_hosts/webhook.site');
    expect(policy.warnings).toEqual([
      'The host entry "mine" weakens "webhook.site", which ships and denies its writes.',
    ]);
  });

  it('are switched by group', () => {
    const off = licenseePolicy({ disable: ['group:shortener'] });
    expect(judge('https://bit.ly/x', {}, 'GET', off)).toBe('allow default/classified_read');
    expect(judge('https://i0.wp.com/example.org/x.png', {}, 'GET', off)).toBe('flag high_value_hosts/i0.wp.com');
    const harder = licenseePolicy({ override: { groups: { shortener: { verdict: 'deny' } } } });
    expect(judge('https://bit.ly/x', {}, 'GET', harder)).toBe('deny high_value_hosts/bit.ly');
  });
});

describe('excuses', () => {
  const policy = licenseePolicy({
    excuse: [
      { rule: 'special_name', host: 'wiki.corpname', note: 'The wiki of the company.' },
      { rule: 'secret_in_url', host: 'api.example.org' },
      { rule: 'port', host: 'api.example.org', port: 8443 },
    ],
  });

  it.each([
    ['https://wiki.corpname/page', 'allow default/classified_read'],
    ['https://other.corpname/page', 'deny rules/special_name'],
    ['https://x.wiki.corpname/page', 'deny rules/special_name'],
    ['https://wiki.corpname:8443/page', 'deny rules/port'],
    ['https://wiki.corpname/login', 'deny rules/login'],
    ['https://api.example.org/?api_key=abc', 'allow default/classified_read'],
    ['https://www.example.org/?api_key=abc', 'deny rules/secret_in_url'],
    ['https://api.example.org:8443/', 'allow default/classified_read'],
    ['https://api.example.org:8444/', 'deny rules/port'],
    // For other hosts, such a name is still an internal one.
    ['https://example.org/?url=http://wiki.corpname/', 'deny rules/nested_internal'],
  ])('%s: %s', (url, expected) => {
    const isInside = new URL(url).hostname.endsWith('.corpname');
    expect(
      judge(url, { found: !isInside, parentFound: false }, 'GET', policy).replace(
        'flag default/unclassified_read',
        'allow default/classified_read',
      ),
    ).toBe(expected);
  });

  it('are named to the person who starts the program', () => {
    expect(policy.warnings).toEqual([
      'The guard rule "special_name" does not hold for wiki.corpname: The wiki of the company.',
      'The guard rule "secret_in_url" does not hold for api.example.org.',
      'The guard rule "port" does not hold for api.example.org, port 8443.',
    ]);
  });

  it('are refused for a rule that is no guard, and for what is no host', () => {
    for (const excuse of [
      { rule: 'login', host: 'x.org' },
      { rule: 'port', host: 'x y' },
      { rule: 'prt', host: 'x.org' },
    ])
      expect(() => licenseePolicy({ excuse: [excuse] })).toThrow(/policy file is not valid/);
  });
});

describe('a flag', () => {
  it('is raised by the default, which denies writes and what nobody has vetted', () => {
    expect(judge('https://bit.ly/x', {}, 'POST')).toBe('deny default/unclassified_write');
    const strict = licenseePolicy({}, 'strict');
    expect(judge('https://example.org/?next=https://example.net/', { found: false }, 'GET', strict)).toBe(
      'deny default/unclassified_read',
    );
    expect(judge('https://example.org/?next=https://example.net/', {}, 'GET', strict)).toBe('flag rules/open_redirect');
  });
});

describe('verified pages', () => {
  const login = { login: 'https://example.org/zso-page' };

  it.each([
    ['https://example.org/zso-page', true],
    ['https://example.org/zso-page/', true],
    ['https://example.org/zso-page/step/2', true],
    ['https://example.org/zso-page?next=/x', true],
    ['https://example.org/zso-page#top', true],
    ['http://example.org/zso-page', true],
    ['https://EXAMPLE.org/zso-page', true],
    ['https://www.example.org/zso-page', true],
    ['https://example.org:443/zso-page', true],
    ['https://example.org/ZSO-Page', true],
    ['https://example.org//zso-page', true],
    ['https://example.org/zso%2Dpage', true],
    ['https://example.org/%7Aso-page', true],
    ['https://example.org/zso-page;jsessionid=1', true],
    ['https://example.org/;x/zso-page/', true],
    ['https://example.org/%3bx/zso-page', true],
    ['https://example.org/zso-page.', true],
    ['https://example.org/zso-page;a;b', true],
    ['https://example.org/z%C2%ADso-pag%E2%80%8Be', true],
    ['https://example.org//zso-page//step', true],
    ['https://example.org/zso-page%C3%A9', false],
    ['https://example.org/zso-page%20', true],
    ['https://example.org/%20zso-page', true],
    ['https://example.org/.zso-page', false],
    ['https://example.org/zso-page.%20./step', true],
    ['https://example.org/zso-page%c2%a0', true],
    ['https://example.org/zso-page%E2%80%8B', true],
    ['https://example.org/zs%C2%ADo-page/x', true],
    ['https://example.org/zso-page%3Fx=1', true],
    ['https://example.org/zso-page%23x', true],
    ['https://example.org/zso-page%26x', true],
    ['https://example.org/zso-page&x=1/y', true],
    ['https://example.org/zso-page/step%3Fx', true],
    ['https://example.org/zs%u006f-page', true],
    ['https://example.org/zs%c1%af-page', true],
    ['https://example.org/x%3F/zso-page', false],
    ['https://example.org/a/../zso-page', true],
    ['https://example.org/zso-pages', false],
    ['https://example.org/zso-page.html', true],
    ['https://example.org/zso-page.json?x', true],
    ['https://example.org/ZSO-page.PHP', true],
    ['https://example.org/zso-page.css', false],
    ['https://example.org/zso-page.2', false],
    ['https://example.org/zso-page.html.txt', false],
    ['https://example.org/zso-page/.html', true],
    ['https://example.org/.html', false],
    ['https://example.org/x/zso-page', false],
    ['https://example.org/', false],
    ['https://other.example.org/zso-page', false],
    ['https://example.org.evil.com/zso-page', false],
  ])('of a type to deny: %s is one: %s', (url, expected) => {
    expect(judge(url, { pages: login })).toBe(expected ? 'deny page_type_db/login' : 'allow default/classified_read');
  });

  it("count on the host that they name, through the parent's record", () => {
    const pages = { login: 'https://dashboard.example.org/enter' };
    expect(judge('https://dashboard.example.org/enter', { found: false, parentFound: true, pages })).toBe(
      'deny page_type_db/login',
    );
    expect(judge('https://example.org/enter', { pages })).toBe('allow default/classified_read');
  });

  it.each([
    ['https://example.org/', 'deny page_type_db/login'],
    ['https://example.org', 'deny page_type_db/login'],
    ['https://example.org/#x', 'deny page_type_db/login'],
    ['https://example.org/?', 'deny page_type_db/login'],
    ['https://example.org/?a', 'deny page_type_db/login'],
    ['https://example.org/?a=&b', 'deny page_type_db/login'],
    ['https://example.org/<<', 'deny page_type_db/login'],
    ['https://example.org/<<%26x=', 'deny page_type_db/login'],
    ['https://example.org/?lang=en', 'deny page_type_db/login'],
    ['https://example.org/?utm_source=x&hl=de', 'deny page_type_db/login'],
    ['https://example.org/index.php?a', 'deny page_type_db/login'],
    ['https://example.org/%3Fa', 'deny page_type_db/login'],
    ['https://example.org/)', 'deny page_type_db/login'],
    ['https://example.org/?x=1', 'flag page_type_db/login'],
    ['https://example.org/?lang=en&p=123', 'flag page_type_db/login'],
    ['https://example.org/?lang=en;p=123', 'flag page_type_db/login'],
    ['https://example.org/%3Fp=123', 'flag page_type_db/login'],
    ['https://example.org/?page=register', 'deny rules/signup'],
    ['https://example.org/about', 'allow default/classified_read'],
    ['https://example.org/about?lang=en', 'allow default/classified_read'],
  ])('at the root deny the root alone, and flag it with a parameter: %s: %s', (url, expected) => {
    expect(judge(url, { pages: { login: 'https://example.org/' } })).toBe(expected);
  });

  it.each([
    ['https://example.org/enter)', true],
    ['https://example.org/enter,', true],
    ['https://example.org/enter/"', true],
    ['https://example.org/enter/x>', true],
    ['https://example.org/enter-x', false],
    ['https://example.org/ente', false],
  ])('are denied with signs at the end, too: %s: %s', (url, expected) => {
    const verdict = expected ? 'deny page_type_db/login' : 'allow default/classified_read';
    expect(judge(url, { pages: { login: 'https://example.org/enter' } })).toBe(verdict);
  });

  it.each([
    ['https://example.org/how-to-enter-', '/how-to-enter-_', true],
    ['https://example.org/how-to-enter-', '/how-to-enter-/index.html', true],
    ['https://example.org/how-to-enter-', '/how-to-enter-x', false],
    ['https://example.org/--', '/', false],
    ['https://example.org/--', '/--/', true],
    ['https://example.org/#/enter-', '/#/enter-)', true],
    ['https://example.org/?p2=enter', '/??p2=enter', true],
    ['https://example.org/?p2=enter', '/?p2=enter%26x=1', true],
    ['https://example.org/a?x;p2=enter', '/a?x;p2=enter/;x=1', true],
    ['https://example.org/a?x;p2=enter', '/a?p2=enter', false],
  ])('are known without the signs at their own end: %s, %s: %s', (login, path, expected) => {
    const verdict = expected ? 'deny page_type_db/login' : 'allow default/classified_read';
    expect(judge(`https://example.org${path}`, { pages: { login } })).toBe(verdict);
  });

  it.each([
    ['https://example.org/index.php?p2=enter', true],
    ['https://example.org/index.php?p2=enter&lang=de', true],
    ['https://example.org/index.php?p2=home', false],
    ['https://example.org/index.php%3Fp2=enter', true],
    ['https://example.org/index.php%26p2=enter?lang=de', true],
    ['https://example.org/index.php%3Fp2=home', false],
    ['https://example.org/index.php?P2=Enter', true],
    ['https://example.org/index.php?p2=enter,', true],
    ['https://example.org/index.php', false],
    ['https://example.org/index.php/x?p2=enter', false],
  ])('told by the query alone deny that query: %s: %s', (url, expected) => {
    const pages = { login: 'https://example.org/index.php?p2=enter&lang=en' };
    expect(judge(url, { pages })).toBe(expected ? 'deny page_type_db/login' : 'allow default/classified_read');
  });

  it.each([
    ['https://example.org/in/index.php', '/in', true],
    ['https://example.org/in/index.php', '/in/index.html', true],
    ['https://example.org/in/index.php', '/In/Default.aspx?x=1', true],
    ['https://example.org/in/index.php', '/in/default', false],
    ['https://example.org/in/index.php', '/in/indexes.html', false],
    ['https://example.org/in/index.php', '/in/x/index.html', false],
    ['https://example.org/index.php', '/index.html', true],
    ['https://example.org/index.php?p2=enter', '/default.aspx?p2=enter', true],
    ['https://example.org/index.php?p2=enter', '/default.aspx?p2=home', false],
  ])('with the page %s, the index file of its folder is the folder: %s: %s', (login, path, expected) => {
    const verdict = expected ? 'deny page_type_db/login' : 'allow default/classified_read';
    expect(judge(`https://example.org${path}`, { pages: { login } })).toBe(verdict);
  });

  it('told by the path too are denied whatever the query', () => {
    const pages = { account: 'https://example.org/my-account/start.php?view=3' };
    expect(judge('https://example.org/my-account/start.php', { pages })).toBe('deny page_type_db/account');
  });

  it.each([
    ['https://example.org/help', 'GET', 'allow page_type_db/help'],
    ['https://example.org/help/', 'HEAD', 'allow page_type_db/help'],
    ['https://example.org/help?x=1', 'GET', 'allow page_type_db/help'],
    ['https://example.org/help/.env', 'GET', 'deny rules/secret_file'],
    ['https://example.org/Help', 'GET', 'allow default/classified_read'],
    ['https://example.org/help', 'POST', 'deny default/unclassified_write'],
    ['https://example.org/help?u=https://evil.internal/', 'GET', 'deny rules/nested_internal'],
    ['https://example.org/help?u=https://evil.net/', 'GET', 'flag rules/open_redirect'],
  ])('of a type to allow, exactly: %s with %s: %s', (url, method, expected) => {
    expect(judge(url, { pages: { help: 'https://example.org/help' } }, method)).toBe(expected);
  });

  it.each([
    ['https://example.org/#/login', 'deny rules/login'],
    ['https://example.org/#!/account/settings', 'deny rules/account'],
    ['https://example.org/#/intro', 'allow page_type_db/docs'],
    ['https://example.org/#account', 'allow page_type_db/docs'],
  ])('of a type to allow do not speak for their routes: %s: %s', (url, expected) => {
    expect(judge(url, { pages: { docs: 'https://example.org/' } })).toBe(expected);
  });

  it('of a type to allow speak for their path and nothing else', () => {
    const on = (url: string, page = url): string => judge(url, { pages: { help: page } });
    const path = `https://example.org/${'aGVsbG8gd29ybGQ0'.repeat(12)}`;
    expect(on(path)).toBe('allow page_type_db/help');
    expect(on('https://example.org/account#/intro', 'https://example.org/account')).toBe('allow page_type_db/help');
    expect(on('https://example.org/help?action=edit', 'https://example.org/help')).toBe('deny rules/wiki_edit');
    expect(on('https://help.example.org/x#/account', 'https://help.example.org/x')).toBe('allow page_type_db/help');
    expect(on('https://example.org/x#/account', 'https://example.org/x')).toBe('deny rules/account');
  });

  it('keep reading matter what it is, in their routes, too', () => {
    const pages = { docs: 'https://example.org/docs' };
    expect(judge('https://example.org/docs#/account', { pages })).toBe('allow page_type_db/docs');
    expect(judge('https://example.org/docs#/login', { pages })).toBe('deny rules/login');
    // Documentation excuses more than other reading matter.
    expect(judge('https://example.org/docs#/settings', { pages })).toBe('allow page_type_db/docs');
    const blog = { docs: 'https://example.org/blog' };
    expect(judge('https://example.org/blog#/settings', { pages: blog })).toBe('deny rules/settings');
  });

  it.each([
    ['https://example.org/#/enter', true],
    ['https://example.org/index.html#!/Enter/2', true],
    ['https://example.org/', false],
    ['https://example.org/?x=1#/enter', true],
    ['https://example.org/index.html?x#/enter', true],
    ['https://example.org/#enter', true],
    ['https://example.org/#%2Fenter', true],
    ['https://example.org/#!enter/2', true],
    ['https://example.org/#/enter?x', true],
    ['https://example.org/#/enter&x=1', true],
    ['https://example.org/#/%u0065nter', true],
    ['https://example.org/?p=1', false],
    ['https://example.org/#', false],
    ['https://example.org/#/other', false],
    ['https://example.org/#entered', false],
    ['https://example.org/#/enterx', false],
    ['https://example.org/#/other&x=1', false],
    ['https://example.org/about#/enter', false],
  ])('that are a route of the root deny that route: %s: %s', (url, expected) => {
    const pages = { login: 'https://example.org/#/enter' };
    expect(judge(url, { pages })).toBe(expected ? 'deny page_type_db/login' : 'allow default/classified_read');
  });

  it('that are a route of a page told by its query deny it with that query', () => {
    const pages = { login: 'https://example.org/?site=2#/enter' };
    expect(judge('https://example.org/?x=1&site=2#/enter', { pages })).toBe('deny page_type_db/login');
    expect(judge('https://example.org/?site=3#/enter', { pages })).toBe('allow default/classified_read');
  });

  it('that are a route of another page than the root are that page', () => {
    const pages = { login: 'https://example.org/app#/enter' };
    expect(judge('https://example.org/app', { pages })).toBe('deny page_type_db/login');
    expect(judge('https://example.org/app#/other', { pages })).toBe('deny page_type_db/login');
  });

  it('that are the route of the start say nothing about other pages of the root', () => {
    const pages = { login: 'https://example.org/#/' };
    expect(judge('https://example.org/#/', { pages })).toBe('deny page_type_db/login');
    expect(judge('https://example.org/?p=1', { pages })).toBe('flag page_type_db/login');
    expect(judge('https://example.org/about', { pages })).toBe('allow default/classified_read');
  });

  it.each([
    ['https://example.org/t%C3%BCr', 'https://example.org/tu%CC%88r', true],
    ['https://example.org/tu%CC%88r', 'https://example.org/T%C3%9CR/x', true],
    ['https://example.org/t%C3%BCr', 'https://example.org/tur', false],
    ['https://example.org/enter.php', 'https://example.org/enter', true],
    ['https://example.org/v1.enter.php', 'https://example.org/v1.enter', true],
    ['https://example.org/enter.php?p2=z', 'https://example.org/enter?p2=z', true],
    ['https://example.org/enter.php?p2=z', 'https://example.org/enter', false],
    ['https://example.org/enter.php', 'https://example.org/enter.html', false],
    ['https://example.org/v1', 'https://example.org/v1.2', false],
  ])('are one page however an accent is composed, with and without an extension: %s, %s: %s', (page, url, expected) => {
    expect(judge(url, { pages: { login: page } })).toBe(
      expected ? 'deny page_type_db/login' : 'allow default/classified_read',
    );
  });

  it.each([
    ['https://example.org/in/index.php', 'https://example.org/in/', true],
    ['https://example.org/in/index.php', 'https://example.org/in', true],
    ['https://example.org/in/index.php', 'https://example.org/in/?x=1', true],
    ['https://example.org/in/index.php', 'https://example.org/in/index.php/x', true],
    ['https://example.org/in/index.php', 'https://example.org/in/other', false],
    ['https://example.org/in/index.php', 'https://example.org/in/index.css', false],
    ['https://example.org/in/Default.aspx', 'https://example.org/in', true],
    ['https://example.org/in/default', 'https://example.org/in', false],
    ['https://example.org/in', 'https://example.org/in/index.html', true],
    ['https://example.org/', 'https://example.org/index.html', true],
    ['https://example.org/index.php', 'https://example.org/', true],
    ['https://example.org/index.php', 'https://example.org/index.php?x=1', true],
    ['https://example.org/index.php?p2=enter', 'https://example.org/?p2=enter', true],
    ['https://example.org/in.', 'https://example.org/in', true],
    ['https://example.org/a./in', 'https://example.org/a/in', true],
  ])('a folder and its index are one page: %s, %s: %s', (page, url, expected) => {
    expect(judge(url, { pages: { login: page } })).toBe(
      expected ? 'deny page_type_db/login' : 'allow default/classified_read',
    );
  });

  it.each([
    ['https://example.org/', 'https://example.org/index.html?x=1'],
    ['https://example.org/index.php', 'https://example.org/?x=1'],
  ])('at the root and its index are one page, with a parameter perhaps another one: %s, %s', (page, url) => {
    expect(judge(url, { pages: { login: page } })).toBe('flag page_type_db/login');
  });

  it('answer before the pattern rules do', () => {
    expect(judge('https://example.org/account', {})).toBe('deny rules/account');
    expect(judge('https://example.org/account', { pages: { help: 'https://example.org/account' } })).toBe(
      'allow page_type_db/help',
    );
  });

  it('deny before they allow; then the longest path, then vocabulary order decide', () => {
    const both = { help: 'https://example.org/a/b', signup: 'https://example.org/a' };
    expect(judge('https://example.org/a/b', { pages: both })).toBe('deny page_type_db/signup');
    const nested = { signup: 'https://example.org/a', cart: 'https://example.org/a/b' };
    expect(judge('https://example.org/a/b/c', { pages: nested })).toBe('deny page_type_db/cart');
    const same = { cart: 'https://example.org/a', signup: 'https://example.org/a' };
    expect(judge('https://example.org/a', { pages: same })).toBe('deny page_type_db/signup');
    const flagged = { help: 'https://example.org/a/b', download: 'https://example.org/a' };
    expect(judge('https://example.org/a/b', { pages: flagged })).toBe('flag page_type_db/download');
    const denied = { download: 'https://example.org/a/b', signup: 'https://example.org/a' };
    expect(judge('https://example.org/a/b', { pages: denied })).toBe('deny page_type_db/signup');
    // The result depends neither on the order of the record, nor on pages in it that the request is not on.
    for (const pages of [both, nested, same, flagged, denied]) {
      const turned = Object.fromEntries(Object.entries(pages).reverse());
      const url = Object.values(pages)[0]!;
      expect(judge(`${url}/`, { pages: turned })).toBe(judge(`${url}/`, { pages }));
      expect(judge(`${url}/`, { pages: turned }, 'POST')).toBe(judge(`${url}/`, { pages }, 'POST'));
    }
    expect(judge('https://example.org/a/b', { pages: both }, 'POST')).toBe('deny page_type_db/signup');
  });

  it('of other hosts, or that are no URLs, say nothing', () => {
    for (const page of ['https://xn--mnchen-3ya.de/zso-page', 'https://[/zso-page', 'zso-page', ''])
      expect(judge('https://example.org/zso-page', { pages: { login: page } })).toBe('allow default/classified_read');
  });

  it('of a type to flag give a floor', () => {
    const pages = { download: 'https://example.org/get-it' };
    expect(judge('https://example.org/get-it', { pages })).toBe('flag page_type_db/download');
    expect(judge('https://example.org/get-it/upload-file', { pages })).toBe('deny rules/upload');
    expect(judge('https://example.org/get-it', { found: false, pages })).toBe('flag page_type_db/download');
    // The answer names the first layer that flags.
    expect(judge('https://example.org/get-it?next=https://evil.org/', { pages })).toBe('flag page_type_db/download');
    expect(judge('https://pastebin.com/get-it', { pages: { download: 'https://pastebin.com/get-it' } })).toBe(
      'flag high_value_hosts/pastebin.com',
    );
  });

  it('know every type of the vocabulary, with its verdict', () => {
    const types = new Map(shipped.document.page_types.map((entry) => [entry.type, entry.verdict]));
    expect([...types]).toEqual(pageTypes('full').map((type) => [type.name, type.verdict]));
  });

  it('of a type that the policy does not know are passed over', () => {
    expect(judge('https://example.org/x', { pages: { unheard_of: 'https://example.org/x' } })).toBe(
      'allow default/classified_read',
    );
  });

  it('are read from any iterable', () => {
    function* pages() {
      yield { type: 'login', url: 'https://example.org/enter' };
    }
    const known = { found: true, parentFound: false, pages, filteringCategories: () => [] };
    expect(evaluate(shipped, request('https://example.org/enter'), known).id).toBe('login');
  });
});
