/** The console's store: users, links, sessions, time series. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readValues } from '../../src/console/pages/health.ts';
import { quantile } from '../../src/console/pages/overview.ts';
import { countsOf, Sampler } from '../../src/console/process/metrics-sampler.ts';
import { LINK_SECONDS } from '../../src/console/store/links.ts';
import { IDLE_SECONDS, SESSION_SECONDS, type Session } from '../../src/console/store/sessions.ts';
import { ConsoleStore } from '../../src/console/store/store.ts';
import { HOUR, MINUTE, mergeSamples, type Sample } from '../../src/console/store/time-series.ts';
import { SignInLimiter } from '../../src/console/web/sign-in-limiter.ts';
import { LIMITS } from '../../src/limits.ts';
import { type Database, Sqlite } from '../../src/platform/sqlite.ts';
import { LATENCY_BOUNDS_SECONDS } from '../../src/server/metric-definitions.ts';

const START = 1_767_225_600;
let dir: string;
let now: number;
let store: ConsoleStore;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'pagegate-console-'));
  now = START;
  store = new ConsoleStore(join(dir, 'console', 'console.sqlite'), () => now);
});

afterEach(() => {
  store.close();
  rmSync(dir, { recursive: true, force: true });
});

describe('users', () => {
  const enter = (name: string, password: string): Promise<string | undefined> =>
    store.users.authenticate(name, password, (user) => user.name);
  const follow = (link: string): string | undefined => store.users.useLink(link, (user) => user.name);
  const signedIn = (): { readonly token: string; readonly session: Session } => {
    const token = store.sessions.begin({ role: 'operator', name: 'dana', keyId: null, address: '' });
    return { token, session: store.sessions.find(token, false)! };
  };

  it('are refused if name or role is invalid, or the name exists', () => {
    for (const name of ['', 'A', 'a b', '-a', 'a'.repeat(65), '<b>', 'a\n']) {
      expect(() => store.users.add(name, 'viewer', 'me')).toThrow(/got "/i);
    }
    store.users.add('dana', 'viewer', 'me');
    expect(() => store.users.add('dana', 'operator', 'me')).toThrow(/has this name/);
    expect(store.users.list()).toMatchObject([{ name: 'dana', role: 'viewer', hasPassword: false }]);
  });

  it('have passwords of which only a hash is stored', async () => {
    store.users.add('dana', 'operator', 'me');
    const { session } = signedIn();
    await expect(store.users.setPassword(session, 'too short')).rejects.toMatchObject({ code: 'bad_password' });
    await expect(store.users.setPassword(session, 'danadanadana1')).rejects.toMatchObject({ code: 'bad_password' });
    await store.users.setPassword(session, 'rain on a tin roof');
    expect(await enter('dana', 'rain on a tin roof')).toBe('dana');
    expect(await enter('dana', 'another password')).toBeUndefined();
    expect(await enter('nobody', 'rain on a tin roof')).toBeUndefined();
    store.close();
    expect(readFileSync(join(dir, 'console', 'console.sqlite')).includes('rain on a tin roof')).toBe(false);
    store = new ConsoleStore(join(dir, 'console', 'console.sqlite'), () => now);
  });

  it('cannot sign in with an empty password if they have none', async () => {
    store.users.add('dana', 'operator', 'me');
    expect(await enter('dana', '')).toBeUndefined();
  });

  it('have no password after a reset that happened while one was being set', async () => {
    store.users.add('dana', 'operator', 'me');
    const setting = store.users.setPassword(signedIn().session, 'snow on a tin roof');
    store.users.reset('dana', 'me');
    expect([await setting, store.users.find('dana')?.hasPassword]).toEqual([false, false]);
  });

  it('are not let in by a password that was removed while it was compared', async () => {
    store.users.add('dana', 'operator', 'me');
    await store.users.setPassword(signedIn().session, 'rain on a tin roof');
    const entering = enter('dana', 'rain on a tin roof');
    store.users.reset('dana', 'me');
    expect(await entering).toBeUndefined();
  });

  it('end their other sessions when they set a new password', async () => {
    store.users.add('dana', 'operator', 'me');
    const [other, own] = [signedIn(), signedIn()];
    await store.users.setPassword(own.session, 'rain on a tin roof');
    expect([other, own].map(({ token }) => store.sessions.find(token, false) !== undefined)).toEqual([false, true]);
  });

  it('lose sessions, links and password with a reset, and everything when they are removed', async () => {
    store.users.add('dana', 'operator', 'me');
    const token = store.sessions.begin({ role: 'operator', name: 'dana', keyId: null, address: '' });
    const link = store.users.createLink('dana', 'me');
    store.users.reset('dana', 'me');
    expect([store.sessions.find(token, true), follow(link)]).toEqual([undefined, undefined]);
    const later = store.users.createLink('dana', 'me');
    store.users.remove('dana', 'me');
    expect([follow(later), store.users.find('dana')]).toEqual([undefined, undefined]);
    expect(() => store.users.remove('dana', 'me')).toThrow(/No user/);
    expect(store.events.latest(10).map(({ action }) => action)).toEqual([
      'user.remove',
      'link.create',
      'user.reset',
      'link.create',
      'user.add',
    ]);
  });

  it('sign in with a link once, before it expires', () => {
    store.users.add('dana', 'operator', 'me');
    const [used, late] = [store.users.createLink('dana', 'me'), store.users.createLink('dana', 'me')];
    expect(follow(used)).toBe('dana');
    expect(follow(used)).toBeUndefined();
    now += LINK_SECONDS;
    expect(follow(late)).toBeUndefined();
  });

  it('must sign in again after a change of their role, and keep links', () => {
    store.users.add('dana', 'operator', 'me');
    const { token } = signedIn();
    const link = store.users.createLink('dana', 'me');
    expect(store.users.setRole('dana', 'operator', 'me').role).toBe('operator');
    expect(store.sessions.find(token, false)).toBeDefined();
    expect(store.users.setRole('dana', 'viewer', 'me').role).toBe('viewer');
    expect(store.sessions.find(token, false)).toBeUndefined();
    expect(follow(link)).toBe('dana');
    expect(() => store.users.setRole('dana', 'chief' as 'viewer', 'me')).toThrow(/Got the role "chief"/);
    expect(() => store.users.setRole('erin', 'viewer', 'me')).toThrow(/No user/);
    expect(store.events.latest(1)).toMatchObject([{ actor: 'me', action: 'user.role', detail: 'dana viewer' }]);
  });

  it('are signed out everywhere, except for one session', () => {
    store.users.add('dana', 'operator', 'me');
    const [own, other] = [signedIn(), signedIn()];
    const link = store.users.createLink('dana', 'me');
    expect(store.users.signOut('dana', 'me', own.session.hash)).toBe(1);
    expect([own, other].map(({ token }) => store.sessions.find(token, false) !== undefined)).toEqual([true, false]);
    expect(follow(link)).toBeUndefined();
  });

  it('always leave an operator, even if several are changed at the same time', () => {
    store.users.add('dana', 'operator', 'me');
    store.users.add('erin', 'operator', 'me');
    const { session } = signedIn();
    const change = (name: string): unknown =>
      store.users.asOperator(session, () => store.users.setRole(name, 'viewer', 'dana').role);
    expect(change('erin')).toBe('viewer');
    expect(() => change('dana')).toThrow(/The console needs at least one operator/);
    expect(store.users.list().map(({ role }) => role)).toEqual(['operator', 'viewer']);
    // A refused change has no effect, not even on the session.
    expect(store.sessions.has(session.hash)).toBe(true);
    store.sessions.end(session.hash);
    expect(change('dana')).toBeUndefined();
    expect(store.users.get('dana').role).toBe('operator');
  });

  it('of a file of version 1 are kept, with the sign-ins from the audit', () => {
    store.users.add('dana', 'operator', 'me');
    store.users.add('erin', 'viewer', 'me');
    now += HOUR;
    store.events.note('dana', 'sign_in', 'link from 192.0.2.1');
    store.close();
    inFile((file) => {
      file.exec('ALTER TABLE users DROP COLUMN signed_in_at');
      file.pragma('user_version = 1');
    });
    store = new ConsoleStore(join(dir, 'console', 'console.sqlite'), () => now);
    expect(store.users.list().map(({ name, signedInAt }) => [name, signedInAt])).toEqual([
      ['dana', START + HOUR],
      ['erin', null],
    ]);
    store.users.noteSignIn('erin');
    expect(store.users.get('erin').signedInAt).toBe(now);
  });

  it('are in a file that only its owner can read', () => {
    expect(statSync(join(dir, 'console', 'console.sqlite')).mode & 0o777).toBe(0o600);
  });
});

describe('events', () => {
  it('of outsiders do not displace those of users, however many there are', () => {
    store.users.add('dana', 'operator', 'me');
    for (let n = 0; n < LIMITS.consoleEvents.value; n += 2) {
      store.events.note('-', 'sign_in.refused', `from ${n}`);
      store.events.note('account:pro', 'sign_in', `key ${n}`);
    }
    const kept = store.events.latest(2 * LIMITS.consoleEvents.value);
    // Rows are removed a hundred at a time.
    expect(kept.length - LIMITS.consoleOutsideEvents.value).toBeLessThan(100);
    expect(kept.at(-1)).toMatchObject({ actor: 'me', action: 'user.add', detail: 'dana operator' });
  });

  it('of users are removed if there are too many, the oldest first', () => {
    const count = LIMITS.consoleEvents.value + 200;
    for (let n = 1; n <= count; n++) store.events.note('dana', 'sign_in', `password ${n}`);
    const kept = store.events.latest(count);
    expect(kept.length).toBe(LIMITS.consoleEvents.value);
    expect(kept.at(0)).toMatchObject({ detail: `password ${count}` });
  });
});

describe('sessions', () => {
  const begin = (): string => store.sessions.begin({ role: 'viewer', name: 'v', keyId: null, address: '' });

  it('end when unused, and after a maximum time; a page that reloads itself does not count as use', () => {
    const idle = begin();
    now += IDLE_SECONDS - 1;
    expect(store.sessions.find(idle, false)).toBeDefined();
    now += 1;
    expect(store.sessions.find(idle, true)).toBeUndefined();
    const busy = begin();
    const until = now + SESSION_SECONDS;
    while (now + IDLE_SECONDS / 2 < until) {
      now += IDLE_SECONDS / 2;
      expect(store.sessions.find(busy, true)).toBeDefined();
    }
    now = until;
    expect(store.sessions.find(busy, true)).toBeUndefined();
  });

  it('are limited for each name: the one unused for longest is removed', () => {
    const tokens = Array.from({ length: 25 }, () => {
      now += 1;
      return begin();
    });
    const left = tokens.filter((token) => store.sessions.find(token, false) !== undefined);
    expect(left).toEqual(tokens.slice(-20));
  });

  it('have ended, like links, if their time is far ahead because the clock was wrong', () => {
    store.users.add('v', 'viewer', 'me');
    now += 30 * 24 * HOUR;
    const [token, link] = [begin(), store.users.createLink('v', 'me')];
    expect(store.sessions.find(token, false)).toBeDefined();
    now = START;
    expect(store.sessions.find(token, true)).toBeUndefined();
    expect(store.users.useLink(link, ({ name }) => name)).toBeUndefined();
    // A clock that is set back by some minutes signs no user out.
    now = START + 10 * MINUTE;
    const [near, nearLink] = [begin(), store.users.createLink('v', 'me')];
    now = START;
    expect(store.sessions.find(near, true)?.name).toBe('v');
    expect(store.users.useLink(nearLink, ({ name }) => name)).toBe('v');
  });

  it('are listed, those of all and of one, without ended ones', () => {
    const other = { role: 'account', name: 'pro', keyId: 7, address: '192.0.2.1' } as const;
    begin();
    now += IDLE_SECONDS;
    store.sessions.begin(other);
    now += 1;
    const token = begin();
    const found = store.sessions.find(token, false)!;
    expect(store.sessions.all().map(({ name }) => name)).toEqual(['v', 'pro']);
    expect(store.sessions.list(found)).toEqual([found]);
    expect([store.sessions.get(found.hash), store.sessions.get('x')]).toEqual([found, undefined]);
  });

  it('of an account and of a user with the same name are separate', () => {
    const user = begin();
    const account = store.sessions.begin({ role: 'account', name: 'v', keyId: 1, address: '' });
    const found = store.sessions.find(account, true)!;
    expect(store.sessions.list(found)).toEqual([found]);
    store.sessions.endOthers(found);
    expect(store.sessions.find(user, true)?.role).toBe('viewer');
    store.users.add('v', 'viewer', 'me');
    store.users.remove('v', 'me');
    expect([store.sessions.find(user, true), store.sessions.find(account, true)?.role]).toEqual([undefined, 'account']);
  });
});

/** Runs a statement on the console's file over a separate connection. */
const inFile = <T>(run: (file: Database) => T): T => {
  const file = new Sqlite(join(dir, 'console', 'console.sqlite'));
  try {
    return run(file);
  } finally {
    file.close();
  }
};
const fill = (count: number, insert: string): void => {
  const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
  inFile((file) => file.exec(`${numbers} INSERT INTO ${insert} FROM n`));
};
const first = (table: string, of: string): unknown =>
  inFile((file) => file.prepare(`SELECT count(*) AS count, min(${of}) AS first FROM ${table}`).get());

