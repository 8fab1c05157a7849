/**
 * The request as defined by spec sections 2.1, 2.2 and 4 and the tables "Request", "Normalization" and "Response" of the contract. Each row of the
 * documents is a row here, sent over real HTTP to a real server. The expected values are copied from the documents, not taken from the server's own
 * tables.
 */
import { afterAll, beforeAll, describe, it } from 'vitest';
import { type Deployment, deploy } from './deployment.ts';
import { bad, found, holdRow, type Row, unknown } from './table.ts';

const PRICING = found('stripe.com', 'allow page_type_db/pricing');
const LOGIN = found('stripe.com', 'deny page_type_db/login');
const HOME = found('stripe.com', 'allow default/classified_read');
const label = (length: number): string => 'a'.repeat(length);
/** A name of `length` octets with labels of at most 63 octets. */
const name = (length: number): string => `${`${label(63)}.`.repeat(3)}${label(length - 196)}.com`;
const repeat = (text: string, bytes: number): string => text.repeat(Math.ceil(bytes / text.length)).slice(0, bytes);

const SPEC_2_1: readonly Row[] = [
  { name: 'spec 2.1 domain: scheme removed', query: 'url=https://stripe.com', answer: HOME },
  { name: 'spec 2.1 domain: path removed', query: 'url=https://stripe.com/pricing', answer: PRICING },
  { name: 'spec 2.1 domain: port removed', query: 'url=https://stripe.com:443/pricing', answer: PRICING },
  { name: 'spec 2.1 domain: leading www. removed', query: 'url=www.stripe.com', answer: HOME },
  { name: 'spec 2.1 found: true', query: 'url=stripe.com', answer: HOME },
  {
    name: 'spec 2.1 found: false',
    query: 'url=fixture-unknown.com',
    answer: unknown('fixture-unknown.com', 'flag default/unclassified_read'),
  },
  {
    name: 'spec 2.1 language: present on found domains',
    query: 'url=under_score.fixture-one.com',
    answer: found('under_score.fixture-one.com', 'allow default/classified_read'),
  },
  {
    name: 'spec 2.1 page_types: one URL for each confirmed type, no key for another',
    query: 'url=github.com',
    answer: found('github.com', 'allow default/classified_read'),
  },
  {
    name: 'spec 2.1 page_types: {} when found is false',
    query: 'url=fixture-unknown.org',
    answer: unknown('fixture-unknown.org', 'flag default/unclassified_read'),
  },
  {
    name: 'spec 2.1 quota_remaining: on every metered response, found or not',
    query: 'url=fixture-unknown.com',
    answer: unknown('fixture-unknown.com', 'flag default/unclassified_read'),
  },
  { name: 'spec 2.1 verdict: allow', query: 'url=https://stripe.com/pricing', answer: PRICING },
  { name: 'spec 2.1 verdict: deny', query: 'url=https://stripe.com/login', answer: LOGIN },
  {
    name: 'spec 2.1 verdict: flag',
    query: 'url=https://fixture-unknown.com/',
    answer: unknown('fixture-unknown.com', 'flag default/unclassified_read'),
  },
  { name: 'spec 2.1 matched: the layer that decided', query: 'url=https://stripe.com/login', answer: LOGIN },
  { name: 'spec 2.1 iab_category: at no extra cost', query: 'url=stripe.com', answer: HOME },
  {
    name: 'spec 2.1 filtering_categories: at no extra cost',
    query: 'url=github.com',
    answer: found('github.com', 'allow default/classified_read'),
  },
  { name: 'spec 2.1 open_page_rank: with a fraction', query: 'url=stripe.com', answer: HOME },
  { name: 'spec 2.1 global_rank: a number', query: 'url=stripe.com', answer: HOME },
  {
    name: 'spec 2.1 open_page_rank: 10, the end of the scale',
    query: 'url=github.com',
    answer: found('github.com', 'allow default/classified_read'),
  },
  {
    name: 'spec 2.1 open_page_rank: 0, the beginning of the scale',
    query: 'url=fixture-phish.com',
    answer: found('fixture-phish.com', 'deny rules/category_threat'),
  },
  {
    name: 'spec 2.1 global_rank: absent where not available',
    query: 'url=xn--mnchen-3ya.de',
    answer: found('xn--mnchen-3ya.de', 'allow default/classified_read'),
  },
  {
    name: 'spec 2.1 global_rank: its largest value',
    query: 'url=fixture-dash.com',
    answer: found('fixture-dash.com', 'allow default/classified_read'),
  },
];

