/** A licensee's own host entries: which of several decides, which hosts and paths they may have, and what is reported about them. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HostEntry } from '../../src/policy/documents.ts';
import { isAskedBefore, placedHosts } from '../../src/policy/host-overlap.ts';
import { checkPolicy } from '../../src/policy/ineffective-entries.ts';
import { compileHosts, hostVerdict } from '../../src/policy/layers/high-value-hosts.ts';
import { Subject } from '../../src/policy/subject.ts';
import { NO_EVIDENCE, type Request } from '../../src/policy/types.ts';
import { HostFilter } from '../../src/policy/url/host-map.ts';
import { runAtOnce } from '../../src/steps.ts';
import { judge, licenseePolicy, request, shipped } from './support.ts';

const NOTE = 'A note that a person can act on.';

const entry = (id: string, host: string, more: Partial<HostEntry> = {}): HostEntry => ({
  id,
  host,
  note: NOTE,
  ...('reads' in more || 'writes' in more ? {} : { verdict: 'deny' as const }),
  ...more,
});

const own = (...hosts: readonly HostEntry[]): Parameters<typeof licenseePolicy>[0] => ({ add: { hosts } });

/** Returns `verdict id` for a URL by host entries alone, or `none` if no entry decides. */
function asked(entries: readonly HostEntry[], url: string, method = 'GET'): string {
  return asker(entries)(request(url, method));
}

/** The same for several requests in turn. */
function asker(entries: readonly HostEntry[]): (request: Request) => string {
  const hosts = runAtOnce(compileHosts(entries, new HostFilter()));
  return (one) => {
    const said = hostVerdict({ hosts, patterns: shipped.patterns }, new Subject(one, NO_EVIDENCE, shipped.tokens));
    return said === undefined ? 'none' : `${said.verdict} ${said.id}`;
  };
}

/** Returns the verdict that docs/verdict.md promises, for plain names and paths. */
function expected(entries: readonly HostEntry[], text: string, method: string): string {
  const { hostname, pathname } = new URL(text);
  const host = hostname.replace(/^www\./, '');
  const names = pathname.toLowerCase().split('/').filter(Boolean);
  const isAt = (path: string): boolean =>
    path
      .split('/')
      .filter(Boolean)
      .every((name, at) => {
        const own = names[at];
        return own !== undefined && (name.endsWith('*') ? own.startsWith(name.slice(0, -1)) : own === name);
      });
  const said = entries.flatMap((one) => {
    const verdict = (method === 'GET' ? one.reads : one.writes) ?? one.verdict;
    const name = one.host.replace(/^=|^\*\./, '');
    const isBelow = host.endsWith(`.${name}`);
    const isReached = one.host[0] === '=' ? host === name : isBelow || (one.host[0] !== '*' && host === name);
    if (verdict === undefined || !isReached) return [];
    // An entry for one host only, or for its subdomains only, is nearer than one for both.
    const near = name.length * 2 + (/^[=*]/.test(one.host) ? 1 : 0);
    const lengths = one.paths?.filter(isAt).map((path) => path.replaceAll('*', '').length) ?? [-1];
    return lengths.map((length) => ({ verdict, near, length }));
  });
  said.sort((one, other) => other.near - one.near || other.length - one.length || (one.verdict === 'deny' ? -1 : 1));
  return said[0]?.verdict ?? 'none';
}

