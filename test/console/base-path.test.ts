/** A console that a proxy serves below a path: where it leads, and what its pages are good for. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formFields, startTestConsole, type TestConsole } from '../support/console.ts';

let console: TestConsole;

beforeAll(async () => {
  console = await startTestConsole({ accounts: {}, config: { console: { base_path: '/gate/' } } });
});

afterAll(() => console?.stop());

describe('a sign-in', () => {
  it.each([
    ['/accounts/pro', 'accounts/pro'],
    ['/%0d%0aset-cookie:x', '%0d%0aset-cookie:x'],
    ['/../other/logout', ''],
    ['/x/%2e%2E/../other', ''],
    ['/..%2Fother', ''],
    ['/.//evil.example', ''],
    ['//evil.example', ''],
    ['/\\evil.example', ''],
    ['/\t/evil.example', ''],
    ['https://evil.example', ''],
    ['/decisions?verdict=deny', ''],
  ])('that wants to go on to %j leads into the console', async (next, to) => {
    const { link } = console.users.add(`u${Math.random()}`, 'viewer');
    const visitor = console.visitor();
    const page = await visitor.get(`sign-in/link${new URL(link).search}`);
    const reply = await visitor.submit('sign-in/link', { ...formFields(page.text), next });
    expect(new URL(reply.headers.get('location')!, console.url).href).toBe(`${console.url}${to}`);
  });
});
