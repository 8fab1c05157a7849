/** What of a path, a host and a scheme may be written into a log. */
import { describe, expect, it } from 'vitest';
import { maskHost, maskPath, maskScheme } from '../../src/server/mask.ts';

describe('a path', () => {
  it.each([
    '/login',
    '/docs/getting-started/part-2',
    '/2024/06/a-long-title-of-an-article-with-many-words',
    '/Special:ChangeCredentials/MediaWiki/Auth/PasswordAuthenticationRequest',
    '/en/HowDoICloseMyUserAccount',
    '/de/datenschutzerkl%C3%A4rung',
    '/rechtsschutzversicherung/datenschutz',
    '/hc/en-us/articles/360008146353-Delete-your-account',
    '/Privacy%20policy/token-economics',
    '/v1.20.3',
    '/%7Ehome/100%25',
  ])('keeps %s', (path) => expect(maskPath(path)).toBe(path));

  it.each([
    ['/reset/9f86d081884c7d659a2feaa0c55ad015', '/reset/***'],
    ['/u/f47ac10b-58cc-4372-a567-0e02b2c3d479/edit', '/u/***/edit'],
    ['/verify/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc123def456', '/verify/***'],
    ['/t/ghp_16C7e42F292c6912E7710c838347Ae178B4a', '/t/***'],
    ['/user/alice@example.com', '/user/***'],
    ['/user/alice%40example.com', '/user/***'],
    ['/orders/4111111111111111', '/orders/***'],
    ['/a;jsessionid=1234/b', '/a;***/b'],
    ['/x/key=value', '/x/***'],
    ['/AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGhIjKlMnOpQr', '/***'],
    ['/%61%62%63%31%32%33%64%65%66%34%35%36', '/***'],
    ['/%2561%2562%2563%2531%2532%2533%2564%2565%2566%2534%2535%2536', '/***'],
    ['/%31%32%33%34%35%36%37%38%39', '/***'],
    ['/1234%205678%209012%203456', '/***'],
    ['/4111.1111.1111.1111', '/***'],
    ['/card-4111-1111-1111-1111', '/***'],
    ['/%EF%BC%94%EF%BC%91%EF%BC%91%EF%BC%91%EF%BC%91%EF%BC%91%EF%BC%91%EF%BC%91', '/***'],
    ['/invite/kQzWvTyBnMpLrXsD', '/invite/***'],
    ['/invite/kqzwvtybnmplrxsd', '/invite/***'],
    ['/redeem/AB1C-9XYZ-77QQ-K2LM', '/redeem/***'],
    ['/deadbeefcafebabefeedface', '/***'],
    ['/x,token-SECRETZ1', '/x,***'],
    ['/x%2Ctoken-SECRETZ1', '/***'],
    ['/x/token-SECRETZ1', '/x/***'],
    ['/x/token-SECRETWORD', '/x/***'],
    ['/invite/AbEfIjOpUvYx', '/invite/***'],
    ['/rechtsschutzversicherungsgesellschaften', '/***'],
    ['/ab_cd_ef_gh_ij_ab_cd_ef_gh_ij_ab_cd_ef_gh', '/***'],
    ['/card-5500-0055-5555-5559', '/***'],
    ['/a%2Falice%40example.com', '/***'],
    ['/bob%253B1234', '/***'],
  ])('masks %s as %s', (path, expected) => expect(maskPath(path)).toBe(expected));

  it.each(
    'token secret password passwd passphrase pwd apikey api-key session sessid jwt bearer credential signature'.split(
      ' ',
    ),
  )('masks what %s announces', (word) => {
    expect(maskPath(`/${word}-hunter2/${word}-policies/x`)).toBe(`/***/${word}-policies/x`);
  });

  it('that is encoded more often than anybody needs is masked', () => {
    let segment = 'abc';
    for (let i = 0; i < 12; i++) segment = segment.replaceAll('%', '%25').replaceAll(/^a/g, '%61');
    expect(maskPath(`/${segment}/x`)).toBe('/***/x');
  });

  it('with a segment that is too long for a name is masked there', () => {
    expect(maskPath(`/a/${'two-'.repeat(400)}/b`)).toBe('/a/***/b');
  });

  it('is bounded', () => {
    expect(maskPath('/ab'.repeat(4_000)).length).toBeLessThan(1_100);
  });
});

describe('a host', () => {
  const KEY = 'pg_0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5pabcdef';

  it.each([
    ['docs.example.com'],
    ['d1tl82f62uycur.cloudfront.net'],
    ['ec2-54-12-33-44.compute-1.amazonaws.com'],
    ['rechtsschutzversicherung.de'],
    ['198.51.100.7'],
    ['[2001:db8::1]'],
    ['localhost'],
  ])('keeps %s', (host) => expect(maskHost(host, '', false)).toBe(host));

  it.each([
    [`${KEY}.plain.com`, '***.plain.com'],
    [`${KEY}.com`, '***.com'],
    ['f47ac10b-58cc-4372-a567-0e02b2c3d479.plain.com', '***.plain.com'],
    ['kqzwvtybnmplrxsd.plain.com', '***.plain.com'],
    ['somenicewords7of9.plain.com', '***.plain.com'],
  ])('masks %s as %s', (host, expected) => expect(maskHost(host, '', false)).toBe(expected));

  it('that is in the index stays, what stands before it does not', () => {
    const known = '52uo5k3t73ypjije.example.com';
    expect(maskHost(known, known, false)).toBe(known);
    expect(maskHost(`${KEY}.${known}`, known, false)).toBe(`***.${known}`);
  });

  it('that carries data keeps its registrable domain only', () => {
    expect(maskHost('some.words.plain.co.uk', '', true)).toBe('***.***.plain.co.uk');
  });
});

it('a scheme that nobody uses is masked', () => {
  expect(maskScheme('https')).toBe('https');
  expect(maskScheme('chrome-extension')).toBe('chrome-extension');
  expect(maskScheme('pg0a1b2c3d4e5f6g7')).toBe('***');
  expect(maskScheme('any-name-that-is-long')).toBe('***');
});
