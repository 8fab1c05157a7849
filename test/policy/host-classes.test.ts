/**
 * Hosts where opening a URL is an act, or that take data in: the act of each entry in all its spellings, and the pages that their companies
 * have to read.
 */
import { describe, expect, it } from 'vitest';
import type { HostEntry } from '../../src/policy/documents.ts';
import { judge, licenseePolicy, shipped } from './support.ts';

const GROUPS = [
  'capture',
  'chat_hook',
  'paste',
  'payment',
  'scheduling',
  'invitation',
  'deployment',
  'sharing',
  'form',
];

/** URLs that an entry is about: below its host and each of its paths, with names that mean nothing. */
function actsOf({ host, paths = [''] }: HostEntry): URL[] {
  const name = host.replace(/^=|^\*\./, host.startsWith('*') ? 'ada-k7q2.' : '');
  return paths.map((path) => new URL(`https://${name}${path.replaceAll('*', 'ada')}/k7Q2-x9`));
}

/** Ways to write the same request, and requests that lead to the same page. */
const SPELLINGS: Readonly<Record<string, (url: URL) => string>> = {
  'as it is': ({ href }) => href,
  'with http': ({ host, pathname }) => `http://${host}${pathname}`,
  'in an upper-case host': ({ host, pathname }) => `https://${host.toUpperCase()}${pathname}`,
  'in upper case': ({ host, pathname }) => `https://${host}${pathname.toUpperCase()}`,
  'with a dot behind the host': ({ host, pathname }) => `https://${host}.${pathname}`,
  'with www.': ({ host, pathname }) => `https://www.${host}${pathname}`,
  'with its port': ({ host, pathname }) => `https://${host}:443${pathname}`,
  'with a slash at its end': ({ href }) => `${href}/`,
  'with slashes twice': ({ host, pathname }) => `https://${host}${pathname.replaceAll('/', '//')}`,
  'with a segment and back': ({ host, pathname }) => `https://${host}/docs/..${pathname}`,
  'with parameters of segments': ({ host, pathname }) => `https://${host}${pathname.replaceAll(/(?<=\w)\//g, ';a=1/')}`,
  'in percent escapes': ({ host, pathname }) =>
    `https://${host}${pathname.replaceAll(/[a-z+$@]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)}`,
  'with a query': ({ href }) => `${href}?utm_source=docs&lang=en`,
  'with a fragment': ({ href }) => `${href}#/help/docs`,
};

describe.each(GROUPS)('hosts of the group %s', (group) => {
  const entries = shipped.document.hosts.filter((entry) => entry.group === group);

  it.each(Object.entries(SPELLINGS))('are not allowed %s, and take nothing that is sent', (_, spell) => {
    const urls = entries.flatMap(actsOf).map(spell);
    expect(urls.length).toBeGreaterThan(30);
    const denied = entries[0]!.verdict === 'deny';
    expect(urls.filter((url) => judge(url).startsWith('allow'))).toEqual([]);
    if (denied) expect(urls.filter((url) => !judge(url).startsWith('deny'))).toEqual([]);
    expect(urls.filter((url) => !judge(url, {}, 'POST').startsWith('deny'))).toEqual([]);
  });

  it('are switched off together', () => {
    const off = licenseePolicy({ disable: [`group:${group}`] });
    expect(off.document.hosts.filter((entry) => entry.group === group)).toEqual([]);
    expect(off.document.hosts.length).toBe(shipped.document.hosts.length - entries.length);
  });
});

