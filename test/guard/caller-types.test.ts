/** Argument types that programs and libraries pass to a fetch arrive unchanged. */
import type { IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { createGuardedFetch, GuardedAgent } from '../../src/guard/fetch.ts';
import { allowBut, closeLater, createGuard, createJudge, createSite, names } from './support.ts';

interface Arrived {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A site that records requests, and redirects from `/307` to `/x`. */
async function createScene() {
  const arrived: Arrived[] = [];
  const site = await createSite(async (request, response) => {
    arrived.push({ path: request.url!, headers: request.headers, body: await text(request) });
    const status = Number(request.url!.slice(1));
    if (status >= 300) response.writeHead(status, { location: '/x' }).end();
    else response.end();
  });
  const judge = await createJudge(allowBut('/login'));
  const { guard } = createGuard(judge.url, { exceptions: { 'a.example': '127.0.0.1' } });
  const agent = new GuardedAgent(guard, { connect: { lookup: names({ 'a.example': ['127.0.0.1'] }) } });
  closeLater(() => agent.destroy());
  const at = (path: string) => `http://a.example:${site.port}${path}`;
  return { site, arrived, guardedFetch: createGuardedFetch(guard, agent), at };
}

const post = (body: unknown, more: object = {}) => ({ method: 'POST', body, ...more }) as RequestInit;

function form(): FormData {
  const filled = new FormData();
  filled.append('purpose', 'notes');
  filled.append('file', new File(['content of the file'], 'a.txt', { type: 'text/plain' }));
  return filled;
}

/** The form class of another library, not the platform's FormData. */
class OtherForm {
  readonly [Symbol.toStringTag] = 'FormData';
  *[Symbol.iterator]() {
    yield* form();
  }
}

test.each([
  ['the platform', form],
  ['a library', () => new OtherForm()],
])('a form of %s is sent as a form, with its files', async (_name, create) => {
  const { guardedFetch, arrived, at } = await createScene();
  await guardedFetch(at('/x'), post(create()));
  const sent = await new Response(arrived[0]!.body, {
    headers: { 'content-type': arrived[0]!.headers['content-type']! },
  }).formData();
  expect(sent.get('purpose')).toBe('notes');
  expect(await (sent.get('file') as File).text()).toBe('content of the file');
  expect((sent.get('file') as File).name).toBe('a.txt');
});

test.each([
  ['a text', 'text'],
  ['bytes', new TextEncoder().encode('text')],
  ['parameters', new URLSearchParams('a=b')],
  ['a Blob', new Blob(['text'])],
])('%s in a Request has its length, like in any fetch', async (_name, body) => {
  const { guardedFetch, arrived, at } = await createScene();
  await guardedFetch(new Request(at('/x'), post(body)));
  const sent = await new Response(body as string).text();
  expect(arrived).toMatchObject([{ body: sent, headers: { 'content-length': `${sent.length}` } }]);
});

test.each([307, 308])('%i sends the body of a Request again', async (status) => {
  const { guardedFetch, arrived, at } = await createScene();
  expect((await guardedFetch(new Request(at(`/${status}`), post('again')))).status).toBe(200);
  expect(arrived.map(({ path, body }) => `${path} ${body}`)).toEqual([`/${status} again`, '/x again']);
});

test.each([301, 302, 303])('%i of a Request with a body is followed with a GET', async (status) => {
  const { guardedFetch, site, at } = await createScene();
  expect((await guardedFetch(new Request(at(`/${status}`), post('once')))).status).toBe(200);
  expect(site.reached).toEqual([`POST a.example /${status}`, 'GET a.example /x']);
});

test('a large body of a Request arrives complete, as a stream', async () => {
  const { guardedFetch, arrived, at } = await createScene();
  const large = 'x'.repeat(3 * 1024 * 1024);
  await guardedFetch(new Request(at('/x'), post(new Blob([large]))));
  expect(arrived[0]!.body.length).toBe(large.length);
  expect(arrived[0]!.headers['transfer-encoding']).toBe('chunked');
});

test('a body option replaces the body of a Request, which stays unread', async () => {
  const { guardedFetch, arrived, at } = await createScene();
  const request = new Request(at('/x'), post('its own'));
  await guardedFetch(request, { body: 'another' });
  expect(arrived[0]!.body).toBe('another');
  expect(request.bodyUsed).toBe(false);
});

test('a Request is sent only once, like in any fetch', async () => {
  const { guardedFetch, site, at } = await createScene();
  const request = new Request(at('/x'), post('once'));
  await guardedFetch(request);
  expect(request.bodyUsed).toBe(true);
  await expect(guardedFetch(request)).rejects.toThrow(/Body is unusable/);
  expect(site.reached).toHaveLength(1);
});

test('an abort while the body of a Request is read sends nothing, and cancels the body', async () => {
  const { guardedFetch, site, at } = await createScene();
  for (const where of ['in the Request', 'beside it']) {
    const controller = new AbortController();
    let ended = false;
    const endless = new ReadableStream({
      pull: (stream) => {
        stream.enqueue(new Uint8Array(1));
        if (!controller.signal.aborted) controller.abort();
        return new Promise(() => {});
      },
      cancel: () => {
        ended = true;
      },
    });
    const { signal } = controller;
    const isInside = where === 'in the Request';
    const request = new Request(at('/x'), post(endless, { duplex: 'half', ...(isInside && { signal }) }));
    const fetched = guardedFetch(request, isInside ? {} : { signal });
    await expect(fetched, where).rejects.toMatchObject({ name: 'AbortError' });
    expect(ended).toBe(true);
  }
  expect(site.reached).toEqual([]);
});

test('an option that is undefined counts as absent', async () => {
  const { guardedFetch, arrived, at } = await createScene();
  const none = { dispatcher: undefined, body: undefined, method: undefined, headers: undefined, signal: undefined };
  await guardedFetch(at('/x'), none as unknown as RequestInit);
  expect(arrived).toMatchObject([{ path: '/x', body: '' }]);
});
