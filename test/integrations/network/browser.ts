/** Debian's Chromium, headless, behind a proxy whose certificate authority it trusts as a user would: through its own certificate store. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stop } from '../world.ts';

export interface Browser {
  /** Opens a page and leaves it open until `close`. */
  open(url: string): void;
  /** Returns the HTML of a page as the browser shows it. */
  dump(url: string): Promise<string>;
  close(): Promise<void>;
}

export interface BrowserOptions {
  /** The value of `--proxy-server`. */
  readonly proxy: string;
  /** The proxy's certificate authority, PEM. */
  readonly caFile?: string;
}

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-popup-blocking',
  '--disable-features=OptimizationHints,MediaRouter',
];

export function createBrowser({ proxy, caFile }: BrowserOptions): Browser {
  const home = mkdtempSync(join(tmpdir(), 'pagegate-browser-'));
  const store = join(home, '.pki/nssdb');
  mkdirSync(store, { recursive: true });
  const certutil = (...words: string[]): unknown => execFileSync('certutil', ['-d', `sql:${store}`, ...words]);
  certutil('-N', '--empty-password');
  if (caFile !== undefined) certutil('-A', '-t', 'C,,', '-n', 'proxy', '-i', caFile);
  const children: ReturnType<typeof spawn>[] = [];
  let profiles = 0;
  const start = (words: readonly string[]): ReturnType<typeof spawn> => {
    profiles += 1;
    const profile = `--user-data-dir=${join(home, `profile-${profiles}`)}`;
    // Without the second switch, requests to loopback would bypass the proxy.
    const way = [`--proxy-server=${proxy}`, '--proxy-bypass-list=<-loopback>'];
    const child = spawn('/usr/bin/chromium', [...FLAGS, ...way, profile, ...words], {
      env: { ...process.env, HOME: home },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    children.push(child);
    return child;
  };
  return {
    open(url) {
      start(['--remote-debugging-port=0', url]).stdout?.resume();
    },
    dump(url) {
      const child = start(['--dump-dom', '--virtual-time-budget=5000', url]);
      return new Promise((resolve) => {
        let text = '';
        child.stdout?.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        child.once('close', () => resolve(text));
      });
    },
    async close() {
      for (const child of children) await stop(child);
      rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}
