/** One page in several forms of its path: with a language, as the index file of its folder, with segment parameters. */
import { describe, expect, it } from 'vitest';
import { afterLanguage } from '../../src/policy/url/languages.ts';
import { judge, shipped } from './support.ts';

const allowed = (urls: readonly string[]): string[] => urls.filter((url) => judge(url).startsWith('allow'));

describe('a path behind a language', () => {
  const LANGUAGES = ['en', 'de', 'pt-BR', 'zh-Hans', 'fr_FR', 'us/en', 'en/gb', 'EN', 'en;x=1'];

  it.each([
    '/recovery',
    '/activate',
    '/wishlist',
    '/create',
    '/webmail',
    '/roundcube/',
    '/session/new',
    '/jenkins/manage',
    '/continue-with-sso/x',
    '/?q=user/login',
    '/index.php?controller=authentication',
    '/#login',
  ])('is judged as it is without: %s', (path) => {
    expect(judge(`https://example.org${path}`)).toMatch(/^deny rules/);
    expect(allowed(LANGUAGES.map((language) => `https://example.org/${language}${path}`))).toEqual([]);
  });

  it.each(['https://my.example.org/', 'https://mail.example.org/', 'https://customers.example.org/'])(
    'is the front page, too: %s',
    (url) => {
      expect(judge(url)).toMatch(/^deny rules/);
      expect(allowed(['en', 'en/', '/en/index.html', 'us/en', '/'].map((path) => url + path))).toEqual([]);
    },
  );

  it('is no owner of a source tree', () => {
    for (const path of ['blob/demande/login.html', 'us/en/blob/demande/login.html', 'de/blob/demande/login.html'])
      expect(judge(`https://example.org/${path}`)).toBe('deny rules/login');
    expect(judge('https://example.org/ada/tools/blob/main/login.html')).toMatch(/^allow/);
    expect(judge('https://example.org/en/ada/tools/blob/main/login.html')).toMatch(/^allow/);
  });

  it('does not begin anew in documentation, behind the name of an owner, or behind a section of news', () => {
    const reading = ['docs.example.org/en/login', 'github.com/de/activate', 'example.org/tv/activate'];
    expect(reading.filter((url) => judge(url) !== 'allow default/classified_read')).toEqual([]);
  });

  it.each([
    ['/en/login', '/en/'],
    ['//en//login', '//en//'],
    ['/us/en/login', '/us/en/'],
    ['/en-us;x=1/login', '/en-us;x=1/'],
    ['/en/us/de/login', '/en/us/'],
    ['/zh-hans', '/zh-hans'],
    ['/en', '/en'],
    ['/us/login', '/'],
    ['/e1/login', '/'],
    ['/eng/login', '/'],
    ['/en-usa/login', '/'],
    ['/é/login', '/'],
    ['/', '/'],
    ['', ''],
  ])('begins behind it: %s', (path, before) => {
    expect(path.slice(0, afterLanguage(path))).toBe(before);
  });
});