describe('limits', () => {
  it('of sessions: the one unused for longest is removed for a new one', () => {
    fill(
      LIMITS.consoleSessions.value,
      // Only the first one dates from the first second; all were used in the last hour.
      `sessions SELECT 'hash ' || i, 'viewer', 'v' || i, NULL, '', ${now}, ${now} + (i + 1) / 3`,
    );
    now += 2;
    store.sessions.begin({ role: 'viewer', name: 'v', keyId: null, address: '' });
    expect(first('sessions', 'seen_at')).toEqual({ count: LIMITS.consoleSessions.value, first: START + 1 });
  });

  it('of links: the oldest is removed for a new one', () => {
    store.users.add('dana', 'operator', 'me');
    fill(LIMITS.consoleLinks.value, `links SELECT 'hash ' || i, 'dana', ${now} + i`);
    store.users.createLink('dana', 'me');
    expect(first('links', 'expires_at')).toEqual({ count: LIMITS.consoleLinks.value, first: START + 2 });
  });

  it('of users: one more is refused', () => {
    fill(LIMITS.consoleUsers.value - 1, `users SELECT 'user-' || i, 'viewer', NULL, ${now}, NULL`);
    store.users.add('last', 'viewer', 'me');
    expect(() => store.users.add('one-more', 'viewer', 'me')).toThrow(/There are 1000 users, the most possible/);
  });
});

