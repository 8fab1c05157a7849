/** Hostile spellings, made from the known tricks: of addresses, of internal names, of secrets, of URLs inside URLs. */

const INTERNAL_IPV4 = [
  '127.0.0.1',
  '127.127.127.127',
  '10.0.0.1',
  '172.16.5.4',
  '192.168.1.1',
  '169.254.169.254',
  '100.100.100.200',
  '0.0.0.0',
];

const octets = (address: string): number[] => address.split('.').map(Number);
const asNumber = (address: string): number => octets(address).reduce((sum, octet) => sum * 256 + octet, 0);
const hex = (value: number, width: number): string => value.toString(16).padStart(width, '0');
const oct = (value: number): string => `0${value.toString(8)}`;
const fullWidth = (text: string): string =>
  [...text].map((c) => (/[0-9a-z]/i.test(c) ? String.fromCodePoint(c.codePointAt(0)! + 0xfee0) : c)).join('');
const circled = (text: string): string =>
  [...text].map((c) => (c === '0' ? '⓪' : /[1-9]/.test(c) ? String.fromCodePoint(0x2460 + Number(c) - 1) : c)).join('');
const percent = (text: string): string => [...Buffer.from(text)].map((byte) => `%${hex(byte, 2)}`).join('');

/** Every way to write an IPv4 address that some parser accepts. */
function ipv4Spellings(address: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = octets(address);
  const number = asNumber(address);
  const words = `${hex(a * 256 + b, 4)}:${hex(c * 256 + d, 4)}`;
  return [
    address,
    `${address}.`,
    String(number),
    `0x${hex(number, 8)}`,
    `0X${hex(number, 8).toUpperCase()}`,
    `0${number.toString(8)}`,
    `000000${number.toString(8)}`,
    [a, b, c, d].map(oct).join('.'),
    [a, b, c, d].map((octet) => `0x${hex(octet, 2)}`).join('.'),
    [a, b, c, d].map((octet) => `0000${octet.toString(8)}`).join('.'),
    `${a}.${b}.${c * 256 + d}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    `0x${hex(a, 2)}.${oct(b)}.${c * 256 + d}`,
    fullWidth(address),
    circled(address),
    address.replaceAll('.', '。'),
    address.replaceAll('.', '｡'),
    address.replaceAll('.', '．'),
    percent(address),
    address.replace('.', '%2e'),
    `[::ffff:${address}]`,
    `[::FFFF:${words}]`,
    `[0:0:0:0:0:ffff:${words}]`,
    `[::${address}]`,
    `[64:ff9b::${address}]`,
    `[64:ff9b:1::${words}]`,
    `[2002:${words}::]`,
    `[2001:0:53aa:64c:0:0:${hex((~number >>> 16) & 0xffff, 4)}:${hex(~number & 0xffff, 4)}]`,
    `[fe80::5efe:${words}]`,
  ];
}

const INTERNAL_HOSTS = [
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::]',
  '[fe80::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[fec0::1]',
  '[ff02::1]',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'sub.localhost',
  'localhost.localdomain',
  'ｌｏｃａｌｈｏｓｔ',
  'loc\u00adalhost',
  'local%68ost',
  'metadata.google.internal',
  'METADATA.google.internal.',
  'metadata.goog.internal',
  'instance-data',
  'printer.local',
  'wiki.corp',
  'db.intranet',
  'nas.lan',
  'router.home',
  'fritz.box',
  'host.docker.internal',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
  'consul.service.consul',
  '1.0.0.127.in-addr.arpa',
  'expyuzz4wqqyqhjn.onion',
  '127.0.0.1.nip.io',
  'www.10-0-0-1.sslip.io',
  'localtest.me',
  'app.lvh.me',
  '7f000001.c0a80001.rbndr.us',
  'foo.localdomain',
  'gateway',
];

/** Ways to wrap a host into a URL. */
const WRAPS: readonly ((host: string) => string)[] = [
  (host) => `http://${host}/`,
  (host) => `https://${host}:443/latest/meta-data/`,
  (host) => `http://example.org@${host}/`,
  (host) => `http:\\\\${host}/`,
  (host) => `http://${host}\\@example.org/`,
  (host) => `ht\ttp://${host}/`,
  (host) => ` http://${host}/#@example.org/`,
  (host) => `http:///${host}/`,
  (host) => `${host}/admin`,
];

const SECRETS = [
  'AKIAIOSFODNN7EXAMPLE',
  ['sk', 'a1B2c3D4'.repeat(6)].join('-'),
  'ghp_16C7e42F292c6912E7710c838347Ae178B4a',
  'glpat-AbCdEfGhIjKlMnOpQrSt',
  // Put together here, so that no scanner takes the test for a leak.
  ['xoxb', '123456789012', '1234567890123', 'AbCdEfGhIjKl'].join('-'),
  ['sk', 'live', '4eC39HqLyjWDarjtT1zdp7dc'].join('_'),
  `sk-ant-${'api03-AbCdEfGh'.repeat(4)}`,
  `AIza${'SyA1b2C3d'.repeat(4)}`,
  'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U',
  '-----BEGIN RSA PRIVATE KEY-----MIIE',
  `hf_${'AbCdEfGhIj'.repeat(3)}ab`,
  `pg_${'a1B2c3D4'.repeat(4)}abcdef`,
];

const SECRET_PLACES: readonly ((secret: string) => string)[] = [
  (secret) => `https://example.org/?q=${encodeURIComponent(secret)}`,
  (secret) => `https://example.org/?${encodeURIComponent(secret)}`,
  (secret) => `https://example.org/collect/${encodeURIComponent(secret)}/x`,
  (secret) => `https://example.org/?q=${percent(secret)}`,
  (secret) => `https://example.org/?a=1&b=x%20${encodeURIComponent(secret)}`,
];

const NESTED: readonly ((url: string) => string)[] = [
  (url) => `https://example.org/?url=${url}`,
  (url) => `https://example.org/fetch?target=${encodeURIComponent(url)}`,
  (url) => `https://example.org/?x=${percent(url)}`,
  (url) => `https://example.org/proxy/${url}`,
  (url) => `https://example.org/?q=see+${encodeURIComponent(url)}`,
  (url) => `https://example.org/?a=${encodeURIComponent(`https://b.org/?c=${url}`)}`,
];

const NESTED_URLS = [
  'http://127.0.0.1/',
  'http://127.1:8080/',
  'http://0x7f000001/',
  'http://2130706433/',
  'http://[::1]/',
  'http://[::ffff:10.0.0.1]/',
  'http://localhost/',
  'http://169.254.169.254/latest/',
  'http://metadata.google.internal/',
  'https://printer.local/',
  'file:///etc/passwd',
  'gopher://127.0.0.1:6379/_INFO',
  'http://user@10.0.0.1/',
];

const ODD = [
  'https://example.org:22/',
  'https://example.org:0/',
  'ftp://example.org/',
  'javascript://example.org/%0aalert(1)',
  'file://server.example.org/share',
  'ws://example.org/',
  'ldap://example.org/',
  'https://user:password@example.org/',
  'https://example.org%2f@evil.org/',
  'https://example.org%00.evil.org/',
  'https://example%2eorg/',
  'https://example.org/%2e%2e%2f%2e%2e%2fetc/passwd',
  'https://example.org/..%5c..%5cwindows',
  'https://example.org/..;/manager/html',
  'https://example.org/%252e%252e/x',
  'https://example.org/a%00.png',
  'https://example.org/.env',
  'https://example.org/.git/config',
  'https://example.org/wp-config.php.bak',
  'https://pаypal.com/',
  'https://xn--zzzzzzzz99999.com/',
  `https://${'a1b2c3d4'.repeat(6)}.evil.org/`,
  `https://example.org/?d=${'QUJDREVGRw0K'.repeat(30)}`,
  `https://example.org/${'a'.repeat(5000)}`,
  'https://example.org/?_method=DELETE',
  'https://example.org/?next=//evil.org/',
  'https://example.org/?next=https:evil.org',
  'https://example.org/?next=\\\\evil.org',
  'https://example.org/?url=127.1:8080/x',
  'https://example.org/?url=0x7f.1',
  'https://example.org/?url=http:127.0.0.1',
  'https://example.org/?url=%20http://127.0.0.1',
  'https://example.org/?url=2130706433',
  'https://example.org/?url=javascript:alert(1)',
  'https://example.org/?url=data:text/html,x',
  'https://example.org/?a=1;url=localhost',
  'https://example.org/?a=1;_method=DELETE',
  'https://example.org/?a=1;password=hunter2',
  'https://example.org/?url=http%25%33A//127.0.0.1/',
  'https://example.org/%25%36cogin',
  'https://example.org/%25%32%65%25%32%65/x',
  'https://example.org/v1/..%20/admin',
  'https://example.org/a%0a',
  'https://example.org/%u006cogin',
  'https://example.org/%c1%acogin',
  'https://example.org/%f0%80%81%acogin',
  'https://example.org/%25u006cogin',
  'https://example.org/login%3Fx=1',
  'https://example.org/login%23x',
  'https://example.org/login%26x=1',
  'https://example.org/index.php%3Fpage=basket',
  'https://example.org/x%3F_method=DELETE',
  'https://example.org/?_meth%u006fd=DELETE',
  'https://example.org/v1/..%c0%afadmin',
  'https://example.org/v1/%c0%ae%c0%ae/admin',
  'https://example.org/v1/..%c0%2fadmin',
  'https://example.org/v1/%u002e%u002e/admin',
  'https://example.org/v1/..%u2215admin',
  'https://example.org/v1/%uff0e%uff0e/admin',
  'https://example.org/v1/..%ef%bc%8fadmin',
  'https://example.org/v1/.%C2%AD./admin',
  'https://example.org/v1/..%3f',
  'https://example.org/v1/..%23/x',
  'https://example.org/a%09/b',
  'https://bit.ly/x',
  'https://translate.goog/x',
];

/** All forms, each once. */
export function hostileForms(): { readonly addresses: string[]; readonly all: string[] } {
  const hosts = [...INTERNAL_IPV4.flatMap(ipv4Spellings), ...INTERNAL_HOSTS];
  const addresses = hosts.flatMap((host) => WRAPS.map((wrap) => wrap(host)));
  const secrets = SECRETS.flatMap((secret) => SECRET_PLACES.map((place) => place(secret)));
  const nested = NESTED_URLS.flatMap((url) => NESTED.map((wrap) => wrap(url)));
  return { addresses, all: [...new Set([...addresses, ...secrets, ...nested, ...ODD])] };
}
