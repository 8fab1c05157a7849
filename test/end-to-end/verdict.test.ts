/** The verdict over HTTP: the order of the layers, known answers, one case for each rule, and hosts of each kind. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Deployment, deploy } from './deployment.ts';
import { ask } from './table.ts';

/** A target (preceded by the method if it is not GET) and the expected `verdict` and `matched`. */
type Known = readonly [name: string, target: string, verdict: string];

const KNOWN_ANSWERS: readonly Known[] = [
  ['a verified login page', 'https://stripe.com/login', 'deny page_type_db/login'],
  ['a login path without a verified page', 'https://github.com/login', 'deny rules/login'],
  ['settings/delete-account', 'https://github.com/settings/delete-account', 'deny rules/*'],
  ['a wiki edit', 'https://github.com/wiki/Foo?action=edit', 'deny rules/wiki_edit'],
  ['a verified pricing page, read', 'https://stripe.com/pricing', 'allow page_type_db/pricing'],
  ['a verified pricing page, written', 'POST https://stripe.com/pricing', 'deny */*'],
  ['the metadata service', 'http://169.254.169.254/latest/meta-data/', 'deny high_value_hosts/*'],
  ['a phishing domain, any path', 'https://fixture-phish.com/', 'deny rules/category_threat'],
  ['a phishing domain, another path', 'https://fixture-phish.com/a/b?c=d', 'deny rules/category_threat'],
];

const HOSTS: readonly Known[] = [
  ['layer 1, exact match', 'https://hooks.slack.com/services/x', 'deny high_value_hosts/*'],
  ['layer 1, suffix match', 'https://a.b.ngrok.io/', 'deny high_value_hosts/*'],
  ['layer 1, the host itself of a suffix match', 'https://webhook.site/', 'deny high_value_hosts/*'],
  ['layer 1, a suffix matches on a label boundary', 'https://notngrok.io/', 'flag default/unclassified_read'],
  ['layer 1, an exact match does not reach below', 'https://x.hooks.slack.com/', 'flag default/*'],
  ['layer 1, spelled in upper case and with a dot', 'https://WEBHOOK.site./x', 'deny high_value_hosts/*'],
  ['layer 1, paste, read', 'https://pastebin.com/abc', 'flag high_value_hosts/*'],
  ['layer 1, paste, written', 'POST https://pastebin.com/abc', 'deny */*'],
  ['layer 1, shortener', 'https://bit.ly/abc', 'flag high_value_hosts/*'],
  ['layer 1, a flag is a floor that a later layer raises', 'https://bit.ly/login', 'deny rules/login'],
  ['layer 1, a flag is a floor that a later layer never lowers', 'https://pastebin.com/', 'flag high_value_hosts/*'],
  ['layer 1, identity', 'https://accounts.google.com/', 'deny high_value_hosts/*'],
  ['layer 1, payment', 'https://www.paypal.com/', 'deny high_value_hosts/*'],
  ['layer 1, console', 'https://eu-west-1.console.aws.amazon.com/', 'deny high_value_hosts/*'],
  ['layer 1, rebinding', 'https://10.0.0.1.nip.io/', 'deny high_value_hosts/*'],
  ['layer 1, DNS over HTTPS', 'https://dns.google/dns-query', 'deny high_value_hosts/*'],
  ['layer 1, relay', 'https://example-com.translate.goog/', 'flag high_value_hosts/*'],
];

