/** Text with markup, wherever an agent, a drop, a licensee or an operator can supply text: every page shows it as text. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { csvLine } from '../../src/console/web/csv.ts';
import { html } from '../../src/console/web/html.ts';
import type { TestConsole, Visitor } from '../support/console.ts';
import { HOSTILE, startWorld, TURNED } from '../support/console-world.ts';

let world: TestConsole;
let operator: Visitor;

beforeAll(async () => {
  world = await startWorld();
  operator = await world.signIn('operator');
});

afterAll(() => world.stop());

/** Checks that no text of outsiders became an element, an attribute or a character that changes the direction of text. */
function expectHarmless(text: string): void {
  expect(text).not.toMatch(/<img|<script>|<script [^s]|class='hostile'|onerror="/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
  expect(text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
  expect(text).not.toMatch(/(?:href|action|src)="(?!\/|#)/);
}

const query = (fields: Readonly<Record<string, string>>): string => `?${new URLSearchParams(fields)}`;

describe('hostile text is text', () => {
  it.each([
    ['in the overview', '', true],
    ['in decisions', 'decisions', true],
    ['in the generations', 'generations', true],
    ['in the audit', 'audit', true],
    ['in an account', 'accounts/rival', true],
    ['in a name that is sought', `accounts${query({ q: HOSTILE })}`, true],
    ['in a filter', `decisions${query({ account: HOSTILE, domain: HOSTILE.slice(0, 100), rule: HOSTILE })}`, true],
    ['in a filter of another kind', `decisions${query({ account: TURNED, rule: TURNED.replaceAll('\0', '') })}`, false],
    [
      'in a URL to try',
      `try${query({ url: `https://shop.example.com/${HOSTILE}`, method: 'GET', propose: '1' })}`,
      true,
    ],
    ['in a host to try', `try${query({ url: HOSTILE })}`, true],
    ['in a method to try', `try${query({ url: 'shop.example.com', method: HOSTILE })}`, true],
    ['in a scheme to try', `try${query({ url: 'javascript:window.pwned=1//%0a' })}`, false],
    ['in a domain that the index has', `try${query({ url: 'https://shop.example.com/login' })}`, false],
    ['in a path to go on to', `sign-in${query({ next: HOSTILE })}`, false],
    ['in a link', `sign-in/link${query({ token: HOSTILE })}`, true],
    ['in a range', query({ range: HOSTILE }), false],
    ['in a number of days', `accounts/rival${query({ days: HOSTILE })}`, true],
    ['in the health', 'health', false],
  ])('%s', async (_where, path, isShown) => {
    const reply = await operator.get(path);
    expectHarmless(reply.text);
    // The text is shown, not dropped.
    if (isShown) expect(reply.text).toMatch(/&lt;img src=x onerror=|%3Cimg|&quot;&gt;&lt;img/);
  });

  it.each(['time', 'from', 'behind', 'verdict'])('in an invalid field: %s', async (name) => {
    const reply = await operator.get(`decisions${query({ [name]: HOSTILE })}`);
    expectHarmless(reply.text);
  });

  it('in the message about a change', async () => {
    for (const fields of [{ name: HOSTILE }, { name: TURNED.replaceAll('\0', '') }]) {
      expect((await operator.submit('accounts', fields)).status).toBe(303);
      const page = await operator.get('accounts');
      expect(page.text).toContain('class="notice bad"');
      expectHarmless(page.text);
    }
    await operator.submit('accounts/idle/subscribe', { plan: HOSTILE, reference: HOSTILE });
    const page = await operator.get('accounts/idle');
    expect(page.text).toContain('class="notice bad"');
    expectHarmless(page.text);
  });

  it('in files, where it must not become a formula of a spreadsheet', async () => {
    const csv = (await operator.get('decisions.csv')).text;
    expect(csv.split('\r\n')[0]).toBe(
      'time,account,method,url,domain,found,verdict,layer,id,note,data,latency_ms,decision',
    );
    expect(csv.split('\r\n').length).toBeGreaterThan(300);
    const ndjson = (await operator.get('decisions.ndjson')).text.trim().split('\n');
    expect(ndjson.length).toBe(csv.trim().split('\r\n').length - 1);
    for (const line of ndjson) JSON.parse(line);
    expect(csvLine(['=1+1', '+1', '-1', '@x', 'a"b', 'a,b', 'plain', -1])).toBe(
      `'=1+1,'+1,'-1,'@x,"a""b","a,b",plain,-1\r\n`,
    );
  });
});

describe('the template', () => {
  it('escapes every value inserted into it', () => {
    expect(String(html`<p title="${HOSTILE}">${HOSTILE}</p>`)).not.toMatch(/<(?!\/?p)/);
    expect(String(html`${[HOSTILE, [1, null, undefined, false]]}`)).not.toContain('<');
    expect(String(html`${'a\nb\u202ec\u0000'}`)).toBe('a\nb\\u202ec\\x00');
    expect(String(html`${html`<b>${'<'}</b>`}`)).toBe('<b>&lt;</b>');
  });

  it('does not accept a value that only looks like finished markup', () => {
    const pretender = { toString: () => '<script>' } as unknown as string;
    expect(String(html`${pretender}`)).toBe('&lt;script&gt;');
  });
});
