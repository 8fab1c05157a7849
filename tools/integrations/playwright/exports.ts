/** The exports of `pagegate-guard/playwright`. */
export { BrowserProxy, type BrowserProxyOptions, startBrowserProxy } from '../browser/browser-proxy.ts';
export { type GuardContextOptions, guardContext } from './guard-context.ts';