describe('acts of well-known hosts', () => {
  it.each(
    Object.entries({
      scheduling: [
        'https://calendly.com/ada/30min?month=2026-11',
        'https://cal.com/ada/intro',
        'https://calendar.google.com/calendar/render?action=TEMPLATE&text=x',
        'https://calendar.google.com/calendar/u/0/r/eventedit?text=x',
        'https://www.when2meet.com/?123-abcde',
        'https://doodle.com/meeting/participate/id/b4WzwgJa/vote',
        'https://ada.youcanbook.me/',
      ],
      invitation: [
        'https://discord.com/invite/abc',
        'https://canary.discord.com/invite/abc',
        'https://t.me/+v2cZ4q1DXNdkMjI8',
        'https://t.me/%2Bv2cZ4q1DXNdkMjI8',
        'https://t.me/joinchat/AAAAA',
        'https://chat.whatsapp.com/Bz3qAOuhRY45',
        'https://join.slack.com/t/acme/shared_invite/zt-1rc',
        'https://us02web.zoom.us/j/123456789?pwd=x',
        'https://meet.google.com/abc-defg-hij',
        'https://line.me/R/ti/p/@ada',
      ],
      deployment: [
        'https://vercel.com/new/clone?repository-url=https%3A%2F%2Fgithub.com%2Fa%2Fb',
        'https://render.com/deploy?repo=https://github.com/a/b',
        'https://insiders.vscode.dev/redirect/mcp/install?name=x&config=y',
        'https://github.com/new?template_name=x',
        'https://github.com/ada/tool/fork',
        'https://github.com/apps/renovate/installations/new',
        'https://docs.google.com/document/d/1aBcD/copy',
      ],
      sharing: [
        'https://www.pinterest.com/pin/create/button/?description=x',
        'https://de.pinterest.com/pin/create/link/',
        'https://twitter.com/home?status=x',
        'https://x.com/intent/favorite?tweet_id=1',
        'https://m.facebook.com/sharer.php?u=x',
        'https://www.facebook.com/dialog/feed?app_id=1',
        'https://www.tumblr.com/widgets/share/tool?caption=x',
        'https://getpocket.com/save?title=x',
      ],
      payment: [
        'https://cash.app/$ada',
        'https://cash.app/%24ada/25',
        'https://venmo.com/u/ada',
        'https://app.swish.nu/1/p/sw/?sw=123&amt=10',
        'https://www.pay.gov/public/form/start/60485840',
        'https://www.zeffy.com/en-US/donation-form/acme',
      ],
    }).flatMap(([group, urls]) => urls.map((url) => [url, group])),
  )('%s is denied as %s', (url, group) => {
    expect(judge(url!)).toMatch(/^deny high_value_hosts\//);
    const id = judge(url!).replace('deny high_value_hosts/', '');
    expect(shipped.document.hosts.find((entry) => entry.id === id)?.group).toBe(group);
  });

  it.each([
    ['https://docs.google.com/forms/d/e/1FAIpQLS/viewform', 'flag high_value_hosts/docs.google.com/forms'],
    ['https://docs.google.com/a/example.org/forms/d/e/1FAIpQLS/viewform', 'flag high_value_hosts/docs.google.com/a'],
    ['https://docs.google.com/forms/d/e/1FAIpQLS/formResponse?entry.1=x&submit=Submit', 'deny rules/post'],
    ['https://form.typeform.com/to/abc#email=x', 'flag high_value_hosts/typeform.com/to'],
    ['https://forms.office.com/Pages/ResponsePage.aspx?id=x', 'flag high_value_hosts/forms.office.com'],
    ['https://es.surveymonkey.com/r/ABC', 'flag high_value_hosts/surveymonkey.com/r'],
    ['https://airtable.com/appAbC/pagDeF/form', 'flag high_value_hosts/airtable.com'],
    ['https://www.123formbuilder.com/form-2709121/x', 'flag high_value_hosts/123formbuilder.com/embed'],
    ['https://www.cognitoforms.com/Acme/Intake', 'flag high_value_hosts/cognitoforms.com'],
    ['https://www.dropbox.com/request/abc', 'flag high_value_hosts/dropbox.com/request'],
  ])('%s: %s', (url, expected) => {
    expect(judge(url)).toBe(expected);
  });
});

/** Pages that the companies of these entries have for everybody to read. */
const READING: Readonly<Record<string, readonly string[]>> = {
  sharing: [
    'https://www.pinterest.com/pin/1234567890/',
    'https://www.pinterest.com/ideas/',
    'https://twitter.com/ada/status/1',
    'https://www.linkedin.com/company/acme',
    'https://www.reddit.com/r/typescript/',
    'https://getpocket.com/explore',
    'https://flipboard.com/topic/cooking',
    'https://vk.com/ada',
    'https://b.hatena.ne.jp/entry/s/example.org/a',
    'https://news.ycombinator.com/item?id=1',
  ],
  scheduling: [
    'https://calendly.com/',
    'https://calendly.com/pricing',
    'https://calendly.com/integration/zapier',
    'https://calendly.com/customers/acme',
    'https://calendly.com/legal/privacy-notice',
    'https://help.calendly.com/hc/en-us/articles/1',
    'https://developer.calendly.com/api-docs/overview',
    'https://cal.com/docs/platform',
    'https://cal.com/blog/open-source',
    'https://cal.com/scheduling/feature/round-robin',
    'https://calendly.com/for/education',
    'https://cal.com/apps/zoom',
    'https://zeeg.me/en/pricing',
    'https://calendar.google.com/calendar/embed?src=x',
    'https://calendar.google.com/calendar/ical/x/public/basic.ics',
    'https://doodle.com/en/resources/blog/meetings/',
    'https://help.simplybook.me/index.php/Integration',
    'https://crab.fit/',
  ],
  invitation: [
    'https://discord.com/',
    'https://discord.com/developers/docs/intro',
    'https://discord.com/safety',
    'https://support.discord.com/hc/en-us',
    'https://t.me/telegram',
    'https://t.me/s/telegram/12',
    'https://core.telegram.org/api/links',
    'https://slack.com/pricing',
    'https://faq.whatsapp.com/1',
    'https://www.whatsapp.com/legal',
    'https://zoom.us/pricing',
    'https://developers.zoom.us/docs/',
    'https://support.zoom.us/hc/en-us',
    'https://whereby.com/information/pricing',
    'https://developers.line.biz/en/docs/',
    'https://trello.com/templates/x',
    'https://partiful.com/about',
    'https://help.webex.com/en-us/article',
  ],
  deployment: [
    'https://vercel.com/',
    'https://vercel.com/docs/deployments',
    'https://vercel.com/templates/next.js',
    'https://render.com/docs/deploy-node-express-app',
    'https://railway.com/pricing',
    'https://devcenter.heroku.com/articles/heroku-button',
    'https://github.com/newrelic/node-newrelic',
    'https://github.com/ada/new',
    'https://github.com/ada/tool/forks',
    'https://github.com/ada/tool/network/dependents',
    'https://github.com/apps/renovate',
    'https://stackblitz.com/edit/vite-abc',
    'https://docs.google.com/document/d/1aBcD/edit?usp=sharing',
    'https://docs.google.com/spreadsheets/d/1aBcD/edit#gid=0',
  ],
  form: [
    'https://www.typeform.com/templates/x',
    'https://www.typeform.com/pricing',
    'https://help.typeform.com/hc/en-us',
    'https://www.jotform.com/blog/x',
    'https://www.jotform.com/form-templates/x',
    'https://tally.so/help/x',
    'https://developers.tally.so/widgets/embeds',
    'https://www.google.com/forms/about/',
    'https://support.google.com/docs/answer/6281888',
    'https://airtable.com/pricing',
    'https://airtable.com/developers/web/api/introduction',
    'https://www.surveymonkey.com/mp/x',
    'https://www.cognitoforms.com/templates/x',
    'https://www.cognitoforms.com/product/two-factor-authentication',
    'https://www.questionpro.com/blog/x',
    'https://www.qualtrics.com/support/x',
    'https://www.fillout.com/help/distribute',
    'https://help.paperform.co/x',
    'https://www.123formbuilder.com/docs/x',
    'https://www.change.org/about',
    'https://strawpoll.com/',
  ],
  payment: [
    'https://cash.app/',
    'https://cash.app/help',
    'https://cash.app/legal/us/en-us/tos',
    'https://venmo.com/about/',
    'https://help.venmo.com/x',
    'https://pay.gov/public/about',
    'https://squareup.com/us/en/pricing',
    'https://developer.squareup.com/docs',
    'https://yoomoney.ru/docs/payment-buttons/using-api',
    'https://www.helloasso.com/blog/x',
    'https://www.patreon.com/policy/legal',
    'https://liberapay.com/about/',
  ],
  paste: [
    'https://www.dropbox.com/help/x',
    'https://support.box.com/hc',
    'https://limewire.com/terms',
    'https://www.transfernow.net/en/pricing',
    'https://docs.onetimesecret.com/en/',
    'https://workupload.com/contact',
  ],
  chat_hook: [
    'https://docs.n8n.io/hosting',
    'https://n8n.io/pricing',
    'https://formcarry.com/blog/x',
    'https://developers.hubspot.com/docs',
    'https://www.make.com/en/help',
  ],
  capture: [
    'https://hookdeck.com/docs',
    'https://hookdeck.com/pricing',
    'https://beeceptor.com/docs',
    'https://www.svix.com/blog/x',
    'https://docs.svix.com/quickstart',
  ],
};

describe('reading pages of the same companies', () => {
  it.each(GROUPS)('stay allowed beside the group %s', (group) => {
    const pages = READING[group]!;
    expect(pages.length).toBeGreaterThanOrEqual(5);
    expect(pages.map((url) => `${judge(url)} ${url}`).filter((line) => !line.startsWith('allow'))).toEqual([]);
  });
});

describe('a place in the path of a host entry', () => {
  const NOTE = 'Desks are for people only.';
  const withHost = (entry: object) =>
    licenseePolicy({ add: { hosts: [{ id: 'x', verdict: 'deny', note: NOTE, ...entry }] } });

  it.each([
    [['/+*'], '/+abc', true],
    [['/+*'], '/+abc/def', true],
    [['/+*'], '/abc', false],
    [['/+*'], '/x/+abc', false],
    [['/*/desk'], '/ada/desk', true],
    [['/*/desk'], '/ada/desk/2', true],
    [['/*/desk'], '/ada/desks', false],
    [['/*/desk'], '/desk', false],
    [['/*/*'], '/ada/desk', true],
    [['/*/*'], '/ada', false],
    [['/*/*'], '/ada/', false],
    [['/*'], '/', false],
    [['/app*/pag*/form'], '/appX/pagY/form', true],
    [['/app*/pag*/form'], '/appX/pagY/grid', false],
  ])('%j and %s: %s', (paths, path, isDenied) => {
    const policy = withHost({ host: 'example.org', paths });
    expect(judge(`https://example.org${path}`, {}, 'GET', policy).startsWith('deny high_value_hosts/x')).toBe(isDenied);
  });

  it('counts whatever it announces, unless it begins with any segment', () => {
    const named = withHost({ host: 'example.org', paths: ['/docs'], not_in: ['reading'] });
    expect(judge('https://example.org/docs/x', {}, 'GET', named)).toBe('deny high_value_hosts/x');
    const any = withHost({ host: 'example.org', paths: ['/*/*'], not_in: ['reading'] });
    expect(judge('https://example.org/docs/x', {}, 'GET', any)).toBe('allow default/classified_read');
    expect(judge('https://example.org/docs/x', {}, 'POST', any)).toBe('deny high_value_hosts/x');
    expect(judge('https://example.org/ada/x', {}, 'GET', any)).toBe('deny high_value_hosts/x');
  });

  it('is not excused by what stands where on a host above it', () => {
    const above = { hosts: ['example.org'], title: ['/item/**'], documentation: ['/tour/**'] };
    const policy = licenseePolicy({
      add: {
        hosts: [{ id: 'x', host: '=desk.example.org', not_in: ['documentation'], verdict: 'deny', note: NOTE }],
        places: [above, { hosts: ['a.example.org'], documentation: ['/tour/**'] }],
      },
    });
    for (const path of ['/item/1', '/tour/1', '/tour'])
      expect(judge(`https://desk.example.org${path}`, {}, 'GET', policy)).toBe('deny high_value_hosts/x');
    const wide = licenseePolicy({
      add: {
        hosts: [{ id: 'x', host: 'example.org', not_in: ['documentation'], verdict: 'deny', note: NOTE }],
        places: [above],
      },
    });
    for (const path of ['/item/1', '/tour/1', '/tour'])
      expect(judge(`https://desk.example.org${path}`, {}, 'GET', wide)).toBe('allow default/classified_read');
    expect(judge('https://login.microsoft.com/products/x')).toMatch(/^deny high_value_hosts/);
    expect(judge('https://accountscenter.facebook.com/user/ada')).toMatch(/^deny high_value_hosts/);
  });

  it('is no act where the paths of the host are known as documentation', () => {
    const policy = licenseePolicy({
      add: {
        hosts: [{ id: 'x', host: 'example.org', paths: ['/*/*'], not_in: ['reading'], verdict: 'deny', note: NOTE }],
        places: [{ hosts: ['example.org'], documentation: ['/tour/**'] }],
      },
    });
    expect(judge('https://example.org/tour/start', {}, 'GET', policy)).toBe('allow default/classified_read');
    expect(judge('https://example.org/ada/start', {}, 'GET', policy)).toBe('deny high_value_hosts/x');
  });
});
