/** Hostile spellings of hosts, generated from known tricks. */

export const INTERNAL_IPV4 = [
  '127.0.0.1',
  '127.127.127.127',
  '10.0.0.1',
  '172.16.5.4',
  '192.168.1.1',
  '169.254.169.254',
  '100.100.100.200',
  '0.0.0.0',
  '172.31.255.254',
  '100.64.0.1',
  '192.0.0.8',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
];

const octets = (address: string): number[] => address.split('.').map(Number);
const asNumber = (address: string): number => octets(address).reduce((sum, octet) => sum * 256 + octet, 0);
const hex = (value: number, width: number): string => value.toString(16).padStart(width, '0');
const oct = (value: number): string => `0${value.toString(8)}`;
const fullWidth = (text: string): string =>
  [...text].map((c) => (/[0-9a-z]/i.test(c) ? String.fromCodePoint(c.codePointAt(0)! + 0xfee0) : c)).join('');
const circled = (text: string): string =>
  [...text].map((c) => (c === '0' ? '⓪' : /[1-9]/.test(c) ? String.fromCodePoint(0x2460 + Number(c) - 1) : c)).join('');
export const percent = (text: string): string => [...Buffer.from(text)].map((byte) => `%${hex(byte, 2)}`).join('');

/** Returns every spelling of an IPv4 address that some parser accepts. */
export function ipv4Spellings(address: string): string[] {
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

export const INTERNAL_HOSTS = [
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

/** Names without a known public suffix, and names that spell an address. Only a record shows that a host is not one of these. */
export const UNKNOWN_HOSTS = [
  'redis.prod',
  'db.redis.prod',
  'x.k8s',
  'kubernetes.default',
  'api.default.k8s',
  'x.nas',
  'gitlab.dc1',
  'vault.infra',
  'jenkins.build1',
  'wiki.corpname',
  'grafana.monitoring',
  'pve.homelab',
  'printer.office1',
  'app.staging',
  ...['10.0.0.1', '127.0.0.1', '192.168.1.1', '169.254.169.254', '172.20.3.4', '100.64.0.1', '0.0.0.0'].flatMap(
    (address) => {
      const dashed = address.replaceAll('.', '-');
      return [
        `${address}.example.net`,
        `${dashed}.example.net`,
        `www.${address}.example.net`,
        `ip-${dashed}.eu.example.net`,
        `app-${dashed}.example.net`,
        `${dashed}-8080.example.net`,
        `8-8-8-8.${dashed}.example.net`,
        `1.${address}.example.net`,
      ];
    },
  ),
];

/** Ways to put a host into a URL. */
export const WRAPS: readonly ((host: string) => string)[] = [
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
