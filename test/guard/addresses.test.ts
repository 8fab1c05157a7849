/** Which addresses a guarded connection may use. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { AddressCheck, isPublicAddress } from '../../src/guard/addresses.ts';

const PUBLIC = ['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255']
  .concat(['128.0.0.0', '169.253.255.255', '172.15.255.255', '172.32.0.0', '192.0.1.0', '192.167.255.255'])
  .concat(['198.17.255.255', '198.20.0.0', '223.255.255.255', '168.63.129.15', '168.63.129.17'])
  .concat([
    '2001:200::1',
    '2001:4860:4860::8888',
    '2606:4700:4700::1111',
    '2a00:1450:4001:830::200e',
    '2003::1',
    '2606:4700::5efe:1:2:3:4',
  ]);

const INSIDE: Readonly<Record<string, readonly string[]>> = {
  'this host': ['0.0.0.0', '0.255.255.255', '::'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1'],
  'private networks': [
    '10.0.0.1',
    '10.255.255.255',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    'fc00::1',
    'fd00::1',
  ],
  'link-local': ['169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
  'metadata services': ['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '168.63.129.16', 'fd20:ce::254'],
  'shared, benchmarking, documentation': ['100.64.0.1', '198.18.0.1', '192.0.2.1', '198.51.100.1', '203.0.113.1'],
  'multicast and reserved': ['224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255', 'ff02::1', 'fec0::1'],
  'IPv4-mapped': ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8', '0:0:0:0:0:ffff:169.254.169.254'],
  'IPv4-compatible and translated': ['::127.0.0.1', '::ffff:0:127.0.0.1'],
  NAT64: ['64:ff9b::7f00:1', '64:ff9b::169.254.169.254', '64:ff9b:1::a00:1', '64:ff9b::8.8.8.8'],
  '6to4, Teredo, ISATAP': [
    '2002:7f00:1::',
    '2001::1',
    '2001:0:7f00:1::',
    '2606:4700::5efe:7f00:1',
    '2606:4700::200:5efe:10.0.0.1',
    '2606:4700:1:1:0:5efe::',
  ],
  'IPv6 documentation and others': [
    '2001:db8::1',
    '3fff::1',
    '100::1',
    '5f00::1',
    '4000::1',
    '2001:10::1',
    '2001:20::1',
  ],
  'no addresses': [
    '',
    'localhost',
    '127.1',
    '0x7f.0.0.1',
    '2130706433',
    '010.8.8.8',
    '8.8.8',
    '8.8.8.8.',
    '[::1]',
    '1.1.1.1/32',
  ],
};

describe('an address', () => {
  test.each(PUBLIC)('%s is public', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.each(Object.entries(INSIDE))('is not public: %s', (_name, addresses) => {
    expect(addresses.filter(isPublicAddress)).toEqual([]);
  });

  test('is never public if the shipped policy has a rule for its network', () => {
    const { rules } = JSON.parse(readFileSync('data/policy/rules.json', 'utf8')) as {
      rules: readonly { readonly id: string; readonly ranges?: readonly string[] }[];
    };
    const ranges = rules.filter(({ id }) => id !== 'public_address').flatMap(({ ranges = [] }) => ranges);
    expect(ranges.length).toBeGreaterThan(20);
    expect(ranges.filter((range) => isPublicAddress(range.split('/')[0]!))).toEqual([]);
  });
});

describe('an exception', () => {
  const check = new AddressCheck({ 'intranet.example': ['10.1.2.3', 'FD00:0::7'], '10.9.9.9': '10.9.9.9' });

  test.each(['::1', '[::1]'])('may be for an address as the host: %s', (host) => {
    const loopback = new AddressCheck({ [host]: '::1' });
    expect([loopback.permits('::1', '::1'), loopback.permits('::1', '127.0.0.1')]).toEqual([true, false]);
    for (const odd of ['0:0::1', '[0::1]', '[a.example]']) expect(() => new AddressCheck({ [odd]: '::1' })).toThrow();
  });

  test('is for exactly this host and this address, in any spelling', () => {
    expect(check.permits('intranet.example', '10.1.2.3')).toBe(true);
    expect(check.permits('intranet.example', 'fd00::7')).toBe(true);
    expect(check.permits('10.9.9.9', '10.9.9.9')).toBe(true);
    expect(check.permits('intranet.example', '8.8.8.8')).toBe(true);
  });

  test.each([
    ['intranet.example', '10.1.2.4'],
    ['intranet.example', '127.0.0.1'],
    ['intranet.example', '::ffff:10.1.2.3'],
    ['intranet.example', ''],
    ['other.example', '10.1.2.3'],
    ['a.intranet.example', '10.1.2.3'],
    ['intranet.example.', '10.1.2.3'],
    ['10.9.9.8', '10.9.9.9'],
  ])('does not apply to %s at %s', (host, address) => {
    expect(check.permits(host, address)).toBe(false);
  });
});