const KEY = ['AKIA', 'IOSFODNN7EXAMPLE'].join('');
const RULES: readonly Known[] = [
  ['G scheme', 'ws://stripe.com/', 'deny rules/scheme'],
  ['G userinfo', 'https://a@stripe.com/', 'deny rules/userinfo'],
  ['G loopback', 'http://127.0.0.1/', 'deny rules/loopback'],
  ['G private_network', 'http://192.168.1.1/', 'deny rules/private_network'],
  ['G private_network, IPv6', 'http://[fd00::1]/', 'deny rules/private_network'],
  ['G link_local', 'http://169.254.1.1/', 'deny rules/link_local'],
  ['G reserved_address', 'http://100.64.0.1/', 'deny rules/reserved_address'],
  ['G reserved_address, multicast', 'http://224.0.0.1/', 'deny rules/reserved_address'],
  ['G reserved_address, zero', 'http://0.0.0.0/', 'deny rules/reserved_address'],
  ['G obfuscated_address', 'http://0135.0xb8d822/', 'deny rules/obfuscated_address'],
  ['G embedded_address', 'http://[::ffff:93.184.216.34]/', 'deny rules/embedded_address'],
  ['G public_address', 'http://93.184.216.34/', 'deny rules/public_address'],
  ['G special_name, single label', 'http://printer/', 'deny rules/special_name'],
  ['G special_name, .local', 'http://printer.local/', 'deny rules/special_name'],
  ['G special_name, .internal', 'http://db.prod.internal/', 'deny rules/special_name'],
  ['G special_name, .onion', 'http://abcdef.onion/', 'deny rules/special_name'],
  ['G special_name, .home.arpa', 'http://nas.home.arpa/', 'deny rules/special_name'],
  ['G port', 'https://stripe.com:8443/', 'deny rules/port'],
  ['G control_characters', 'https://stripe.com/a\u0001b', 'deny rules/control_characters'],
  ['G encoded_traversal, NUL', 'https://stripe.com/a%00b', 'deny rules/encoded_traversal'],
  ['G host_escape', 'https://stripe%2ecom/', 'deny rules/host_escape'],
  ['G too_long', `https://stripe.com/${'a/'.repeat(2_500)}`, 'deny rules/too_long'],
  ['G method, CONNECT', 'CONNECT https://stripe.com/', 'deny rules/method'],
  ['G method, TRACE', 'TRACE https://stripe.com/', 'deny rules/method'],
  ['G method, unknown', 'FETCH https://stripe.com/', 'deny rules/method'],
  ['G method_override', 'https://stripe.com/x?_method=DELETE', 'deny rules/method_override'],
  [
    'G dns_tunnel',
    'https://ob4wk5lqn7s3xzq2fjvt6adg4h5yrk3mw2xcbn7epd5tuz3qgk4a.fixture-bare.com/',
    'deny rules/dns_tunnel',
  ],
  ['G secret_in_url', `https://stripe.com/x?k=${KEY}`, 'deny rules/secret_in_url'],
  ['G nested_internal', 'https://stripe.com/x?u=http://169.254.169.254/', 'deny rules/nested_internal'],
  ['G idn_invalid', 'https://xn--a.com/', 'deny rules/idn_invalid'],
  ['G idn_confusable', 'https://\u0440aypal-fixture.com/', 'flag rules/idn_confusable'],
  ['G double_encoding', 'https://stripe.com/a%252e%252e/b', 'flag rules/double_encoding'],
  ['P bulk_query', `https://stripe.com/x?q=${'word+'.repeat(250)}`, 'flag rules/bulk_query'],
  ['P open_redirect', 'https://stripe.com/x?next=https://elsewhere-fixture.com/', 'flag rules/open_redirect'],
  ['P login', 'https://fixture-bare.com/login', 'deny rules/login'],
  ['P login, with an extension', 'https://fixture-bare.com/login.php', 'deny rules/login'],
  ['P login, in upper case', 'https://fixture-bare.com/LOGIN', 'deny rules/login'],
  ['P login, once-decoded', 'https://fixture-bare.com/%6cogin', 'deny rules/login'],
  ['P login, French', 'https://fixture-bare.com/connexion', 'deny rules/login'],
  ['P login, German', 'https://fixture-bare.com/anmelden', 'deny rules/login'],
  ['P login, Spanish', 'https://fixture-bare.com/iniciar-sesion', 'deny rules/login'],
  ['P login, Russian', 'https://fixture-bare.com/\u0432\u043e\u0439\u0442\u0438', 'deny rules/login'],
  ['P login, not in reading matter', 'https://fixture-bare.com/blog/login-tips', 'allow default/classified_read'],
  ['P login, not in documentation', 'https://fixture-bare.com/docs/authentication', 'allow default/classified_read'],
  ['P signup', 'https://fixture-bare.com/signup', 'deny rules/signup'],
  ['P password_reset', 'https://fixture-bare.com/forgot-password', 'deny rules/password_reset'],
  ['P checkout', 'https://fixture-bare.com/checkout', 'deny rules/checkout'],
  ['P cart', 'https://fixture-bare.com/cart', 'deny rules/cart'],
  ['P upload', 'https://fixture-bare.com/upload', 'deny rules/upload'],
  ['P account', 'https://fixture-bare.com/account', 'deny rules/account'],
  ['P admin', 'https://fixture-bare.com/wp-admin/', 'deny rules/admin'],
  ['P wiki_edit', 'https://fixture-bare.com/index.php?title=Foo&action=edit', 'deny rules/wiki_edit'],
  ['P subscribe', 'https://fixture-bare.com/unsubscribe', 'deny rules/subscribe'],
  ['P action_get', 'https://fixture-bare.com/logout', 'deny rules/action_get'],
  ['P executable', 'https://fixture-bare.com/setup.exe', 'flag rules/executable'],
  ['P secret_file, .env', 'https://fixture-bare.com/.env', 'deny rules/secret_file'],
  ['P secret_file, .git', 'https://fixture-bare.com/.git/config', 'deny rules/secret_file'],
  [
    'P signed_url',
    `https://fixture-bare.com/f?X-Amz-Signature=${'0a'.repeat(32)}&X-Amz-Expires=60`,
    'flag rules/signed_url',
  ],
];

