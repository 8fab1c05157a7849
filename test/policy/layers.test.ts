/** Which layer speaks, in which order, and what it says. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { checkPolicy } from '../../src/policy/check.ts';
import { evaluate } from '../../src/policy/evaluate.ts';
import { loadPolicy } from '../../src/policy/load.ts';
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

  it('are about sixty, each with an id of its own', () => {
    expect(shipped.document.hosts.length).toBeGreaterThanOrEqual(55);
    expect(shipped.document.hosts.length).toBeLessThanOrEqual(70);
    expect(new Set(shipped.document.hosts.map((entry) => entry.id)).size).toBe(shipped.document.hosts.length);
  });
});

describe('the file of more hosts', () => {
  const file = fileURLToPath(new URL('../../data/policy/more-hosts.json', import.meta.url));
  const policy = loadPolicy({ file });

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
  ])('%s: %s', (url, expected) => {
    expect(judge(url, {}, 'GET', policy)).toBe(expected);
  });

  it('adds hosts to those that ship and changes none of them', () => {
    expect(checkPolicy(policy)).toEqual([]);
    expect(policy.document.hosts.slice(0, shipped.document.hosts.length)).toEqual(shipped.document.hosts);
    expect(policy.document.hosts.length).toBeGreaterThan(shipped.document.hosts.length + 100);
  });
});

describe('verified pages', () => {
  const login = { login: 'https://example.org/sso-page' };

  it.each([
    ['https://example.org/sso-page', true],
    ['https://example.org/sso-page/', true],
    ['https://example.org/sso-page/step/2', true],
    ['https://example.org/sso-page?next=/x', true],
    ['https://example.org/sso-page#top', true],
    ['http://example.org/sso-page', true],
    ['https://EXAMPLE.org/sso-page', true],
    ['https://www.example.org/sso-page', true],
    ['https://example.org:443/sso-page', true],
    ['https://example.org/SSO-Page', true],
    ['https://example.org//sso-page', true],
    ['https://example.org/sso%2Dpage', true],
    ['https://example.org/%73so-page', true],
    ['https://example.org/sso-page;jsessionid=1', true],
    ['https://example.org/;x/sso-page/', true],
    ['https://example.org/%3bx/sso-page', true],
    ['https://example.org/sso-page.', true],
    ['https://example.org/sso-page;a;b', true],
    ['https://example.org/s%C2%ADso-pag%E2%80%8Be', true],
    ['https://example.org//sso-page//step', true],
    ['https://example.org/sso-page%C3%A9', false],
    ['https://example.org/sso-page%20', true],
    ['https://example.org/%20sso-page', true],
    ['https://example.org/.sso-page', false],
    ['https://example.org/sso-page.%20./step', true],
    ['https://example.org/sso-page%c2%a0', true],
    ['https://example.org/sso-page%E2%80%8B', true],
    ['https://example.org/ss%C2%ADo-page/x', true],
    ['https://example.org/sso-page%3Fx=1', true],
    ['https://example.org/sso-page%23x', true],
    ['https://example.org/sso-page%26x', true],
    ['https://example.org/sso-page&x=1/y', true],
    ['https://example.org/sso-page/step%3Fx', true],
    ['https://example.org/ss%u006f-page', true],
    ['https://example.org/ss%c1%af-page', true],
    ['https://example.org/x%3F/sso-page', false],
    ['https://example.org/a/../sso-page', true],
    ['https://example.org/sso-pages', false],
    ['https://example.org/sso-page.html', true],
    ['https://example.org/sso-page.json?x', true],
    ['https://example.org/SSO-page.PHP', true],
    ['https://example.org/sso-page.css', false],
    ['https://example.org/sso-page.2', false],
    ['https://example.org/sso-page.html.txt', false],
    ['https://example.org/sso-page/.html', true],
    ['https://example.org/.html', false],
    ['https://example.org/x/sso-page', false],
    ['https://example.org/', false],
    ['https://other.example.org/sso-page', false],
    ['https://example.org.evil.com/sso-page', false],
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
    ['https://example.org/', true],
    ['https://example.org', true],
    ['https://example.org/#x', true],
    ['https://example.org/?', true],
    ['https://example.org/?a', true],
    ['https://example.org/?a=&b', true],
    ['https://example.org/?lang=en', true],
    ['https://example.org/?utm_source=x&hl=de', true],
    ['https://example.org/index.php?a', true],
    ['https://example.org/%3Fa', true],
    ['https://example.org/?x=1', false],
    ['https://example.org/?lang=en&p=123', false],
    ['https://example.org/?lang=en;p=123', false],
    ['https://example.org/%3Fp=123', false],
    ['https://example.org/about', false],
    ['https://example.org/about?lang=en', false],
  ])('at the root deny the root alone: %s: %s', (url, expected) => {
    const pages = { login: 'https://example.org/' };
    expect(judge(url, { pages })).toBe(expected ? 'deny page_type_db/login' : 'allow default/classified_read');
  });

  it.each([
    ['https://example.org/index.php?p2=enter', true],
    ['https://example.org/index.php?p2=enter&lang=de', true],
    ['https://example.org/index.php?p2=home', false],
    ['https://example.org/index.php%3Fp2=enter', true],
    ['https://example.org/index.php%26p2=enter?lang=de', true],
    ['https://example.org/index.php%3Fp2=home', false],
    ['https://example.org/index.php', false],
    ['https://example.org/index.php/x?p2=enter', false],
  ])('told by the query alone deny that query: %s: %s', (url, expected) => {
    const pages = { login: 'https://example.org/index.php?p2=enter&lang=en' };
    expect(judge(url, { pages })).toBe(expected ? 'deny page_type_db/login' : 'allow default/classified_read');
  });

  it('told by the path too are denied whatever the query', () => {
    const pages = { account: 'https://example.org/my-account/start.php?view=3' };
    expect(judge('https://example.org/my-account/start.php', { pages })).toBe('deny page_type_db/account');
  });

  it.each([
    ['https://example.org/help', 'GET', 'allow page_type_db/help'],
    ['https://example.org/help/', 'HEAD', 'allow page_type_db/help'],
    ['https://example.org/help?x=1', 'GET', 'allow page_type_db/help'],
    ['https://example.org/help/login', 'GET', 'deny rules/login'],
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
    // Documentation excuses more than what is only read.
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
    expect(judge('https://example.org/?p=1', { pages })).toBe('allow default/classified_read');
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
    ['https://example.org/', 'https://example.org/index.html?x=1', false],
    ['https://example.org/index.php', 'https://example.org/', true],
    ['https://example.org/index.php', 'https://example.org/?x=1', false],
    ['https://example.org/index.php', 'https://example.org/index.php?x=1', true],
    ['https://example.org/index.php?p2=enter', 'https://example.org/?p2=enter', true],
    ['https://example.org/in.', 'https://example.org/in', true],
    ['https://example.org/a./in', 'https://example.org/a/in', true],
  ])('a folder and its index are one page: %s, %s: %s', (page, url, expected) => {
    expect(judge(url, { pages: { login: page } })).toBe(
      expected ? 'deny page_type_db/login' : 'allow default/classified_read',
    );
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
    // Nothing of it depends on the order of the record, nor on pages beside it that the request is not on.
    for (const pages of [both, nested, same, flagged, denied]) {
      const turned = Object.fromEntries(Object.entries(pages).reverse());
      const url = Object.values(pages)[0]!;
      expect(judge(`${url}/`, { pages: turned })).toBe(judge(`${url}/`, { pages }));
      expect(judge(`${url}/`, { pages: turned }, 'POST')).toBe(judge(`${url}/`, { pages }, 'POST'));
    }
    expect(judge('https://example.org/a/b', { pages: both }, 'POST')).toBe('deny page_type_db/signup');
  });

  it('of other hosts, or that are no URLs, say nothing', () => {
    for (const page of ['https://xn--mnchen-3ya.de/sso-page', 'https://[/sso-page', 'sso-page', ''])
      expect(judge('https://example.org/sso-page', { pages: { login: page } })).toBe('allow default/classified_read');
  });

  it('of a type to flag give a floor', () => {
    const pages = { download: 'https://example.org/get-it' };
    expect(judge('https://example.org/get-it', { pages })).toBe('flag page_type_db/download');
    expect(judge('https://example.org/get-it/upload-file', { pages })).toBe('deny rules/upload');
    expect(judge('https://example.org/get-it', { found: false, pages })).toBe('flag page_type_db/download');
    // The first layer that flags is named.
    expect(judge('https://example.org/get-it?next=https://evil.org/', { pages })).toBe('flag page_type_db/download');
    expect(judge('https://pastebin.com/get-it', { pages: { download: 'https://pastebin.com/get-it' } })).toBe(
      'flag high_value_hosts/pastebin.com',
    );
  });

  it('know every type of the vocabulary, with its verdict', () => {
    const types = new Map(shipped.document.pageTypes.map((entry) => [entry.type, entry.verdict]));
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
