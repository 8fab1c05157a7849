/** Paths where well-known products sign people in and out, authorize, and change a password, from their public documentation. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { judge } from './support.ts';

const table = readFileSync(new URL('../data/eval/product-paths.tsv', import.meta.url), 'utf8');
const products = table
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((row) => row.split('\t') as [string, string]);

describe('the pages of a product on a classified domain of which no page is known', () => {
  it('are many', () => {
    expect(products.length).toBeGreaterThan(50);
    expect(products.flatMap(([, paths]) => paths.split(' ')).length).toBeGreaterThan(1900);
  });

  it.each(products)('%s', (_name, paths) => {
    const missed = paths.split(' ').filter((path) => !judge(`https://www.example.org${path}`).startsWith('deny'));
    expect(missed).toEqual([]);
  });
});

describe('what such products have to read', () => {
  it.each([
    '/.well-known/openid-configuration',
    '/docs/oauth2/authorize',
    '/docs/keycloak/realms/device',
    '/blog/google-oauth2',
    '/blog/2fa-check',
    '/blog/keycloak-login',
    '/products/ldap-login',
    '/articles/email/verify',
    '/help/logout',
    '/docs/logout/saml',
    '/community/registration-numbers',
    '/us/device',
    '/token-economy',
  ])('%s is allowed', (path) => {
    expect(judge(`https://www.example.org${path}`)).toBe('allow default/classified_read');
  });
});