describe('of several entries for one host', () => {
  const entries = [
    entry('all', 'example.com', { verdict: 'flag' }),
    entry('sent', 'example.com', { writes: 'deny', paths: ['/a/b'] }),
    entry('near', 'example.com', { paths: ['/a'] }),
    entry('far', 'example.com', { verdict: 'flag', paths: ['/a/*/c'] }),
    entry('some', 'example.com', { verdict: 'flag', paths: ['/x*'] }),
    entry('one', 'example.com', { paths: ['/*'] }),
  ];

  it.each([
    ['https://example.com/', 'GET', 'flag all'],
    ['https://example.com/q', 'GET', 'deny one'],
    ['https://example.com/xyz', 'GET', 'flag some'],
    ['https://example.com/a/x', 'GET', 'deny near'],
    ['https://example.com/a/b/x', 'GET', 'deny near'],
    ['https://example.com/a/b/x', 'POST', 'deny sent'],
    ['https://example.com/a/z/c', 'GET', 'flag far'],
  ])('the nearest place that says something decides: %s with %s gets %s', (url, method, expected) => {
    expect(asked(entries, url, method)).toBe(expected);
    expect(asked(entries.toReversed(), url, method)).toBe(expected);
  });

  const place = fc.array(fc.constantFrom('a', 'b', '*', 'a*'), { minLength: 1, maxLength: 3 });
  const said = fc.constantFrom('deny' as const, 'flag' as const);
  const random = fc.record(
    {
      host: fc.constantFrom('example.com', '=example.com', '*.example.com', 'b.example.com'),
      paths: fc.option(
        fc.array(
          place.map((names) => `/${names.join('/')}`),
          { minLength: 1, maxLength: 2 },
        ),
      ),
      reads: said,
      writes: said,
    },
    { requiredKeys: ['host', 'paths'] },
  );
  const drawn = fc.uniqueArray(random, { maxLength: 6, selector: ({ host, paths }) => (paths === null ? host : {}) });
  const entriesOf = (some: typeof drawn extends fc.Arbitrary<infer T> ? T : never): HostEntry[] =>
    some.map(({ host, paths, ...verdicts }, at) =>
      entry(`e${at}`, host, { ...verdicts, ...(paths === null ? {} : { paths }) }),
    );
  const url = fc
    .tuple(fc.constantFrom('', 'b.', 'a.b.', 'www.'), fc.array(fc.constantFrom('a', 'b', 'ab', 'A'), { maxLength: 4 }))
    .map(([label, names]) => `https://${label}example.com/${names.join('/')}`);
  const method = fc.constantFrom('GET', 'POST');
  const verdict = (some: readonly HostEntry[], text: string, asks: string): string =>
    asked(some, text, asks).split(' ')[0]!;

  it('that are equally near, one decides for reads and another for writes', () => {
    const both = [
      entry('reads', 'example.com', { reads: 'deny', writes: 'flag', paths: ['/a'] }),
      entry('writes', 'example.com', { reads: 'flag', writes: 'deny', paths: ['/a'] }),
    ];
    for (const some of [both, both.toReversed()]) {
      expect(asked(some, 'https://example.com/a')).toBe('deny reads');
      expect(asked(some, 'https://example.com/a', 'POST')).toBe('deny writes');
    }
  });

  it('the first in the order of the document decides', () => {
    fc.assert(
      fc.property(drawn.map(entriesOf), url, method, (some, text, asks) => {
        expect(verdict(some, text, asks)).toBe(expected(some, text, asks));
      }),
    );
  });

  it('their order in the file does not matter', () => {
    fc.assert(
      fc.property(drawn.map(entriesOf), url, method, (some, text, asks) => {
        expect(verdict(some.toReversed(), text, asks)).toBe(verdict(some, text, asks));
      }),
    );
  });

  it('one more that denies lifts no denial', () => {
    fc.assert(
      fc.property(drawn.map(entriesOf), random, url, method, (some, more, text, asks) => {
        const { paths } = more;
        fc.pre(paths !== null || !some.some((other) => other.host === more.host && other.paths === undefined));
        const added = entry('more', more.host, paths === null ? {} : { paths });
        if (verdict(some, text, asks) === 'deny') expect(verdict([...some, added], text, asks)).toBe('deny');
      }),
    );
  });
});