const sample = (at: number, allow: number): Sample => ({
  at,
  requests: { 200: allow, 403: 1 },
  verdicts: { allow },
  latency: [allow, 1],
});

describe('time series', () => {
  it('keep minutes for a day and hours for a quarter, and no more', () => {
    const days = 95;
    for (let at = START; at < START + days * 24 * HOUR; at += 10 * HOUR) {
      store.series.add(Array.from({ length: 600 }, (_, i) => sample(at + i * MINUTE, 1)));
    }
    const minutes = store.series.since(MINUTE, 0);
    const hours = store.series.since(HOUR, 0);
    expect(minutes).toHaveLength(24 * 60);
    expect(hours.length).toBeLessThanOrEqual(92 * 24 + 1);
    expect(hours.length).toBeGreaterThan(91 * 24);
    expect(hours.at(-2)).toEqual({
      at: hours.at(-2)!.at,
      requests: { 200: 60, 403: 60 },
      verdicts: { allow: 60 },
      latency: [60, 60],
    });
    expect(store.series.latest()).toBe(minutes.at(-1)!.at);
  });

  it('continue if the clock was far ahead for a moment, and lose nothing', () => {
    const minutes = (from: number, count: number): Sample[] =>
      Array.from({ length: count }, (_, i) => sample(from + i * MINUTE, 1));
    store.series.add(minutes(START, 3));
    store.series.add(minutes(START + 400 * 24 * HOUR, 2));
    store.series.add(minutes(START + 3 * MINUTE, 2));
    expect(store.series.since(MINUTE, 0)).toEqual(minutes(START, 5));
    expect(store.series.since(HOUR, 0)).toEqual([mergeSamples(START, minutes(START, 5))]);
    expect(store.series.latest()).toBe(START + 4 * MINUTE);
  });

  it('count no minute twice', () => {
    store.series.add([sample(START, 5)]);
    store.series.add([sample(START, 5), sample(START + MINUTE, 7)]);
    expect(store.series.since(HOUR, 0)).toEqual([mergeSamples(START, [sample(START, 5), sample(START + MINUTE, 7)])]);
  });

  it("are computed from a server's counters, and lose nothing when a worker ends", async () => {
    let requests = 100;
    const snapshot = () =>
      Promise.resolve({
        counters: {
          'requests_total{status="200",code="ok"}': requests,
          'verdicts_total{verdict="deny",layer="rules"}': requests / 2,
        },
        gauges: {},
        histograms: { lookup_seconds: { counts: [requests], sumSeconds: 1 } },
      });
    expect(countsOf(await snapshot())).toEqual({ requests: { 200: 100 }, verdicts: { deny: 50 }, latency: [100] });
    const sampler = new Sampler(snapshot, () => now);
    await new Promise((resolve) => setImmediate(resolve));
    requests = 160;
    now += MINUTE;
    await sampler.tick();
    await sampler.tick();
    requests = 150;
    now += 5 * MINUTE;
    await sampler.tick();
    sampler.stop();
    expect(sampler.samples).toEqual([
      { at: START, requests: { 200: 60 }, verdicts: { deny: 30 }, latency: [60] },
      { at: START + MINUTE, requests: {}, verdicts: {}, latency: [0] },
    ]);
  });
});

