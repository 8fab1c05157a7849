/** What `pagegate-guard/playwright` offers. */
export { BrowserProxy, type BrowserProxyOptions, startBrowserProxy } from '../browser/browser-proxy.ts';
export { type GuardContextOptions, guardContext } from './guard-context.ts';