describe('a denial of the licensee below a place that ships and flags', () => {
  it('holds', () => {
    const policy = licenseePolicy(own(entry('raw', 'pastebin.com', { paths: ['/raw'] })));
    expect(judge('https://pastebin.com/raw/x', {}, 'GET', policy)).toBe('deny high_value_hosts/raw');
    expect(judge('https://pastebin.com/x', {}, 'GET', policy)).toBe('flag high_value_hosts/pastebin.com');
    expect(policy.warnings).toEqual([]);
  });
});

describe('hosts with www.', () => {
  it('are the host itself; below one is less than beside it', () => {
    const below = [entry('below', '*.www.example.com')];
    expect(asked(below, 'https://x.www.example.com/')).toBe('deny below');
    expect(asked(below, 'https://mail.example.com/')).toBe('none');
    expect(asked([entry('one', '=www.example.com')], 'https://example.com/')).toBe('deny one');
    const allow = [{ id: 'a', host: '*.www.example.com', path: '/', methods: ['POST'] }];
    expect(judge('https://api.example.com/', {}, 'POST', licenseePolicy({ allow }))).toMatch(/^deny/);
  });
});

describe('the paths of an entry', () => {
  it.each(['/A/', '/a;x=1', '/a.', '//a', '/\u0061', '/a /'])('are read as those of URLs: %s', (path) => {
    expect(asked([entry('a', 'example.com', { paths: [path] })], 'https://example.com/a/b')).toBe('deny a');
  });

  it('may have accents in any form', () => {
    const composed = [entry('a', 'example.com', { paths: ['/a\u0308'] })];
    expect(asked(composed, 'https://example.com/%C3%A4')).toBe('deny a');
  });

  it.each([
    ['/a%20b', 'stands in no URL: there it is "/a b"'],
    ['/x?y=1', 'stands in no URL: there it is "/x"'],
    ['/a/../b', 'stands in no URL: there it is "/b"'],
    ['/a#b', 'stands in no URL: there it is "/a"'],
    ['/a/**', 'a "*" must be a whole segment, or end one'],
    ['/a*b', 'a "*" must be a whole segment, or end one'],
  ])('that stand in no URL are refused: %s', (path, expected) => {
    for (const document of [
      own(entry('a', 'x.org', { paths: [path] })),
      { override: { hosts: { 'bit.ly': { paths: [path] } } } },
    ])
      expect(() => licenseePolicy(document)).toThrow(expected);
  });
});