describe('the index file of a folder', () => {
  it.each([
    'https://example.org/activate',
    'https://example.org/create',
    'https://example.org/invite/accept/5a3b9c1d',
    'https://example.org/posts/12/like',
    'https://example.org/book-it/2024',
    'https://www.rei.com/YourAccountLoginView',
    'https://www.coolblue.nl/mijn-coolblue-account',
    'https://example.org/sign-up/docs',
    'https://example.org/purge?id=5',
    'https://support.example.org/get-bearer-token',
    'https://example.org/graphql?query=mutation%7Bdrop%7Bid%7D%7D',
  ])('is judged as the folder: %s', (url) => {
    const [, path, query] = /^([^?]*)(.*)$/.exec(url)!;
    expect(judge(url)).toMatch(/^deny rules/);
    const files = ['index.html', 'index.php', 'Default.aspx', 'amp', 'amp/'];
    expect(allowed(files.map((file) => `${path}/${file}${query}`))).toEqual([]);
  });

  it('leaves text readable that the folder ends with', () => {
    for (const path of ['/checkout/privacy-policy', '/login/five-ways-to-choose-a-password', '/glossary/login'])
      expect(judge(`https://example.org${path}/index.html`)).toBe(judge(`https://example.org${path}/`));
  });

  it('is judged as the folder wherever a host has places, on the hosts that are listed below it, too', () => {
    const { places, hosts } = shipped.document;
    const bare = (host: string): string => host.replace(/^(?:=|\*\.)/, '');
    const listed = hosts.map(({ host }) => bare(host));
    const folders = places.flatMap((entry) =>
      entry.hosts.flatMap((place) => {
        const templates = [entry.documentation, entry.topic, entry.title, entry.source].flatMap((some) => some ?? []);
        const steps = templates.map((text) =>
          text
            .replace(/\/(?:\*\*|\{\})$/, '')
            .replaceAll('*', 'x')
            .replaceAll('@', 'ada'),
        );
        const name = place.startsWith('*.') ? `a.${bare(place)}` : bare(place);
        const names = [name, `login.${name}`, ...listed.filter((host) => host.endsWith(`.${name}`))];
        return names.flatMap((host) => [...new Set(steps)].map((path) => `https://${host}${path}`));
      }),
    );
    const forms = ['/', '/index.html', '/Default.aspx', '/index.php;x=1', '/home'];
    const lifted = folders
      .flatMap((folder) => [folder, `${folder}/x`, `${folder}/login`])
      .filter((url) => !judge(url).startsWith('allow'))
      .flatMap((url) => allowed(forms.map((form) => url + form)));
    expect(folders.length).toBeGreaterThan(4_000);
    expect(lifted).toEqual([]);
  });

  it('is judged as the folder, where a segment without a name stands between, too', () => {
    expect(judge('https://example.org/settings/docs/;x=1')).toBe('deny rules/settings');
    expect(judge('https://example.org/settings/docs/;x=1/index.html')).toBe('deny rules/settings');
  });

  it('is judged as the folder in a parameter, too', () => {
    for (const page of ['lo-gin', 'user/login', 'lo//gin', 'users/sign_up', 'a/check/out']) {
      const verdict = judge(`https://example.org/?page=${page}`);
      for (const file of ['index.html', 'default.aspx'])
        expect([page, judge(`https://example.org/?page=${page}/${file}`)]).toEqual([page, verdict]);
    }
  });

  it('is nothing where no folder stands before it', () => {
    expect(judge('https://example.org/;x/index.php')).toBe('allow default/classified_read');
  });
});

describe('a query that is encoded into the path', () => {
  it.each(['https://login.example.org/x', 'https://login.microsoft.com/common', 'https://calendly.com/ada/30min'])(
    'announces nothing for the host or the place before it: %s',
    (url) => {
      expect(judge(url)).toMatch(/^deny/);
      expect(allowed(['%3F/docs/x', '%3Fx=1/docs/', '%23/help/y', '&x=1/docs/y'].map((tail) => url + tail))).toEqual(
        [],
      );
      expect(judge(`${new URL('/docs/x', url)}`)).toMatch(/^allow/);
    },
  );
});

describe("a host's own pages", () => {
  it.each(['login', 'session.html', 'Settings.JSON', 'sign-up.php'])('are no owners in any form: %s', (path) => {
    expect(judge(`https://github.com/${path}`)).toMatch(/^deny rules/);
  });

  it('announce nothing as the name of an owner, with a parameter neither', () => {
    for (const owner of ['docs', 'docs;x=1', 'docs;', 'login;x=1'])
      expect(judge(`https://app.travis-ci.com/${owner}/2024/account`)).toMatch(/^deny rules/);
  });

  it.each(['login-tools', 'node.js', 'settings5.x'])('are not what only begins so: %s', (path) => {
    expect(judge(`https://github.com/${path}`)).toMatch(/^allow/);
  });
});

