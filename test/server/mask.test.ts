/** Which parts of a path, a host and a scheme may be logged. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maskHost, maskPath, maskScheme, maskWholePath } from '../../src/server/request/mask.ts';

describe('a path', () => {
  it.each(['/', '/login', '/docs/getting-started/', '/blog/how-to-log-in', '/index.html', '/a//b'])(
    'keeps %s',
    (path) => expect(maskPath(path)).toBe(path),
  );

  it.each([
    ['/reset/9f86d081884c7d659a2feaa0c55ad015', '/reset/***'],
    ['/u/f47ac10b-58cc-4372-a567-0e02b2c3d479/edit', '/u/***/edit'],
    ['/verify/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc123def456', '/verify/***'],
    ['/t/ghp_16C7e42F292c6912E7710c838347Ae178B4a', '/t/***'],
    ['/user/alice@example.com', '/user/***'],
    ['/user/alice%40example.com', '/user/***'],
    ['/orders/4111111111111111', '/orders/***'],
    ['/card-4111-1111-1111-1111', '/***'],
    ['/a;jsessionid=1234/b', '/***/b'],
    ['/x/key=value', '/x/***'],
    ['/%61%62%63', '/***'],
    ['/AB1C-9XYZ', '/***'],
    ['/kqzwvtybnmplrxsd', '/***'],
    ['/one-two-three-four-five', '/***'],
    ['/2024/06', '/***/***'],
    ['/\u{ff14}\u{ff11}', '/***'],
    ['/a\nb', '/***'],
  ])('masks %s as %s', (path, expected) => expect(maskPath(path)).toBe(expected));

  it('lets only short words of lower-case letters through, for any path', () => {
    const segment = /^(?:\*\*\*|[a-z]{1,12}(?:-[a-z]{1,12}){0,3}(?:\.[a-z]{2,5})?)?$/;
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('login', 'a-b'))),
        (parts) => {
          const masked = maskPath(`/${parts.join('/')}`);
          const whole = masked.endsWith('…') ? masked.slice(0, masked.lastIndexOf('/')) : masked;
          expect(whole.split('/').every((one) => segment.test(one))).toBe(true);
        },
      ),
    );
  });

  it('has a bounded length', () => {
    expect(maskPath('/ab'.repeat(4_000)).length).toBeLessThan(1_100);
  });

  it('is masked completely if its verdict was about a secret', () => {
    expect(maskWholePath('/reset/plain/')).toBe('/***/***/');
  });
});

describe('a host', () => {
  const KEY = 'pg_0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5pabcdef';

  it.each(['docs.example.com', 'web12.example.co.uk', '7eleven.com', 'localhost', '198.51.100.7', '[2001:db8::1]', ''])(
    'keeps %s',
    (host) => expect(maskHost(host, '', false)).toBe(host),
  );

  it.each([
    [`${KEY}.plain.com`, '***.plain.com'],
    [`${KEY}.com`, '***.com'],
    ['f47ac10b-58cc-4372-a567-0e02b2c3d479.plain.com', '***.plain.com'],
    ['kqzwvtybnmplrxsd.plain.com', '***.plain.com'],
    ['d1tl82f62uycur.cloudfront.net', '***.cloudfront.net'],
    ['secretlabel123', '***'],
    ['0a1b2c3d4e5f.com', '***.com'],
  ])('masks %s as %s', (host, expected) => expect(maskHost(host, '', false)).toBe(expected));

  it('keeps the domain that is in the index, but not the labels before it', () => {
    const known = '52uo5k3t73ypjijevery-long-name.example.com';
    expect(maskHost(known, known, false)).toBe(known);
    expect(maskHost(`${KEY}.${known}`, known, false)).toBe(`***.${known}`);
  });

  it('keeps only the registrable domain if the host carries data', () => {
    expect(maskHost('some.words.plain.co.uk', '', true)).toBe('***.***.plain.co.uk');
  });
});

it('an unusual scheme is masked', () => {
  expect(maskScheme('https')).toBe('https');
  expect(maskScheme('chrome-extension')).toBe('chrome-extension');
  expect(maskScheme('any-name-that-is-longer-than-all')).toBe('***');
});
