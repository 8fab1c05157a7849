/**
 * Every page and action of the console in a real browser, as operator, viewer and account: with and without scripts, by keyboard, in a narrow window.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { UserRole } from '../../../src/console/users.ts';
import type { TestConsole } from '../../support/console.ts';
import { decisionLine, HOSTILE, startWorld } from '../../support/console-world.ts';

/** Without these Chromium contacts its vendor's services. As root it needs the first one. */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
].concat(['--disable-component-update', '--disable-sync']);
const AXE = readFileSync(new URL('../../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
/** The folder for screenshots of every page and those of docs/console.md. */
const SHOTS = process.env['CONSOLE_SHOTS'];

const STAFF_PAGES = ['', 'decisions', 'try', 'accounts', 'accounts/pro', 'generations', 'health', 'audit', 'you'];
const OPERATOR_PAGES = [
  ...STAFF_PAGES,
  'accounts/pro/suspend',
  'accounts/pro/subscribe',
  'generations/2/rollback',
  'generations/refresh',
  'users',
  'users/bystander',
  'users/bystander/reset',
];
const ACCOUNT_PAGES = ['account', 'account/rotate-key', 'you'];
const PAGES: Readonly<Record<Who, readonly string[]>> = {
  operator: OPERATOR_PAGES,
  viewer: STAFF_PAGES,
  account: ACCOUNT_PAGES,
};
type Who = UserRole | 'account';

/** The key from the latest rotation; undefined before the first. */
let accountKey: string | undefined;

let world: TestConsole;
let browser: Browser;
const contexts: BrowserContext[] = [];
/** Violations of the policy, failures of scripts, and requests that leave the console. There must be none. */
const troubles: string[] = [];
let invited = 0;

beforeAll(async () => {
  world = await startWorld();
  world.users.add('bystander', 'viewer');
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ARGS });
});

afterEach(async () => {
  for (const context of contexts.splice(0)) await context.close();
  expect(troubles.splice(0)).toEqual([]);
});

afterAll(async () => {
  await browser?.close();
  await world?.stop();
});

type ContextOptions = Parameters<Browser['newContext']>[0];

async function open(options: ContextOptions = {}): Promise<Page> {
  const context = await browser.newContext(options);
  contexts.push(context);
  await context.exposeFunction('reportViolation', (text: string) => void troubles.push(text)).catch(() => {});
  await context.addInitScript(
    `document.addEventListener('securitypolicyviolation', (event) =>
       reportViolation(event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile))`,
  );
  const page = await context.newPage();
  page.on('pageerror', (error) => troubles.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of 4\d\d/.test(message.text())) troubles.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(world.url)) troubles.push(`left the console: ${request.url()}`);
  });
  return page;
}

const at = (path: string): string => new URL(path, world.url).href;

/** Signs in as people do: by a link, or by typing a key. */
async function signIn(who: Who, options: ContextOptions = {}, name = `${who}-b${++invited}`): Promise<Page> {
  const page = await open(options);
  if (who === 'account') {
    await page.goto(at('sign-in'));
    await page.getByLabel('API key').fill(accountKey ?? world.server.keys['pro']!);
    await page.getByRole('button', { name: 'Sign in with the key' }).click();
    await page.waitForURL(at('account'));
    return page;
  }
  const { link } = world.users.add(name, who);
  await page.goto(link);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(world.url);
  return page;
}