describe('signs that may end a name', () => {
  it.each([
    'https://example.org/a&&&&&setup.exe',
    'https://example.org/todo;s.exe',
    'https://example.org/..env..Sign-Inde=+',
    'https://example.org/edit/%25',
    'https://example.org/graphql?query=mutation%7Bdrop%7Bid%7D%7D',
    'https://example.org/proxy/http://172.16.5.4:3000/x',
    'https://example.org/x/http://evil.example.com:8080/x',
  ])('change nothing before them: %s', (url) => {
    const [, start, end] = /^(.*?)(\/x|\?.*|)$/.exec(url)!;
    expect(judge(url)).not.toMatch(/^allow/);
    const tails = [';x=1', ';v=1.0', '&x=1', '&&x=1', '&x=1&y=2', ';jsessionid=0A1B2C', ';a=b;c=d', '&x=1;v=1.0'];
    expect(allowed(tails.map((tail) => `${start}${tail}${end}`))).toEqual([]);
  });
});

describe('parameters of a segment', () => {
  it('leave a date one, behind which a title announces nothing', () => {
    for (const path of ['2024/5', '2024/5;x=1', '2024;x=1/5'])
      expect(judge(`https://accounts.autodesk.com/${path}/docs`)).toMatch(/^deny high_value_hosts/);
  });

  it('leave a front page one', () => {
    for (const path of ['', ';x=1', '%c1', '%c1;x=1', '~;x=1;y/', 'en/-;x'])
      expect(judge(`https://example.org/${path}#user/account`)).toBe('deny rules/account');
    expect(judge('https://example.org/a;x=1#user/account')).toMatch(/^allow/);
  });

  it('leave what is searched by a search', () => {
    for (const tail of ['', ';v=1.0', ';'])
      expect(judge(`https://dashboard.godaddy.com/search/label${tail}/docs`)).toMatch(/^deny high_value_hosts/);
  });

  it('are no part of the number or the key before a word', () => {
    for (const key of ['5', 'a1b2c3d4', '2024-11-05-12'])
      for (const tail of ['', ';jsessionid=0A1B2C', ';x=1', ';'])
        expect([tail, judge(`https://example.org/${key}${tail}/run`)]).toEqual([
          tail,
          judge(`https://example.org/${key}/run`),
        ]);
    expect(judge('https://example.org/5;jsessionid=0A1B2C/run')).toBe('deny rules/action_get');
  });
});

describe('a program within a path', () => {
  it('leads to no text, whatever parameters it has', () => {
    for (const program of ['index.php', 'index.php;x=1', 'app.do;jsessionid=0A1B2C;y'])
      expect(judge(`https://example.org/${program}/login/five-ways-to-choose-a-password`)).toBe('deny rules/login');
    expect(judge('https://example.org/a.b;x.php/login/five-ways-to-choose-a-password')).toMatch(/^allow/);
  });
});

describe('a dictionary', () => {
  it('holds entries, and no programs', () => {
    const entries = ['terminology/login', 'glossary/l/login', 'hosting-lexikon/warenkorb', 'wörterbuch/a/anmelden'];
    for (const path of entries) expect(judge(`https://example.org/${path}`)).toBe('allow default/classified_read');
    const programs = ['terminology/api/token', 'terminology/oauth2/token', 'terminology/v1/oauth/authorize'];
    expect(allowed(programs.map((path) => `https://example.org/${path}`))).toEqual([]);
  });
});

describe('an article behind a date', () => {
  it.each(['html', 'htm', 'ghtml', 'shtml', 'xhtml'])(
    'is one with the extension of a written page: .%s',
    (extension) => {
      expect(judge(`https://example.org/noticias/2024/05/03/cadastro.${extension}`)).toBe(
        'allow default/classified_read',
      );
      expect(judge('https://example.org/a/2024/05/03/cadastro.php')).toMatch(/^deny/);
    },
  );
});
