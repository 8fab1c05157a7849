/** Sends pages, downloads and assets, with back-pressure from the browser. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { ASSETS, type Frame, pageHead, pageTail } from './layout.ts';
import { HttpRefusal } from './request.ts';
import type { Download, Page } from './route.ts';

const packed = new Map(ASSETS.map(({ name, bytes }) => [name, gzipSync(bytes, { level: 9 })]));

/** @throws HttpRefusal 404, 405 */
export function sendAsset(req: IncomingMessage, res: ServerResponse, name: string): void {
  const asset = ASSETS.find((one) => one.name === name);
  if (asset === undefined) throw new HttpRefusal(404, 'There is nothing here.');
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    res.setHeader('allow', 'GET');
    throw new HttpRefusal(405, 'Expected GET.');
  }
  const isPacked = /\bgzip\b/.test(String(req.headers['accept-encoding'] ?? ''));
  const body = isPacked ? packed.get(name)! : asset.bytes;
  if (isPacked) res.setHeader('content-encoding', 'gzip');
  res.writeHead(200, {
    'content-type': asset.type,
    'content-length': body.length,
    'cache-control': 'private, max-age=31536000, immutable',
    vary: 'accept-encoding',
  });
  res.end(req.method === 'HEAD' ? undefined : body);
}

/** Sends a page. Pages are not compressed: next to text from others, the compressed size could reveal a secret (BREACH). */
export async function sendPage(
  req: IncomingMessage,
  res: ServerResponse,
  page: Page,
  frame: Frame,
  signal?: AbortSignal,
): Promise<void> {
  const head = pageHead(page, frame).toString();
  const status = page.status ?? 200;
  res.setHeader('content-type', 'text/html; charset=utf-8');
  if (page.more === undefined) {
    const text = head + pageTail().toString();
    res.writeHead(status, { 'content-length': Buffer.byteLength(text) });
    res.end(req.method === 'HEAD' ? undefined : text);
    return;
  }
  res.writeHead(status);
  if (req.method === 'HEAD') {
    res.end();
    return;
  }
  await write(res, head);
  for await (const more of page.more) {
    if (signal?.aborted === true) return;
    await write(res, more.toString());
  }
  res.end(pageTail().toString());
}

export async function sendDownload(
  req: IncomingMessage,
  res: ServerResponse,
  { name, type, body }: Download,
  signal: AbortSignal,
): Promise<void> {
  res.writeHead(200, { 'content-type': type, 'content-disposition': `attachment; filename="${name}"` });
  if (req.method !== 'HEAD') {
    for await (const text of body) {
      if (signal.aborted) return;
      await write(res, text);
    }
  }
  res.end();
}

/** Writes a text and waits until the browser has accepted enough. Always yields, because reading from SQLite never does. */
async function write(res: ServerResponse, text: string): Promise<void> {
  if (text === '' || res.destroyed || res.write(text)) return nextTurn();
  await new Promise<void>((resolve) => {
    const done = (): void => {
      res.off('drain', done);
      res.off('close', done);
      resolve();
    };
    res.once('drain', done);
    res.once('close', done);
  });
}
