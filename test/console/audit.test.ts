/** The audit: what is found in it, page by page and as a file. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openLedger } from '../../src/ledger/open.ts';
import { LIMITS } from '../../src/limits.ts';
import { startTestConsole, type TestConsole, type Visitor } from '../support/console.ts';

const PAGE = LIMITS.consoleAudit.value;
/** Number of numbered notes on account `pro`, made by Dana. */
const NOTES = 2 * PAGE + 10;

const YEAR_MS = 365 * 86_400_000;

let console: TestConsole;
let viewer: Visitor;

beforeAll(async () => {
  console = await startTestConsole(
    { accounts: { pro: { plan: 'pro' }, rival: { plan: 'pro' } } },
    async ({ paths }) => {
      const { ledgerFile: file, ledgerKeyFile: keyFile } = paths;
      const ahead = await openLedger({ file, keyFile, actor: 'ahead', now: () => Date.now() + YEAR_MS });
      await ahead.note('note.made early', null, null);
      await ahead.close();
      const dana = await openLedger({ file, keyFile, actor: 'Dana' });
      for (let n = 0; n < NOTES; n++) await dana.note(`note.made number 100%_${n}.`, null, null);
      await dana.setActive('rival', false);
      await dana.close();
      const other = await openLedger({ file, keyFile, actor: 'Øystein ÅS' });
      await other.note('note.made elsewhere', null, null);
      await other.close();
    },
  );
  viewer = await console.signIn('viewer');
  await console.signInWithKey(console.server.keys['pro']!);
  await console.visitor().submit('sign-in', { name: 'nobody', password: 'x' });
});

afterAll(() => console.stop());

/** The lines of the file without its header: who, what, account. */
async function lines(query: Readonly<Record<string, string>>): Promise<string[]> {
  const { status, text } = await viewer.get(`audit.csv?${new URLSearchParams(query)}`);
  expect(status).toBe(200);
  return text
    .trimEnd()
    .split('\r\n')
    .slice(1)
    .map((line) => line.slice(line.indexOf(',') + 1));
}

describe('a filter', () => {
  it('by account finds what was done to it, and what it did in the console', async () => {
    const found = await lines({ account: 'pro' });
    expect(found.filter((line) => line.endsWith(',pro')).length).toBe(3);
    expect(found.filter((line) => line.startsWith('account:pro,console sign_in key 1'))).toHaveLength(1);
    expect(found).toHaveLength(4);
  });

  it.each([
    [{ who: 'dana' }, NOTES + 1],
    [{ who: 'DANA', what: 'suspend' }, 1],
    [{ who: 'ØYSTEIN' }, 1],
    [{ who: 'Øystein ÅS' }, 1],
    [{ what: 'sign_in.refused' }, 1],
    [{ what: '100%_7.' }, 1],
    [{ what: '1009' }, 0],
    [{ to: '2020-01-01' }, 0],
    [{ from: '2020-01-01', who: 'dana', what: 'NOTE' }, NOTES],
    [{ from: '2099-01-01 00:00' }, 0],
  ])('%o finds %d lines', async (query, count) => expect(await lines(query)).toHaveLength(count));

  it.each([
    ['from=yesterday', 400, 'expected a time like'],
    ['account=nobody', 404, 'nobody'],
    [`who=${'x'.repeat(300)}`, 400, 'at most 256 characters'],
    ['skip=x', 400, 'expected a whole number'],
  ])('%s is shown again with its error', async (query, status, expected) => {
    const reply = await viewer.get(`audit?what=kept&${query}`);
    expect(reply.status).toBe(status);
    expect(/role="alert"><p>([^<]*)/.exec(reply.text)?.[1]).toContain(expected);
    expect(reply.text).toContain('name="what" value="kept"');
  });
});

it('pages show every line once, and keep the filter', async () => {
  const found: string[] = [];
  const sizes: number[] = [];
  for (let path: string | undefined = 'audit?who=dana&what=note'; path !== undefined; ) {
    const { text } = await viewer.get(path);
    const numbers = [...text.matchAll(/100%_(\d+)\./g)].map(([, n]) => n!);
    sizes.push(numbers.length);
    found.push(...numbers);
    expect(text).toContain('href="/audit.csv?who=dana&amp;what=note"');
    path = /href="\/([^"]+)">Older</.exec(text)?.[1]?.replaceAll('&amp;', '&');
  }
  expect(sizes).toEqual([PAGE, PAGE, 10]);
  expect(found).toEqual(Array.from({ length: NOTES }, (_, n) => String(NOTES - 1 - n)));
  const { text } = await viewer.get(`audit?skip=${10 * LIMITS.consoleAuditExport.value}`);
  expect(text).toContain('>Latest<');
  expect(text).not.toContain('>Older<');
});

it('pages also show what was done while the clock was ahead', async () => {
  const found: string[] = [];
  for (let path: string | undefined = 'audit'; path !== undefined; ) {
    const { text } = await viewer.get(path);
    found.push(...[...text.matchAll(/note\.made (early|number 100%_\d+)/g)].map(([line]) => line));
    path = /href="\/([^"]+)">Older</.exec(text)?.[1]?.replaceAll('&amp;', '&');
  }
  expect(found.filter((line) => line.endsWith('early'))).toHaveLength(1);
  expect(new Set(found).size).toBe(NOTES + 1);
  expect(found).toHaveLength(NOTES + 1);
});

it('an account’s page links to all of its changes', async () => {
  expect((await viewer.get('accounts/pro')).text).toContain('href="/audit?account=pro"');
});