const SPEC_2_2: readonly Row[] = [
  { name: 'spec 2.2 layer: page_type_db', query: 'url=https://stripe.com/login', answer: LOGIN },
  { name: 'spec 2.2 id: login when the layer is page_type_db', query: 'url=https://stripe.com/login', answer: LOGIN },
  { name: 'spec 2.2 note: for people', query: 'url=https://stripe.com/login', answer: LOGIN },
  {
    name: 'spec 2.2 layer: high_value_hosts',
    query: 'url=https://webhook.site/x',
    answer: unknown('webhook.site', 'deny high_value_hosts/webhook.site'),
  },
  {
    name: 'spec 2.2 layer: rules',
    query: 'url=https://github.com/login',
    answer: found('github.com', 'deny rules/login'),
  },
  { name: 'spec 2.2 layer: default', query: 'url=https://stripe.com/', answer: HOME },
];

const SPEC_2_3: readonly Row[] = [
  {
    name: 'spec 2.3: all 28 page types, contract response: keys in vocabulary order',
    query: 'url=fixture-all.com',
    answer: found('fixture-all.com', 'allow default/classified_read'),
  },
  {
    name: 'spec 2.3: a URL may use http',
    query: 'url=https://fixture-dash.com/terms-of-nothing',
    answer: found('fixture-dash.com', 'allow default/classified_read'),
  },
];

const SPEC_4: readonly Row[] = [
  { name: 'spec 4 domain/url: a bare domain', query: 'url=stripe.com', answer: HOME },
  { name: 'spec 4 domain/url: a full URL', query: 'url=https://stripe.com/pricing', answer: PRICING },
  { name: 'spec 4 domain/url: missing', query: '', answer: bad('missing_input') },
  { name: 'spec 4 domain/url: missing beside a method', query: 'method=GET', answer: bad('missing_input') },
  { name: 'spec 4 domain/url: cannot be parsed', query: 'url=https://', answer: bad('bad_input', 'unparsable') },
  {
    name: 'spec 4 url: for the verdict nothing is removed',
    query: `url=${encodeURIComponent('https://stripe.com/wiki/Foo?action=edit')}`,
    answer: found('stripe.com', 'deny rules/wiki_edit'),
  },
  { name: 'spec 4 method: GET is the default', query: 'url=https://stripe.com/pricing&method=GET', answer: PRICING },
  {
    name: 'spec 4 method: used for the verdict',
    query: 'url=https://stripe.com/pricing&method=POST',
    answer: found('stripe.com', 'deny default/unclassified_write'),
  },
  {
    name: 'spec 4 api_key, spec 4 X-API-Key: either, each row here asks both',
    query: 'url=https://stripe.com/login',
    answer: LOGIN,
  },
  { name: 'spec 4 rule 1: domain and url are synonyms', query: 'domain=https://stripe.com/login', answer: LOGIN },
  {
    name: 'spec 4 rule 2: a value with its own query, percent-encoded',
    query: 'url=https%3A%2F%2Fstripe.com%2Fpricing%3Fplan%3Da%26seats%3D2%23top',
    answer: PRICING,
  },
  {
    name: 'spec 4 rule 2: a value with its own query that mixes with that of the request',
    query: 'url=https://stripe.com/pricing?plan=a&seats=2',
    answer: bad('unknown_parameter'),
  },
  { name: 'spec 4 rule 3: the bare domain', query: 'url=stripe.com', answer: HOME },
  { name: 'spec 4 rule 3: a full URL on it', query: 'url=https://www.stripe.com:443/?a', answer: HOME },
  { name: 'spec 4 behavior 1: found', query: 'url=stripe.com', answer: HOME },
  {
    name: 'spec 4 behavior 2: not found is 200, {} and one lookup',
    query: 'url=fixture-unknown.net',
    answer: unknown('fixture-unknown.net', 'flag default/unclassified_read'),
  },
  { name: 'spec 4 behavior 3: the normalized domain', query: 'url=HTTPS://WWW.Stripe.COM./pricing', answer: PRICING },
  { name: 'spec 4 behavior 4: a deny from the page-type layer', query: 'url=https://stripe.com/login', answer: LOGIN },
  {
    name: 'spec 4 behavior 5: another method, decided by the contract',
    query: 'url=https://stripe.com/&method=PUT',
    answer: found('stripe.com', 'deny default/unclassified_write'),
  },
  {
    name: 'spec 4 behavior 6: precedence of the layers, decided by the contract: hosts before page types before the default',
    query: 'url=https://webhook.site/login',
    answer: unknown('webhook.site', 'deny high_value_hosts/webhook.site'),
  },
  {
    name: 'spec 4 behavior 7: flag, decided by the contract',
    query: 'url=https://sub.stripe.com/',
    answer: unknown('sub.stripe.com', 'flag default/unclassified_subdomain'),
  },
];