it('a quantile is in the bucket that contains it', () => {
  expect(quantile([], 0.5)).toBeNull();
  expect(quantile([0, 0], 0.5)).toBeNull();
  const counts = LATENCY_BOUNDS_SECONDS.map(() => 0);
  counts[3] = 100;
  expect(quantile(counts, 0.5)).toBeGreaterThan(LATENCY_BOUNDS_SECONDS[2]);
  expect(quantile(counts, 0.5)).toBeLessThan(LATENCY_BOUNDS_SECONDS[3]);
  expect(quantile(counts, 1)).toBe(LATENCY_BOUNDS_SECONDS[3]);
  expect(quantile([...counts.map(() => 0), 5], 0.5)).toBe(LATENCY_BOUNDS_SECONDS.at(-1));
});

it('values of metrics are parsed from their text, of histograms only sum and count', () => {
  const text = [
    '# HELP pagegate_ready Whether.',
    'pagegate_ready 1',
    'pagegate_requests_total{status="200",code="ok"} 7',
    'pagegate_lookup_seconds_bucket{le="1"} 3',
    'pagegate_lookup_seconds_sum 0.5',
    'pagegate_lookup_seconds_count 3',
  ].join('\n');
  expect([...readValues(text)]).toEqual([
    ['ready', [['', '1']]],
    ['requests_total', [['{status="200",code="ok"}', '7']]],
    [
      'lookup_seconds',
      [
        ['sum', '0.5'],
        ['count', '3'],
      ],
    ],
  ]);
});

