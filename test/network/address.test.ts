import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addressFromBytes,
  isInAny,
  isInNetwork,
  isIsatap,
  isLoopback,
  parseAddress,
  parseNetwork,
  withBrackets,
  withoutBrackets,
} from '../../src/network/address.ts';
import { clientAddress } from '../../src/network/client-address.ts';
import { HTTP_TOKEN, hostOf } from '../../src/network/http-syntax.ts';

const hex = (address: Uint8Array | undefined): string | undefined => address && Buffer.from(address).toString('hex');

describe('addresses', () => {
  it.each([
    ['1.2.3.4', '00000000000000000000ffff01020304'],
    ['::', '00000000000000000000000000000000'],
    ['::1', '00000000000000000000000000000001'],
    ['2001:db8::8:800:200c:417a', '20010db80000000000080800200c417a'],
    ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
    ['fe80::', 'fe800000000000000000000000000000'],
    ['::ffff:1.2.3.4', '00000000000000000000ffff01020304'],
    ['64:ff9b::192.0.2.33', '0064ff9b0000000000000000c0000221'],
    ['ABCD::EF', 'abcd00000000000000000000000000ef'],
  ])('%s', (text, expected) => {
    expect(hex(parseAddress(text))).toBe(expected);
  });

  it.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '256.1.1.1',
    'fe80::1%eth0',
    '1::2::3',
    'x',
    '1.2.3.4 ',
    '[::1]',
    'localhost',
  ])('%j is not one', (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  it('are read from the bytes of the transport', () => {
    expect(hex(addressFromBytes(Uint8Array.of(1, 2, 3, 4).buffer))).toBe(hex(parseAddress('1.2.3.4')));
    const mapped = parseAddress('::ffff:1.2.3.4')!;
    expect(hex(addressFromBytes(mapped.slice().buffer))).toBe(hex(parseAddress('1.2.3.4')));
    const used = parseAddress('2001:db8:1:2:3:4:5:6')!;
    expect(addressFromBytes(Uint8Array.of(1, 2, 3, 4).buffer, used)).toBe(used);
    expect(hex(used)).toBe(hex(parseAddress('1.2.3.4')));
    // A closed connection has no address.
    expect(hex(addressFromBytes(new ArrayBuffer(0)))).toBe(hex(parseAddress('0.0.0.0')));
  });
});

describe('an ISATAP address', () => {
  it.each([
    ['2001:db8::5efe:1.2.3.4', true],
    ['2001:db8::200:5efe:1.2.3.4', true],
    ['2001:db8::100:5efe:1.2.3.4', false],
    ['2001:db8::5eff:1.2.3.4', false],
    ['94.254.94.254', false],
    ['::ffff:94.254.1.2', false],
  ])('%s: %s', (text, expected) => {
    expect(isIsatap(parseAddress(text)!)).toBe(expected);
  });
});