const REQUEST: readonly Row[] = [
  {
    name: 'contract request: domain and url both sent, url is evaluated',
    query: 'domain=stripe.com&url=https://stripe.com/login',
    answer: LOGIN,
  },
  {
    name: 'contract request: domain and url both sent, in the other order and another spelling',
    query: 'url=https://stripe.com/login&domain=http://WWW.stripe.com.:80/other',
    answer: LOGIN,
  },
  {
    name: 'contract request: domain and url name different domains',
    query: 'domain=github.com&url=https://stripe.com/login',
    answer: bad('conflicting_input'),
  },
  {
    name: 'contract request: domain cannot be parsed beside a url that can',
    query: 'domain=https://&url=https://stripe.com/',
    answer: bad('bad_input', 'unparsable'),
  },
  {
    name: 'contract request: a subdomain is a different domain',
    query: 'domain=stripe.com&url=https://docs.stripe.com/',
    answer: bad('conflicting_input'),
  },
  {
    name: 'contract request: a parameter sent twice (url)',
    query: 'url=stripe.com&url=stripe.com',
    answer: bad('repeated_parameter'),
  },
  {
    name: 'contract request: a parameter sent twice (domain)',
    query: 'domain=stripe.com&domain=github.com',
    answer: bad('repeated_parameter'),
  },
  {
    name: 'contract request: a parameter sent twice (method)',
    query: 'url=stripe.com&method=GET&method=GET',
    answer: bad('repeated_parameter'),
  },
  {
    name: 'contract request: a parameter sent twice, once with its name encoded',
    query: 'url=stripe.com&%75rl=github.com',
    answer: bad('repeated_parameter'),
  },
  {
    name: 'contract request: a query parameter nobody knows',
    query: 'url=stripe.com&foo=1',
    answer: bad('unknown_parameter'),
  },
  {
    name: 'contract request: a query parameter nobody knows, first',
    query: 'callback=x&url=stripe.com',
    answer: bad('unknown_parameter'),
  },
  {
    name: 'contract request: names of parameters are exact',
    query: 'URL=stripe.com',
    answer: bad('unknown_parameter'),
  },
  {
    name: 'contract request: a name like one of an object',
    query: 'url=stripe.com&__proto__=1',
    answer: bad('unknown_parameter'),
  },
  {
    name: 'contract request, blanks around the value: trimmed from url',
    query: 'url=+%09%0D%0A%0Cstripe.com%20%0A',
    answer: HOME,
  },
  {
    name: 'contract request, blanks around the value: trimmed from domain, before a scheme too',
    query: 'domain=%20https://stripe.com/pricing+',
    answer: PRICING,
  },
  {
    name: 'contract request, blanks around the value: trimmed before the length limit',
    query: `url=${'+'.repeat(9_000)}stripe.com${'+'.repeat(9_000)}`,
    answer: HOME,
  },
  {
    name: 'contract request, blanks around the value: those inside are guarded',
    query: 'url=https://stripe.com/pri%0Acing',
    answer: found('stripe.com', 'deny rules/control_characters'),
  },
  {
    name: 'contract request, blanks around the value: other controls are guarded',
    query: 'url=https://stripe.com/pricing%01+',
    answer: found('stripe.com', 'deny rules/control_characters'),
  },
  { name: 'contract request, decoding: + is a space', query: 'url=https://stripe.com/a+b', answer: HOME },
  {
    name: 'contract request, decoding: + is a space, which no host has',
    query: 'url=str+ipe.com',
    answer: bad('bad_input', 'unparsable'),
  },
  {
    name: 'contract request, decoding: percent-encoded letters',
    query: 'url=%73%74%72%69%70%65%2e%63%6F%6d',
    answer: HOME,
  },
  { name: 'contract request, decoding: the name of a parameter', query: '%75%72%6C=stripe.com', answer: HOME },
  { name: 'contract request, decoding: malformed percent', query: 'url=stripe.com/%zz', answer: bad('bad_encoding') },
  {
    name: 'contract request, decoding: a percent sign at the end',
    query: 'url=stripe.com/%',
    answer: bad('bad_encoding'),
  },
  {
    name: 'contract request, decoding: half an escape at the end',
    query: 'url=stripe.com/%4',
    answer: bad('bad_encoding'),
  },
  {
    name: 'contract request, decoding: malformed UTF-8, a lone byte',
    query: 'url=stripe.com/%ff',
    answer: bad('bad_encoding'),
  },
  {
    name: 'contract request, decoding: malformed UTF-8, cut off',
    query: 'url=stripe.com/%e2%82',
    answer: bad('bad_encoding'),
  },
  {
    name: 'contract request, decoding: malformed UTF-8, overlong',
    query: 'url=stripe.com%c0%afx',
    answer: bad('bad_encoding'),
  },
  {
    name: 'contract request, decoding: malformed UTF-8, a surrogate',
    query: 'url=stripe.com/%ed%a0%80',
    answer: bad('bad_encoding'),
  },
  {
    name: 'contract request, decoding: malformed UTF-8 in method',
    query: 'url=stripe.com&method=%ff',
    answer: bad('bad_encoding'),
  },
  {
    name: 'contract request, decoding: malformed percent in a name',
    query: 'url=stripe.com&%zz=1',
    answer: bad('bad_encoding'),
  },
  {
    name: 'contract request, longest value: 8,192 bytes',
    query: `url=https://stripe.com/${repeat('path/', 8_192 - 19)}`,
    answer: found('stripe.com', 'deny rules/too_long'),
  },
  {
    name: 'contract request, longest value: 8,193 bytes',
    query: `url=https://stripe.com/${repeat('path/', 8_193 - 19)}`,
    answer: bad('input_too_long'),
  },
  {
    name: 'contract request, size on the wire: 8,192 bytes, every one percent-encoded, arrive',
    query: `url=${[...`https://stripe.com/${repeat('path/', 8_192 - 19)}`].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('')}`,
    answer: found('stripe.com', 'deny rules/too_long'),
  },
  {
    name: 'contract request, longest value: counted in bytes after decoding, not in characters',
    query: `url=https://stripe.com/${'%C3%BC'.repeat(4_087)}`,
    answer: bad('input_too_long'),
  },
  {
    name: 'contract request, longest value: a domain of 253 octets',
    query: `url=${name(253)}`,
    answer: unknown(name(253), 'deny rules/dns_tunnel'),
  },
  {
    name: 'contract request, longest value: a domain of 253 octets and a dot',
    query: `url=${name(253)}.`,
    answer: unknown(name(253), 'deny rules/dns_tunnel'),
  },
  {
    name: 'contract request, longest value: a domain of 254 octets',
    query: `url=${name(254)}`,
    answer: bad('input_too_long'),
  },
  { name: 'contract request, method: missing is GET', query: 'url=https://stripe.com/pricing', answer: PRICING },
  {
    name: 'contract request, method: upper-cased',
    query: 'url=https://stripe.com/pricing&method=get',
    answer: PRICING,
  },
  {
    name: 'contract request, method: HEAD is a read',
    query: 'url=https://stripe.com/pricing&method=HEAD',
    answer: PRICING,
  },
  {
    name: 'contract request, method: in lower case a write is a write',
    query: 'url=https://stripe.com/pricing&method=delete',
    answer: found('stripe.com', 'deny default/unclassified_write'),
  },
  { name: 'contract request, method: not a token (empty)', query: 'url=stripe.com&method=', answer: bad('bad_method') },
  {
    name: 'contract request, method: not a token (a space)',
    query: 'url=stripe.com&method=GET+',
    answer: bad('bad_method'),
  },
  {
    name: 'contract request, method: not a token (a line feed)',
    query: 'url=stripe.com&method=GET%0A',
    answer: bad('bad_method'),
  },
  {
    name: 'contract request, method: not a token (NUL)',
    query: 'url=stripe.com&method=GET%00',
    answer: bad('bad_method'),
  },
  {
    name: 'contract request, method: not a token (letters beyond ASCII)',
    query: 'url=stripe.com&method=G%C3%89T',
    answer: bad('bad_method'),
  },
  {
    name: 'contract request, method: a token that is no registered method gets the verdict deny',
    query: 'url=https://stripe.com/pricing&method=BREW',
    answer: found('stripe.com', 'deny rules/method'),
  },
  {
    name: 'contract request, bare domain or full URL: path of a bare value counts',
    query: 'url=stripe.com/login',
    answer: LOGIN,
  },
  {
    name: 'contract request, bare domain or full URL: query of a bare value counts',
    query: 'url=stripe.com/wiki/Foo%3Faction%3Dedit',
    answer: found('stripe.com', 'deny rules/wiki_edit'),
  },
  {
    name: 'contract request, bare domain or full URL: port of a bare value counts',
    query: 'url=stripe.com:8443/pricing',
    answer: found('stripe.com', 'deny rules/port'),
  },
  {
    name: 'contract request, bare domain or full URL: method of a bare value counts',
    query: 'url=github.com&method=POST',
    answer: found('github.com', 'deny default/unclassified_write'),
  },
  {
    name: 'contract request, bare domain or full URL: @ before the first /',
    query: 'url=user@stripe.com',
    answer: bad('bad_input', 'userinfo'),
  },
  {
    name: 'contract request, bare domain or full URL: @ before the first /, with a password',
    query: 'url=user:secret@stripe.com/',
    answer: bad('bad_input', 'userinfo'),
  },
  {
    name: 'contract request, bare domain or full URL: @ before the first /, where there is none',
    query: 'url=stripe.com%3Fto=a@b',
    answer: bad('bad_input', 'userinfo'),
  },
  {
    name: 'contract request, bare domain or full URL: only scheme:// makes a URL',
    query: 'url=https:stripe.com',
    answer: bad('bad_input', 'unparsable'),
  },
  {
    name: 'contract request, bare domain or full URL: @ behind the first /',
    query: 'url=stripe.com/@someone',
    answer: HOME,
  },
];

