/** The exports of `pagegate-guard/puppeteer`. */
export { BrowserProxy, type BrowserProxyOptions, startBrowserProxy } from '../browser/browser-proxy.ts';
export { type GuardBrowserOptions, guardBrowser } from './guard-browser.ts';