describe('the brackets of a host', () => {
  it.each([
    ['[::1]', '::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['example.com', 'example.com'],
    ['192.0.2.1', '192.0.2.1'],
  ])('of %s enclose %s, and can be added again', (host, bare) => {
    expect(withoutBrackets(host)).toBe(bare);
    expect(withBrackets(bare)).toBe(host);
    expect(withBrackets(host)).toBe(host);
  });

  it.each(['[::1', '::1]', '['])('of %s are not a pair and stay', (host) => {
    expect(withoutBrackets(host)).toBe(host);
  });
});

describe('the header Host', () => {
  it.each([
    ['example.com', 'example.com'],
    ['Example.COM:8443', 'example.com'],
    ['example.com:', 'example.com'],
    ['[::1]:9090', '[::1]'],
    ['[::1]', '[::1]'],
    [undefined, ''],
  ])('%s names %s', (header, expected) => {
    expect(hostOf(header)).toBe(expected);
  });
});

describe('an HTTP token', () => {
  it.each(['GET', 'M-SEARCH', 'x'.repeat(65), "!#$%&'*+-.^_`|~"])('%s is one', (text) => {
    expect(HTTP_TOKEN.test(text)).toBe(true);
  });

  it.each(['', 'GE T', 'GET\n', 'G(E)T', 'gét'])('%j is not a token', (text) => {
    expect(HTTP_TOKEN.test(text)).toBe(false);
  });
});

describe('networks', () => {
  it.each([
    ['10.0.0.0/8', '10.255.1.2', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['192.168.1.128/25', '192.168.1.127', false],
    ['192.168.1.128/25', '192.168.1.129', true],
    ['0.0.0.0/0', '8.8.8.8', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['::/0', '2001:db8::1', true],
    ['2001:db8::/33', '2001:db8:8000::', false],
    ['2001:db8::/33', '2001:db8:7fff::', true],
    ['127.0.0.1', '127.0.0.1', true],
    ['127.0.0.1', '127.0.0.2', false],
    ['::1', '::1', true],
  ])('%s has %s: %s', (network, address, expected) => {
    expect(isInNetwork(parseAddress(address)!, parseNetwork(network)!)).toBe(expected);
  });

  it.each(['10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/', '10.0.0/8', '::/129', 'a/8', '', '1.2.3.4/8/8'])(
    '%j is refused',
    (text) => {
      expect(parseNetwork(text)).toBeUndefined();
    },
  );

  it('agrees with arithmetic on IPv4', () => {
    const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));
    fc.assert(
      fc.property(octets, octets, fc.integer({ min: 0, max: 32 }), (a, b, bits) => {
        const value = (o: readonly number[]): bigint => o.reduce((sum, octet) => sum * 256n + BigInt(octet), 0n);
        const expected = value(a) >> BigInt(32 - bits) === value(b) >> BigInt(32 - bits);
        expect(isInNetwork(parseAddress(b.join('.'))!, parseNetwork(`${a.join('.')}/${bits}`)!)).toBe(expected);
      }),
    );
  });
});

describe('the client behind proxies', () => {
  const proxies = ['10.0.0.0/8', 'fd00::/8'].map((text) => parseNetwork(text)!);
  it.each([
    ['a peer that is not a proxy', '1.1.1.1', '2.2.2.2', '1.1.1.1'],
    ['a proxy without the header', '10.0.0.1', '', '10.0.0.1'],
    ['the address that the proxy added', '10.0.0.1', '2.2.2.2', '2.2.2.2'],
    ['the rightmost that is not a proxy', '10.0.0.1', '9.9.9.9, 2.2.2.2, 10.0.0.2', '2.2.2.2'],
    ['IPv6 and ports', 'fd00::1', '[2001:db8::1]:443 , 10.0.0.3:80', '2001:db8::1'],
    ['something unreadable on the way', '10.0.0.1', '2.2.2.2, unknown', '10.0.0.1'],
    ['something unreadable after the client', '10.0.0.1', 'unknown, 2.2.2.2', '2.2.2.2'],
    ['only proxies', '10.0.0.1', '10.0.0.2', '10.0.0.1'],
    ['what only looks like an address', '10.0.0.1', 'x[2001:db8::1]', '10.0.0.1'],
    ['an address with a tail', '10.0.0.1', '[2001:db8::1]x', '10.0.0.1'],
    ['a port with a tail', '10.0.0.1', '2.2.2.2:80x', '10.0.0.1'],
    ['a header of 2,048 characters', '10.0.0.1', '2.2.2.2'.padStart(2_048), '2.2.2.2'],
    ['a header of 2,049 characters', '10.0.0.1', '2.2.2.2'.padStart(2_049), '10.0.0.1'],
    ['a header that is too long', '10.0.0.1', `${'9.9.9.9, '.repeat(400)}2.2.2.2`, '10.0.0.1'],
  ])('%s', (_, peer, forwarded, expected) => {
    expect(hex(clientAddress(parseAddress(peer)!, forwarded, proxies))).toBe(hex(parseAddress(expected)));
  });

  it('is the peer if there are no proxies: the header is ignored', () => {
    expect(hex(clientAddress(parseAddress('10.0.0.1')!, '2.2.2.2', []))).toBe(hex(parseAddress('10.0.0.1')));
    expect(isInAny(parseAddress('10.0.0.1')!, [])).toBe(false);
  });
});

it.each([
  ['127.0.0.1', true],
  ['127.9.9.9', true],
  ['::1', true],
  ['[::1]', true],
  ['localhost', true],
  ['0.0.0.0', false],
  ['::', false],
  ['::2', false],
  ['2001:db8::1', false],
  ['100::1', false],
  ['10.0.0.1', false],
  ['::ffff:127.0.0.1', true],
  ['example.com', false],
])('whether %s is loopback: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});