const PAGES: readonly Known[] = [
  ['layer 4, a deny type and what lies below it', 'https://fixture-all.com/at/login/step/2', 'deny page_type_db/login'],
  [
    'layer 4, a deny type ends at a segment boundary',
    'https://fixture-all.com/at/loginless',
    'allow default/classified_read',
  ],
  [
    'layer 4, a deny type ignores scheme and query',
    'http://fixture-all.com/at/login?next=1',
    'deny page_type_db/login',
  ],
  ['layer 4, a deny type for every method', 'POST https://fixture-all.com/at/cart', 'deny page_type_db/cart'],
  ['layer 4, an allow type matches the exact path', 'https://fixture-all.com/at/pricing', 'allow page_type_db/pricing'],
  [
    'layer 4, an allow type does not match below',
    'https://fixture-all.com/at/pricing/x',
    'allow default/classified_read',
  ],
  ['layer 4, an allow type for reads: HEAD', 'HEAD https://fixture-all.com/at/pricing', 'allow page_type_db/pricing'],
  [
    'layer 4, an allow type is no excuse for a write',
    'PUT https://fixture-all.com/at/pricing',
    'deny default/unclassified_write',
  ],
  ['layer 4, a flag type', 'https://fixture-all.com/at/download', 'flag page_type_db/download'],
  ['layer 4, an extended deny type', 'https://fixture-all.com/at/settings', 'deny page_type_db/settings'],
  ['layer 4, an extended allow type', 'https://fixture-all.com/at/api_reference', 'allow page_type_db/api_reference'],
  ['layer 4, a root whose query tells the page: it', 'https://fixture-dash.com/?to=files', 'deny page_type_db/upload'],
  [
    'layer 4, a root whose query tells the page: another',
    'https://fixture-dash.com/?to=x',
    'allow default/classified_read',
  ],
  ['layer 4, a root whose query tells the page: none', 'https://fixture-dash.com/', 'allow default/classified_read'],
  [
    'layer 4, a page on another host of the domain',
    'https://dashboard.fixture-dash.com/login',
    'deny page_type_db/login',
  ],
  ['layer 4, a root on another host, exact', 'https://docs.stripe.com/', 'allow page_type_db/docs'],
  ['layer 4, a page on another host does not count here', 'https://fixture-dash.com/login', 'deny rules/login'],
  ['layer 4, an encoded path', 'https://fixture-all.com/%61t/%6Cogin', 'deny page_type_db/login'],
  ['layer 4, dot segments', 'https://fixture-all.com/x/../at/./login', 'deny page_type_db/login'],
];

const DEFAULTS: readonly Known[] = [
  ['layer 6, found and read', 'https://fixture-bare.com/anything', 'allow default/classified_read'],
  ['layer 6, found and HEAD', 'HEAD https://fixture-bare.com/anything', 'allow default/classified_read'],
  ['layer 6, not found, parent classified', 'https://sub.fixture-bare.com/', 'flag default/unclassified_subdomain'],
  ['layer 6, not found', 'https://fixture-unknown.com/', 'flag default/unclassified_read'],
  ['layer 6, a private suffix ends the walk', 'https://someone.github.io/', 'flag default/unclassified_read'],
  ['layer 6, write', 'POST https://fixture-bare.com/anything', 'deny default/unclassified_write'],
  ['layer 6, write to an unknown domain', 'PATCH https://fixture-unknown.com/', 'deny default/unclassified_write'],
  ['OPTIONS is flagged', 'OPTIONS https://fixture-bare.com/anything', 'flag rules/method_options'],
];

describe('the verdict over HTTP', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await deploy();
  });
  afterAll(() => deployment.stop());

  describe.each([
    ['known answers', KNOWN_ANSWERS],
    ['high-value hosts', HOSTS],
    ['rules', RULES],
    ['page types', PAGES],
    ['defaults', DEFAULTS],
  ] as const)('%s', (_title, rows) => {
    it.each(rows)('verdict %s', async (_name, text, expected) => {
      const [, method, target] = /^(?:([A-Z]+) )?(.+)$/s.exec(text) as unknown as [string, string | undefined, string];
      const query = `url=${encodeURIComponent(target)}${method === undefined ? '' : `&method=${method}`}`;
      const response = await ask(deployment.port, { query, key: deployment.keys.pro });
      expect(response.status, response.body).toBe(200);
      const { verdict, matched } = JSON.parse(response.body) as { verdict: string; matched: Record<string, string> };
      const got = `${verdict} ${matched['layer']}/${matched['id']}`;
      const pattern = expected.replaceAll(/[.]/g, '\\.').replaceAll('*', '[a-z0-9_.=-]+');
      expect(got).toMatch(new RegExp(`^${pattern}$`));
      expect(matched['note']).toMatch(/^\S.{10,}/);
      if (verdict === 'deny')
        expect(matched['note'], 'a denial says that a retry will not help').toMatch(/retr|polic/i);
    });
  });
});