async function shoot(page: Page, name: string): Promise<void> {
  if (SHOTS === undefined) return;
  mkdirSync(SHOTS, { recursive: true });
  writeFileSync(join(SHOTS, `${name}.png`), await page.screenshot({ fullPage: true }));
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate('axe.run()')) as AxeResult;
  return violations.map(
    ({ id, nodes }) => `${page.url()} ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
  );
}

const EVERYBODY = Object.keys(PAGES) as Who[];
const nameOf = (path: string): string => (path === '' ? 'overview' : path.replaceAll('/', '-'));

describe.each(['light', 'dark'] as const)('in %s colors', (colorScheme) => {
  it.each(EVERYBODY)('every page of %s is accessible and obeys the policy', async (who) => {
    const page = await signIn(who, { colorScheme });
    const found: string[] = [];
    for (const path of PAGES[who]) {
      await page.goto(at(path));
      expect(await page.evaluate('window.pwned')).toBeUndefined();
      expect(await page.locator('.hostile').count()).toBe(0);
      found.push(...(await findings(page)));
      await shoot(page, `${who}-${nameOf(path)}-${colorScheme}`);
    }
    expect(found).toEqual([]);
  });

  it('the sign-in is accessible', async () => {
    const page = await open({ colorScheme });
    await page.goto(at('sign-in'));
    expect(await findings(page)).toEqual([]);
    await shoot(page, `sign-in-${colorScheme}`);
  });
});

it('with forced colors the current page and the colors of a plot can be distinguished', async () => {
  const page = await signIn('viewer', { forcedColors: 'active' });
  await page.goto(world.url);
  const styles = (selector: string, name: string, part = ''): Promise<unknown> =>
    page.evaluate(
      `[...document.querySelectorAll('${selector}')].map((one) => getComputedStyle(one, '${part}').${name})`,
    );
  expect(await styles('nav [aria-current], .choices [aria-current]', 'borderTopWidth')).toEqual(['2px', '2px']);
  expect(await styles('nav li:nth-child(2) a', 'borderTopWidth')).toEqual(['0px']);
  const keys = (await styles('.key', 'backgroundColor', '::before')) as string[];
  expect(keys.length).toBe(5);
  expect(new Set(keys).size).toBe(keys.length);
});

describe('320 pixels wide, like a window of 640 pixels at 200 %', () => {
  it.each(EVERYBODY)('no page of %s scrolls sideways', async (who) => {
    const page = await signIn(who, { viewport: { width: 320, height: 640 } });
    for (const path of PAGES[who]) {
      await page.goto(at(path));
      expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBeLessThanOrEqual(320);
      await shoot(page, `${who}-${nameOf(path)}-narrow`);
    }
  });
});

describe.each([true, false])('scripts: %s', (javaScriptEnabled) => {
  it('an operator creates, subscribes, suspends, rotates and closes an account', async () => {
    const page = await signIn('operator', { javaScriptEnabled });
    const name = `made-${javaScriptEnabled}`;
    await page.goto(at('accounts'));
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByRole('button', { name: 'Create' }).click();
    await page.waitForURL(at(`accounts/${name}`));
    await page.getByRole('link', { name: 'Subscribe a plan' }).click();
    await page.getByRole('combobox').selectOption('pro');
    await page.getByLabel('Reference').fill(`REF-${name} ${HOSTILE.slice(0, 60)}`);
    await page.getByRole('button', { name: 'Subscribe a plan' }).click();
    const key = await page.locator('.secret').textContent();
    expect(key).toMatch(/^pg_\w{38}$/);
    // The key is shown once: not after reloading the page.
    await page.goto(at(`accounts/${name}`));
    expect(await page.locator('.secret').count()).toBe(0);
    const answer = await world.server.check('?url=shop.example.com', { 'x-api-key': key! });
    expect(answer.status).toBe(200);
    for (const [link, said] of [
      ['Suspend', 'is suspended'],
      ['Reactivate', 'is active again'],
      ['Rotate the key', 'is issued'],
      ['Show the key', 'The audit names you'],
      ['Close for good', 'is closed'],
    ] as const) {
      await page.getByRole('link', { name: link }).click();
      await page.getByRole('button', { name: link }).click();
      expect(await page.locator('.notice').textContent()).toContain(said);
    }
    await page.goto(at('audit'));
    expect(await page.getByText('account.suspend').count()).toBeGreaterThan(0);
  });

  it('an operator adds a user, ends the session, changes the role and removes the user, with the own password', async () => {
    const page = await signIn('operator', { javaScriptEnabled });
    const [name, password] = [`colleague-${javaScriptEnabled}`, 'rain on a tin roof'];
    const said = (): Promise<string | null> => page.locator('.notice').textContent();
    const setPassword = async (text: string): Promise<void> => {
      await page.goto(at('you'));
      await page.getByLabel('New password').fill(text);
      await page.getByLabel('Repeat the password').fill(text);
      await page.getByRole('button', { name: 'Set the password' }).click();
      await page.locator('.notice').waitFor();
    };
    await setPassword('aaaaaaaaaaaaaaaa');
    expect(await said()).toContain('This one repeats a few characters.');
    await setPassword(password);
    expect(await said()).toContain('The password is set.');

    await page.getByRole('link', { name: 'Users' }).click();
    await page.getByLabel('Name').fill(name);
    await page.getByRole('button', { name: 'Add' }).waitFor();
    await page.getByLabel('Your current password').fill('another password');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByText('The current password is wrong.').waitFor();
    expect(await page.getByLabel('Name').inputValue()).toBe(name);
    await page.getByLabel('Your current password').fill(password);
    await page.getByRole('button', { name: 'Add' }).click();
    await page.waitForURL(at(`users/${name}`));
    const colleague = await open({ javaScriptEnabled });
    await colleague.goto((await page.locator('.secret').textContent())!);
    await colleague.getByRole('button', { name: 'Sign in' }).click();
    await colleague.waitForURL(world.url);

    await page.goto(at('users'));
    await page.getByRole('region', { name: 'Signed in now' }).getByRole('row', { name }).getByRole('button').click();
    await page.getByText(`The session of ${name} from 127.0.0.1 has ended.`).waitFor();
    await colleague.goto(at('health'));
    expect(colleague.url()).toBe(at('sign-in?next=%2Fhealth'));

    for (const [link, outcome] of [
      ['Make an operator', 'is an operator'],
      ['Remove the user', 'is removed'],
    ] as const) {
      await page.goto(at(`users/${name}`));
      await page.getByRole('link', { name: link }).click();
      await page.getByLabel('Your current password').fill(password);
      await page.getByRole('button', { name: link }).click();
      await page.getByText(outcome).waitFor();
    }
    await page.goto(at(`audit?${new URLSearchParams({ what: name })}`));
    for (const what of ['user.add', 'session.end', 'user.role', 'user.remove'])
      expect(await page.getByText(`console ${what} ${name}`).count(), what).toBe(1);
  });

  it('an account views itself, rotates its key and stays signed in', async () => {
    const page = await signIn('account', { javaScriptEnabled });
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Account pro');
    expect(await page.content()).not.toContain('rival');
    await page.getByRole('link', { name: 'Rotate the key' }).click();
    await page.getByLabel('The current key').selectOption('86400');
    await page.getByRole('button', { name: 'Rotate the key' }).click();
    accountKey = (await page.locator('.secret').textContent()) ?? '';
    expect(accountKey).toMatch(/^pg_/);
    await page.goto(at('account'));
    expect(page.url()).toBe(at('account'));
    await page.goto(at('accounts/rival'));
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Not allowed');
  });

  it('a form that is clicked several times takes effect once, and its outcome is shown', async () => {
    const page = await signIn('operator', { javaScriptEnabled });
    const keys = page.getByRole('region', { name: 'All keys' }).getByRole('row');
    await page.goto(at('accounts/idle'));
    const before = await keys.count();
    await page.getByRole('link', { name: 'Rotate the key' }).click();
    const box = (await page.getByRole('button', { name: 'Rotate the key' }).boundingBox())!;
    for (let i = 0; i < 3; i++) await page.mouse.click(box.x + 5, box.y + 5);
    await page.locator('.secret').waitFor();
    expect(await keys.count()).toBe(before + 1);
  });

  it('the outcome of a form has the focus, and the title says if it is an error', async () => {
    const page = await signIn('operator', { javaScriptEnabled });
    const focused = page.locator('.notice:focus');
    const name = `focus-${javaScriptEnabled}`;
    for (const [text, title] of [
      [`${name} is created.`, `Account ${name} · pagegate`],
      ['An account with this name exists', 'Error: Accounts · pagegate'],
    ] as const) {
      await page.goto(at('accounts'));
      await page.getByLabel('Name', { exact: true }).fill(name);
      await page.getByRole('button', { name: 'Create' }).click();
      await focused.getByText(text).waitFor();
      expect(await page.title()).toBe(title);
    }
    await page.goto(at('decisions?from=yesterday'));
    await focused.getByText('from: expected a time').waitFor();
    // From there the keyboard continues in the form, not in the navigation.
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.name')).toBe('verdict');
  });

  it('a number links to the log, a line to the page for trying a URL, that page to an entry for the policy', async () => {
    const page = await signIn('viewer', { javaScriptEnabled });
    await page.getByRole('link', { name: /Denied, last hour/ }).click();
    await page.waitForURL(/decisions\?verdict=deny/);
    expect(await page.locator('tbody tr').count()).toBeGreaterThan(20);
    await page.goto(at('decisions?domain=host-9.example.com'));
    await page.getByRole('link', { name: 'try it' }).first().click();
    await page.waitForURL(/\/try\?/);
    await page.getByRole('link', { name: 'Propose an entry' }).click();
    expect(await page.locator('pre').textContent()).toContain('"host": "host-9.example.com"');
    expect(await page.getByText('With it the verdict is').count()).toBe(1);
    await page.goto(at('try?url=https://shop.example.com/login'));
    expect(await page.getByText('decides').count()).toBe(1);
  });

  it('an operator verifies, compares and rolls back, and the served data changes', async () => {
    const page = await signIn('operator', { javaScriptEnabled });
    const [to, from] = javaScriptEnabled ? [2, 3] : [3, 2];
    const done = async (): Promise<void> => {
      await expect
        .poll(
          async () => {
            await page.goto(at('generations'));
            return page.locator('#work tbody tr').first().locator('.mark').textContent();
          },
          { timeout: 120_000, interval: 500 },
        )
        .toBe('done');
    };
    await page.goto(at('generations'));
    await page
      .getByRole('row', { name: new RegExp(`^${to} `) })
      .getByRole('button', { name: 'Verify' })
      .click();
    await done();
    const compare = page.getByRole('row', { name: /^3 / }).getByRole('button', { name: 'Compare' });
    if ((await compare.count()) > 0) {
      await compare.click();
      await done();
    }
    expect(await page.content()).toMatch(/\d+ added, \d+ removed, \d+ changed/);
    await page.goto(at(`generations/${to}/rollback`));
    expect(await page.content()).toContain(`Generation ${from} is served now`);
    await page.getByRole('button', { name: `Serve generation ${to}` }).click();
    await done();
    expect((await world.server.check('?url=shop.example.com')).headers.get('x-pagegate-data')).toMatch(
      new RegExp(`^${to}\\.`),
    );
    await page.goto(at('audit'));
    expect(await page.getByText('generation.rollback').count()).toBeGreaterThan(0);
  });
});

describe.runIf(SHOTS !== undefined)('screenshots for docs/console.md', () => {
  const size = { width: 1_100, height: 760 };
  let hostile: readonly [TestConsole, string | undefined];

  beforeAll(async () => {
    hostile = [world, accountKey];
    [world, accountKey] = [await startWorld({ isHostile: false }), undefined];
  });

  afterAll(async () => {
    await world.stop();
    [world, accountKey] = hostile;
  });

  /** The upper part of a page, as a small JPEG. */
  async function picture(page: Page, name: string): Promise<void> {
    mkdirSync(SHOTS!, { recursive: true });
    writeFileSync(join(SHOTS!, `${name}.jpg`), await page.screenshot({ type: 'jpeg', quality: 60 }));
  }

  it.each([
    ['overview', 'operator', 'dana', '', 'light'],
    ['try', 'operator', 'erin', 'try?url=https%3A%2F%2Fshop.example.com%2Flogin', 'dark'],
    ['health', 'viewer', 'finn', 'health', 'light'],
    ['account', 'account', '', 'account', 'dark'],
    ['users', 'operator', 'grace', 'users', 'light'],
  ] as const)('%s', async (name, who, user, path, colorScheme) => {
    const options = { colorScheme, viewport: size, locale: 'en-GB', timezoneId: 'Europe/Berlin' };
    const page = await signIn(who, options, user);
    await page.goto(at(path));
    if (name === 'health')
      await page.locator('section[aria-labelledby=doctor] tbody tr').first().waitFor({ timeout: 60_000 });
    await picture(page, name);
  });
});

describe('a link on another site', () => {
  /** Follows a link from a page with an opaque origin. */
  async function follow(page: Page, url: string): Promise<void> {
    await page.goto('about:blank');
    await page.setContent(`<a href="${url.replaceAll('&', '&amp;')}">sent</a>`);
    await page.getByRole('link').click();
  }

  it.each([true, false])('opens the page for a signed-in user (scripts: %s)', async (javaScriptEnabled) => {
    const page = await signIn('viewer', { javaScriptEnabled });
    await follow(page, at('decisions?verdict=deny'));
    await page.getByRole('heading', { name: 'Decisions' }).waitFor();
    expect(page.url()).toBe(at('decisions?verdict=deny'));
  });

  it('signs in by an invitation, even if another user is signed in', async () => {
    const page = await signIn('viewer');
    const name = `invited-${++invited}`;
    await follow(page, world.users.add(name, 'operator').link);
    await page.getByRole('main').getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(world.url);
    expect(await page.locator('.who').textContent()).toContain(name);
  });
});

describe('with scripts', () => {
  it('decisions are followed live, and hostile text stays text', async () => {
    const page = await signIn('viewer');
    await page.goto(at('decisions'));
    await page.getByRole('link', { name: 'Follow live' }).click();
    const file = join(world.server.paths.logDir, 'decisions-9.ndjson');
    const live = decisionLine(999_999, 0, { path: '/seen-live', domain: 'live.example', host: `live${HOSTILE}` });
    writeFileSync(file, live, { flag: 'a' });
    await page.getByText('/seen-live').waitFor();
    expect(await page.locator('.hostile').count()).toBe(0);
    expect(await page.evaluate('window.pwned')).toBeUndefined();
  });

  it('the selection and the scroll position of a table stay while decisions are followed', async () => {
    const page = await signIn('viewer', { viewport: { width: 360, height: 740 } });
    await page.goto(at('decisions?live=1'));
    const renewed = () => page.waitForResponse((response) => response.request().resourceType() === 'xhr');
    const mark = `getSelection().selectAllChildren(document.querySelector('#decisions td code'))`;
    await page.evaluate(`document.querySelector('#decisions .wide').scrollLeft = 200; ${mark}`);
    const marked = await page.evaluate('String(getSelection())');
    expect(marked).toMatch(/^[A-Z]+$/);
    await renewed();
    await renewed();
    expect(await page.evaluate('String(getSelection())')).toBe(marked);
    await page.evaluate(`document.querySelector('#decisions').dataset.old = 'yes'; getSelection().removeAllRanges()`);
    await page.locator('#decisions:not([data-old])').waitFor();
    expect(await page.evaluate(`document.querySelector('#decisions .wide').scrollLeft`)).toBe(200);
  });

  it('a page that cannot be updated says so, until it can', async () => {
    const page = await signIn('viewer');
    await page.goto(at('decisions?live=1'));
    await page.route('**/decisions*', (route) => route.fulfill({ status: 429 }));
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('alert').textContent()).toMatch(
      /^Out of date: .* since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/,
    );
    await page.waitForResponse((response) => response.request().resourceType() === 'xhr');
    await page.unroute('**/decisions*');
    await page.getByRole('alert').waitFor({ state: 'detached', timeout: 60_000 });
  });

  it('a refresh shows its progress and its outcome without reloading the page', async () => {
    const page = await signIn('operator');
    await page.goto(at('generations'));
    await page.getByRole('link', { name: 'Refresh' }).click();
    expect(await page.content()).toMatch(/by vendor.*Generation \d+ is served now/s);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.waitForURL(at('generations'));
    await page.getByRole('button', { name: 'Stop it' }).waitFor();
    await page
      .locator('#work')
      .getByText(/verified and served as generation \d+/)
      .waitFor({ timeout: 120_000 });
    expect(await page.getByRole('button', { name: 'Stop it' }).count()).toBe(0);
    expect(await page.locator('#kept tbody tr').first().textContent()).toMatch(/served.*revision 4/);
    await shoot(page, 'operator-generations-refreshed');
    await page.goto(at('generations/refresh'));
    expect(await page.getByText('There is nothing to do.').count()).toBe(1);
  });

  it('times have the local time next to them', async () => {
    const page = await signIn('viewer', { timezoneId: 'Asia/Tokyo', locale: 'en-GB' });
    await page.goto(at('audit'));
    expect(await page.locator('time .local').count()).toBeGreaterThan(0);
    expect(await page.locator('footer').textContent()).toContain('Asia/Tokyo');
  });
});

describe('by keyboard alone', () => {
  /** Presses Tab until the element with this text or label has the focus. */
  async function reach(page: Page, wanted: RegExp): Promise<void> {
    for (let i = 0; i < 80; i++) {
      await page.keyboard.press('Tab');
      const name = (await page.evaluate(
        `((focused) => ((focused.labels?.[0]?.textContent ?? '') + ' ' + focused.textContent).trim())(document.activeElement)`,
      )) as string;
      const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
      if (!wanted.test(name)) continue;
      expect(outline).not.toBe('none');
      return;
    }
    throw new Error(`Tab does not reach ${wanted}`);
  }

  it('signs in, tries a URL, suspends an account, signs out', async () => {
    const page = await open();
    invited += 1;
    await page.goto(world.users.add(`operator-b${invited}`, 'operator').link);
    await reach(page, /^Sign in$/);
    await page.keyboard.press('Enter');
    await page.waitForURL(world.url);
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content');
    await reach(page, /^Try a URL$/);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/try/);
    await reach(page, /^URL or domain/);
    await page.keyboard.type('https://shop.example.com/login');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Verdict' }).waitFor();
    await page.goto(at('accounts/rival'));
    await reach(page, /^Suspend$/);
    await page.keyboard.press('Enter');
    await page.waitForURL(/suspend$/);
    await reach(page, /^Suspend$/);
    await page.keyboard.press('Enter');
    await page.getByText('rival is suspended.').waitFor();
    await reach(page, /^Sign out$/);
    await page.keyboard.press('Enter');
    await page.waitForURL(/sign-in$/);
  });
});
