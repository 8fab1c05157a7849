/**
 * The last part of the demo: an agent's own fetch under the guard. The demo's resolver resolves public names to a site on loopback. The guard
 * permits exactly that address for exactly these names. No external site is contacted.
 */
import { createServer } from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import { createGuardedFetch, GuardedAgent } from '../../src/guard/fetch.ts';
import { Guard } from '../../src/guard/guard.ts';
import { RefusedError } from '../../src/guard/refusal.ts';

const SITE_ADDRESS = '127.0.0.1';
/** The names that the demo's resolver knows. All resolve to the local site, but the guard permits this only for the first two. */
const ALLOWED_HOST = 'www.netlify.com';
const DENIED_HOST = 'www.twitch.tv';
const REBOUND_HOST = 'github.com';

/** A fetch of the demo, and its expected outcome: a status, or the id of the refusal. */
export interface GuardedFetch {
  readonly title: string;
  readonly url: string;
  readonly expected: number | string;
}

export interface LocalSite {
  readonly port: number;
  close(): void;
}

/** Starts a web site on loopback. It answers every path, so every refusal comes from the guard. */
export async function startSite(): Promise<LocalSite> {
  const server = createServer((request, response) => {
    response
      .writeHead(200, { 'content-type': 'text/plain' })
      .end(`The page ${request.url} of ${request.headers.host}.`);
  });
  await new Promise<void>((resolve) => server.listen(0, SITE_ADDRESS, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

export const fetchesOf = (port: number): readonly GuardedFetch[] => [
  { title: 'A page for reading: fetched', url: `http://${ALLOWED_HOST}:${port}/pricing/`, expected: 200 },
  { title: 'A login page: refused, with the note', url: `http://${DENIED_HOST}:${port}/login`, expected: 'login' },
  {
    title: 'An allowed name that leads into the own network: refused at the connection',
    url: `http://${REBOUND_HOST}:${port}/about`,
    expected: 'inside_address',
  },
];

const resolver: LookupFunction = (name, _options, found) => {
  if (![ALLOWED_HOST, DENIED_HOST, REBOUND_HOST].includes(name))
    return found(new Error(`no such name: ${name}`), '', 0);
  return found(null, [{ address: SITE_ADDRESS, family: 4 }]);
};

/** Makes the fetches as an agent would, and prints the outcome of each. Returns how many did not have the expected outcome. */
export async function showGuardedFetches(
  server: string,
  key: string,
  fetches: readonly GuardedFetch[],
  say: (title: string, line: string, isExpected: boolean) => void,
): Promise<number> {
  const exceptions = { [ALLOWED_HOST]: SITE_ADDRESS, [DENIED_HOST]: SITE_ADDRESS };
  const guard = new Guard({ server, key, exceptions });
  const agent = new GuardedAgent(guard, { connect: { lookup: resolver } });
  const guardedFetch = createGuardedFetch(guard, agent);
  let wrong = 0;
  for (const { title, url, expected } of fetches) {
    const { outcome, line } = await guardedFetch(url).then(
      async (response) => ({ outcome: response.status, line: `HTTP ${response.status}: ${await response.text()}` }),
      (error: Error) => ({
        outcome: error instanceof RefusedError ? error.id : '',
        line: `${error.name}: ${error.message}`,
      }),
    );
    if (outcome !== expected) wrong += 1;
    say(`${title}\nawait guardedFetch('${url}')`, line, outcome === expected);
  }
  await agent.destroy();
  guard.close();
  return wrong;
}