it('a limiter counts attempts within its window, and forgets the oldest names first', () => {
  let ms = 0;
  const limiter = new SignInLimiter(2, () => ms);
  limiter.note('a');
  expect(limiter.wait('a')).toBe(0);
  limiter.note('a');
  expect(limiter.wait('a')).toBe(600);
  ms = 599_999;
  expect(limiter.wait('a')).toBe(1);
  ms = 600_000;
  expect(limiter.wait('a')).toBe(0);
  limiter.note('a');
  limiter.note('a');
  limiter.forget('a');
  expect(limiter.wait('a')).toBe(0);
  const takesBack = [limiter.note('b'), limiter.note('b')];
  takesBack[0]!();
  expect(limiter.wait('b')).toBe(0);
  limiter.note('b');
  expect(limiter.wait('b')).toBe(600);
  // A late take-back has no effect: the attempt was forgotten with its window.
  const takeBack = limiter.note('c');
  ms += 600_000;
  limiter.note('c');
  limiter.wait('c');
  takeBack();
  limiter.note('c');
  expect(limiter.wait('c')).toBe(600);
  limiter.note('first');
  limiter.note('first');
  for (let i = 0; i < 10_000; i++) limiter.note(`other ${i}`);
  expect(limiter.wait('first')).toBe(0);
});

describe('the file', () => {
  it.each([
    ['a pipe', (file: string) => void execFileSync('mkfifo', [file])],
    ['a folder', (file: string) => mkdirSync(file)],
    ['no SQLite file', (file: string) => writeFileSync(file, 'x'.repeat(8192))],
  ])('that is %s is refused at once, with what to do', (_what, put) => {
    const file = join(dir, 'other.sqlite');
    put(file);
    expect(() => new ConsoleStore(file)).toThrow(
      expect.objectContaining({
        code: 'console_unavailable',
        message: expect.stringContaining('Move it away, and add the users again.'),
      }),
    );
  });
});
