/** The last part of the demo, with a real pagegate that has records of the sample drop. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fetchesOf, showGuardedFetches, startSite } from '../../tools/demo/guard-demo.ts';
import { startTestServer } from '../support/server.ts';
import { closeLater } from './support.ts';

test('a page passes, a login page is refused with its note, a name with an internal address is refused at the connection', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pagegate-demo-'));
  closeLater(() => rmSync(folder, { recursive: true }));
  const site = await startSite();
  closeLater(() => site.close());
  const file = join(folder, 'policy.json');
  const override = { rules: { port: { allowed: [80, 443, site.port] } } };
  writeFileSync(file, JSON.stringify({ format: 'pagegate-policy/1', override }));
  const server = await startTestServer({
    entries: [
      { domain: 'netlify.com', page_types: { pricing: 'https://www.netlify.com/pricing/' } },
      { domain: 'twitch.tv', page_types: { login: 'https://www.twitch.tv/login' } },
      { domain: 'github.com', page_types: {} },
    ],
    config: { policy: { file } },
  });
  closeLater(() => server.stop());
  const lines: string[] = [];
  const fetches = fetchesOf(site.port);
  const wrong = await showGuardedFetches(server.url, server.keys['pro']!, fetches, (_title, line) => lines.push(line));
  expect(wrong).toBe(0);
  expect(lines).toEqual([
    `HTTP 200: The page /pricing/ of www.netlify.com:${site.port}.`,
    expect.stringMatching(
      /^RefusedError: .* deny \(page_type_db\/login\)\. Verified login page .* a retry will not help\.$/,
    ),
    expect.stringMatching(/^RefusedError: .*\(github\.com is 127\.0\.0\.1\)$/),
  ]);
});