describe('what is said of an entry', () => {
  it('nothing of what ships and is superfluous by it', () => {
    const policy = licenseePolicy(own(entry('all', 'google.com')));
    expect(checkPolicy(policy, shipped)).toEqual([]);
    expect(policy.warnings).toEqual([
      expect.stringMatching(
        /^The host entry "all" does not deny where what ships stands nearer and flags: .*docs\.google\.com\/forms/,
      ),
    ]);
    expect(judge('https://docs.google.com/forms/d/x', {}, 'GET', policy)).toMatch(/^flag/);
  });

  it('that it changes nothing, unless another one stands between', () => {
    const entries = [
      entry('out', 'example.com'),
      entry('mid', 'b.example.com', { verdict: 'flag' }),
      entry('in', 'c.b.example.com'),
      entry('idle', 'd.example.com', { paths: ['/x'] }),
    ];
    expect(checkPolicy(licenseePolicy(own(...entries)), shipped).map(({ id, by }) => `${id} by ${by}`)).toEqual([
      'idle by out',
    ]);
  });

  it.each([
    ['a host below it', entry('wide', 'example.com'), entry('in', '=a.example.com'), 'in by wide'],
    ['what is below it alone', entry('wide', 'example.com'), entry('in', '*.example.com'), 'in by wide'],
    ['a part of it', entry('wide', '*.example.com'), entry('in', '=example.com'), ''],
  ])('not that it is covered by %s', (_what, wide, inner, found) => {
    for (const some of [
      [wide, inner],
      [inner, wide],
    ])
      expect(
        checkPolicy(licenseePolicy(own(...some)), shipped)
          .map(({ id, by }) => `${id} by ${by}`)
          .join(),
      ).toBe(found);
  });

  it('not that what is allowed below a host is denied or allowed already, because one such host is', () => {
    const allow = (id: string, host: string): object => ({ id, host, path: '/', methods: ['GET'] });
    const one = allow('one', 'a.example.com');
    const all = allow('all', '*.example.com');
    const denied = licenseePolicy({ ...own(entry('deny', 'a.example.com')), allow: [all] });
    expect(checkPolicy(denied, shipped)).toEqual([]);
    expect(checkPolicy(licenseePolicy({ allow: [one, all] }), shipped)).toEqual([]);
    const idle = checkPolicy(licenseePolicy({ allow: [all, one] }), shipped);
    expect(idle.map(({ id, by }) => `${id} by ${by}`)).toEqual(['one by all']);
  });

  it('that a denial ends for the host itself, where what is below is still denied', () => {
    const { warnings } = licenseePolicy({ disable: ['paypal.com'], ...own(entry('below', '*.paypal.com')) });
    expect(warnings.join(' ')).toContain('paypal.com');
    const kept = licenseePolicy({ disable: ['paypal.com'], ...own(entry('both', 'paypal.com')) });
    expect(kept.warnings).toEqual([]);
  });

  it('not that it weakens what stands nearer', () => {
    const policy = licenseePolicy(own(entry('mine', 'beeceptor.com', { verdict: 'flag', paths: ['/a/b'] })));
    expect(policy.warnings).toEqual([]);
  });

  it.each([
    [entry('mine', 'sub.paypal.com', { verdict: 'flag', paths: ['/pay'] }), ['reads', 'writes']],
    [entry('mine', 'paypal.com', { reads: 'flag', paths: ['/pay'] }), ['reads']],
    [entry('mine', 'discord.com', { verdict: 'flag' }), []],
  ])('that it weakens what ships, wherever it does: %j', (added, kinds) => {
    expect(licenseePolicy(own(added)).warnings).toEqual(
      kinds.map((kind) => `The host entry "mine" weakens "paypal.com", which ships and denies its ${kind}.`),
    );
  });

  it('that it weakens what another wildcard of the same host denies, exactly where some path is at both', () => {
    const names = ['', 'a', 'b', 'ab', 'abc'];
    const paths = names.flatMap((first) => names.map((second) => [first, second].filter(Boolean).join('/')));
    const requests = paths.map((path) => request(`https://x.example.org/${path}`));
    const step = fc.constantFrom('a', 'b', 'ab', '*', 'a*', 'ab*');
    const place = fc.array(step, { minLength: 1, maxLength: 2 }).map((steps) => `/${steps.join('/')}`);
    fc.assert(
      fc.property(place, place, (flagged, denied) => {
        const one = entry('one', 'x.example.org', { verdict: 'flag', paths: [flagged] });
        const other = entry('other', 'x.example.org', { paths: [denied] });
        const [both, alone] = [asker([one, other]), asker([other])];
        const isWeaker = requests.some((asks) => both(asks) === 'flag one' && alone(asks) !== 'none');
        const [placed, top] = placedHosts([one, other]);
        expect(isAskedBefore(placed!, top!)).toBe(isWeaker);
      }),
    );
  });

  it('that it reaches all sites of a suffix, of what excuses too', () => {
    const document = {
      excuse: [{ rule: 'port', host: '*.co.uk' }],
      add: { places: [{ hosts: ['com'], source: ['/**'] }] },
    };
    expect(licenseePolicy(document).warnings.slice(1)).toEqual([
      'The excuse of "port" reaches every site under the public suffix co.uk: "*.co.uk".',
      'A place of "add.places" reaches every site under the public suffix com: "com".',
    ]);
  });
});