const NORMALIZATION: readonly Row[] = [
  { name: 'contract normalization: lower case', query: 'url=STRIPE.com', answer: HOME },
  {
    name: 'contract normalization: UTS-46, the Unicode spelling',
    query: 'url=m%C3%BCnchen.de',
    answer: found('xn--mnchen-3ya.de', 'allow default/classified_read'),
  },
  {
    name: 'contract normalization: UTS-46, the Unicode spelling in upper case and decomposed',
    query: 'url=MU%CC%88NCHEN.de',
    answer: found('xn--mnchen-3ya.de', 'allow default/classified_read'),
  },
  {
    name: 'contract normalization: UTS-46, the punycode spelling',
    query: 'url=https://XN--mnchen-3ya.de/',
    answer: found('xn--mnchen-3ya.de', 'allow default/classified_read'),
  },
  {
    name: 'contract normalization: UTS-46, other dots and full-width letters',
    query: 'url=%EF%BD%93tripe%E3%80%82com',
    answer: HOME,
  },
  { name: 'contract normalization: one trailing dot removed', query: 'url=stripe.com.', answer: HOME },
  {
    name: 'contract normalization: two trailing dots',
    query: 'url=stripe.com..',
    answer: bad('bad_input', 'empty_label'),
  },
  { name: 'contract normalization: a leading dot', query: 'url=.stripe.com', answer: bad('bad_input', 'empty_label') },
  {
    name: 'contract normalization: an empty label',
    query: 'url=www..stripe.com',
    answer: bad('bad_input', 'empty_label'),
  },
  { name: 'contract normalization: www. removed repeatedly', query: 'url=www.www.WWW.stripe.com', answer: HOME },
  {
    name: 'contract normalization: www. stays where a public suffix would remain (com)',
    query: 'url=www.www.com',
    answer: found('www.com', 'allow default/classified_read'),
  },
  {
    name: 'contract normalization: www. stays where a public suffix would remain (co.uk)',
    query: 'url=www.co.uk',
    answer: unknown('www.co.uk', 'flag default/unclassified_read'),
  },
  {
    name: 'contract normalization: a private suffix is no reason to keep www.',
    query: 'url=www.github.io',
    answer: unknown('github.io', 'flag default/unclassified_read'),
  },
  {
    name: 'contract normalization: www inside stays',
    query: 'url=www2.stripe.com',
    answer: unknown('www2.stripe.com', 'flag default/unclassified_subdomain'),
  },
  {
    name: 'contract normalization: underscores are legal',
    query: 'url=under_score.fixture-one.com',
    answer: found('under_score.fixture-one.com', 'allow default/classified_read'),
  },
  {
    name: 'contract normalization: a label of 63',
    query: `url=${label(63)}.com`,
    answer: unknown(`${label(63)}.com`, 'flag default/unclassified_read'),
  },
  {
    name: 'contract normalization: a label of 64',
    query: `url=${label(64)}.com`,
    answer: bad('bad_input', 'label_too_long'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: empty',
    query: 'url=',
    answer: bad('bad_input', 'empty'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: a blank',
    query: 'url=%20',
    answer: bad('bad_input', 'empty'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: a single label',
    query: 'url=localhost',
    answer: bad('bad_input', 'single_label'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: a single label with a dot',
    query: 'url=com.',
    answer: bad('bad_input', 'single_label'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: a single label with a port',
    query: 'url=localhost:443',
    answer: bad('bad_input', 'single_label'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: an IPv4 literal',
    query: 'url=93.184.216.34',
    answer: bad('bad_input', 'ip_address'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: an IPv4 literal as one number',
    query: 'url=2130706433',
    answer: bad('bad_input', 'ip_address'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: an IPv4 literal in hexadecimal',
    query: 'url=0x7f.0.0.1',
    answer: bad('bad_input', 'ip_address'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: an IPv6 literal',
    query: 'url=%5B::1%5D',
    answer: bad('bad_input', 'ip_address'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: an IPv6 literal without brackets',
    query: 'url=::1',
    answer: bad('bad_input', 'unparsable'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: a port out of range',
    query: 'url=stripe.com:65536',
    answer: bad('bad_input', 'unparsable'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: an invalid port',
    query: 'url=stripe.com:http',
    answer: bad('bad_input', 'unparsable'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: a forbidden character',
    query: 'url=str%5Eipe.com',
    answer: bad('bad_input', 'unparsable'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: NUL in the host',
    query: 'url=stripe.com%00.evil.com',
    answer: bad('bad_input', 'unparsable'),
  },
  {
    name: 'contract normalization: IPv4/IPv6 literal or single label, empty, unparsable: a single label with a query that has a slash',
    query: 'url=localhost%3Fx=/',
    answer: bad('bad_input', 'single_label'),
  },
  {
    name: 'contract normalization: what WHATWG takes is a host: a hyphen at the edge',
    query: 'url=-stripe.com',
    answer: unknown('-stripe.com', 'flag default/unclassified_read'),
  },
  {
    name: 'contract normalization: what WHATWG takes is a host: a hyphen at the edge of a registrable domain',
    query: 'url=https://foo-.blogspot.com/',
    answer: unknown('foo-.blogspot.com', 'flag default/unclassified_read'),
  },
  {
    name: 'contract normalization: what WHATWG takes is a host: odd ASCII, leading www. removed',
    query: 'url=https://www.a,b.example.com./',
    answer: unknown('a,b.example.com', 'flag default/unclassified_read'),
  },
  {
    name: 'contract normalization: what WHATWG takes is a host: a quotation mark, which JSON escapes',
    query: 'url=https://a%22b.example.com/',
    answer: unknown('a\\"b.example.com', 'flag default/unclassified_read'),
  },
  {
    name: 'contract normalization: what WHATWG takes is a host: a single label of odd ASCII with a scheme',
    query: 'url=https://$/',
    answer: unknown('$', 'deny rules/special_name'),
  },
  {
    name: 'contract normalization: what WHATWG takes is a host: a single label of odd ASCII without a scheme',
    query: 'url=$',
    answer: bad('bad_input', 'single_label'),
  },
  {
    name: 'contract normalization: the same with a scheme or a path: an IPv4 literal with a scheme',
    query: 'url=http://93.184.216.34',
    answer: unknown('93.184.216.34', 'deny rules/public_address'),
  },
  {
    name: 'contract normalization: the same with a scheme or a path: an IPv4 literal with a path',
    query: 'url=10.1.2.3/admin',
    answer: unknown('10.1.2.3', 'deny rules/private_network'),
  },
  {
    name: 'contract normalization: the same with a scheme or a path: an IPv4 literal in hexadecimal with a scheme, its canonical host',
    query: 'url=http://0x7f.1/',
    answer: unknown('127.0.0.1', 'deny rules/obfuscated_address'),
  },
  {
    name: 'contract normalization: the same with a scheme or a path: an IPv6 literal with a scheme',
    query: 'url=http://%5B0:0::1%5D/',
    answer: unknown('[::1]', 'deny rules/loopback'),
  },
  {
    name: 'contract normalization: the same with a scheme or a path: a single label with a scheme',
    query: 'url=https://intranet/',
    answer: unknown('intranet', 'deny rules/special_name'),
  },
  {
    name: 'contract normalization: the same with a scheme or a path: a single label with a path',
    query: 'url=intranet/x',
    answer: unknown('intranet', 'deny rules/special_name'),
  },
  {
    name: 'contract normalization: another scheme (ftp)',
    query: 'url=ftp://stripe.com/pricing',
    answer: found('stripe.com', 'deny rules/scheme'),
  },
  {
    name: 'contract normalization: another scheme (file with a host)',
    query: 'url=file://stripe.com/etc/passwd',
    answer: found('stripe.com', 'deny rules/scheme'),
  },
  {
    name: 'contract normalization: another scheme without a host',
    query: 'url=file:///etc/passwd',
    answer: bad('bad_input', 'unparsable'),
  },
  {
    name: 'contract normalization: another scheme that no browser knows',
    query: 'url=gopher://Fixture-Unknown.com/x',
    answer: unknown('fixture-unknown.com', 'deny rules/scheme'),
  },
  {
    name: 'contract normalization: another scheme, its host does not parse',
    query: 'url=ftp://a^b/',
    answer: bad('bad_input', 'unparsable'),
  },
  {
    name: 'contract normalization: no scheme before ://',
    query: 'url=://stripe.com',
    answer: bad('bad_input', 'unparsable'),
  },
  {
    name: 'contract normalization: javascript: is no host',
    query: 'url=javascript:alert(1)',
    answer: bad('bad_input', 'unparsable'),
  },
  {
    name: 'contract normalization: a URL with userinfo',
    query: 'url=https://user:secret@stripe.com/pricing',
    answer: found('stripe.com', 'deny rules/userinfo'),
  },
  {
    name: 'contract normalization: subdomain of a classified domain, the exact host is the key',
    query: 'url=docs.github.com',
    answer: unknown('docs.github.com', 'flag default/unclassified_subdomain'),
  },
  {
    name: 'contract normalization: key of a key: the punycode spelling',
    query: 'url=xn--mnchen-3ya.de',
    answer: found('xn--mnchen-3ya.de', 'allow default/classified_read'),
  },
  {
    name: 'contract normalization: NUL in the path',
    query: 'url=https://stripe.com/pricing%00',
    answer: found('stripe.com', 'deny rules/control_characters'),
  },
  {
    name: 'contract normalization: a line feed in the path',
    query: 'url=https://stripe.com/pric%0Aing',
    answer: found('stripe.com', 'deny rules/control_characters'),
  },
];

const RESPONSE: readonly Row[] = [
  {
    name: 'contract response: always present: six fields, not found',
    query: 'url=fixture-unknown.com',
    answer: unknown('fixture-unknown.com', 'flag default/unclassified_read'),
  },
  { name: 'contract response: present on found domains: every field', query: 'url=stripe.com', answer: HOME },
  {
    name: 'contract response: a fact that is not known is absent',
    query: 'url=fixture-bare.com',
    answer: found('fixture-bare.com', 'allow default/classified_read'),
  },
  { name: 'contract response: key order is that of the spec', query: 'url=stripe.com', answer: HOME },
  { name: 'contract response: iab_category is the full path, a string', query: 'url=stripe.com', answer: HOME },
  {
    name: 'contract response: filtering_categories is an array of strings',
    query: 'url=github.com',
    answer: found('github.com', 'allow default/classified_read'),
  },
  {
    name: 'contract response: global_rank is an integer from 1',
    query: 'url=github.com',
    answer: found('github.com', 'allow default/classified_read'),
  },
  {
    name: 'contract response: vocabulary order',
    query: 'url=https://fixture-all.com/',
    answer: found('fixture-all.com', 'allow default/classified_read'),
  },
  {
    name: 'contract response: the same input on two plans: the same bytes but for quota_remaining',
    query: 'url=https://stripe.com/login',
    answer: LOGIN,
  },
];

describe('the request and its response', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await deploy();
  });
  afterAll(() => deployment.stop());

  describe.each([
    ['spec 2.1, the lookup record', SPEC_2_1],
    ['spec 2.2, the matched object', SPEC_2_2],
    ['spec 2.3, the page types', SPEC_2_3],
    ['spec 4, the endpoint', SPEC_4],
    ['contract, request', REQUEST],
    ['contract, normalization', NORMALIZATION],
    ['contract, response', RESPONSE],
  ] as const)('%s', (_title, rows) => {
    it.each(rows)('$name', async (row) => {
      await holdRow(deployment, row);
    });
  });
});
