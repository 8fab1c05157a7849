/** Access with an old key, an old password or an old session. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestConsole, type TestConsole } from '../support/console.ts';

let console: TestConsole;

beforeAll(async () => {
  console = await startTestConsole({ accounts: { leaked: { plan: 'pro' }, own: { plan: 'pro' } } });
});

afterAll(() => console?.stop());

describe('a key that was rotated elsewhere', () => {
  it('cannot show, rotate or revoke anything, and its session ends with it', async () => {
    const thief = await console.signInWithKey(console.server.keys['leaked']!);
    const operator = await console.signIn('operator');
    await operator.submit('accounts/leaked/rotate-key', { overlap: '3600' });
    const key = /pg_\w+/.exec((await operator.get('accounts/leaked')).text)?.[0];
    expect(key).toBeDefined();
    for (const [action, fields] of [
      ['show-key', {}],
      ['rotate-key', { overlap: '3600' }],
      ['revoke-key', { key: '3' }],
    ] as const) {
      expect((await thief.submit(`account/${action}`, fields)).status).toBe(303);
      const { text } = await thief.get('account');
      expect(text, action).toContain('class="notice bad"');
      expect(text, action).not.toMatch(/pg_\w|revoke-key\?|rotate-key"|show-key"/);
    }
    expect((await (await console.signInWithKey(key!)).get('account')).status).toBe(200);
    await operator.submit('accounts/leaked/revoke-key', { key: '1' });
    expect((await thief.get('account')).status).toBe(303);
  });

  it('does not end the session that rotated it, which continues with the new key', async () => {
    const owner = await console.signInWithKey(console.server.keys['own']!);
    const other = await console.signInWithKey(console.server.keys['own']!);
    await owner.submit('account/rotate-key', { overlap: '0' });
    const key = /pg_\w+/.exec((await owner.get('account')).text)?.[0];
    await owner.submit('account/show-key');
    expect((await owner.get('account')).text).toContain(key);
    expect((await other.get('account')).status).toBe(303);
  });
});
