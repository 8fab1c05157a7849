/** Formats a decision as one line of NDJSON, in the format of the server's decision log. */
import { randomUUID } from 'node:crypto';
import { http } from '../platform/http.ts';
import type { Decision } from './refusal.ts';
import { namesOtherScheme } from './request/scheme.ts';

const MASK = '***';
const KNOWN_METHODS = new Set(http.METHODS);
/** Ids of the shipped rules for URLs or hosts that carry data out. */
const CARRIERS = new Set(['secret_in_url', 'dns_tunnel']);

/**
 * Formats one line, with its line end. Without `fullUrl`, the path is masked and the query left out, because both may hold secrets. A host that
 * may carry data out is masked, too.
 */
export function decisionLine(decision: Decision, fullUrl = false): string {
  const { method, verdict, layer, id, note, domain, found, data } = decision;
  return `${JSON.stringify({
    time: new Date().toISOString(),
    id: randomUUID(),
    method: KNOWN_METHODS.has(method) ? method : 'other',
    ...placeOf(decision, fullUrl),
    domain: CARRIERS.has(id) && !fullUrl ? MASK : domain,
    found,
    verdict,
    matched: { layer, id, note },
    data,
    latency_ms: Math.round(decision.latencyMs * 1_000) / 1_000,
    source: decision.source,
    ...(decision.approved && { approved: true }),
  })}\n`;
}

function placeOf({ url, id }: Decision, fullUrl: boolean): Record<string, string> {
  let parsed: URL | undefined;
  try {
    parsed = new URL(url.includes('://') || namesOtherScheme(url) ? url : `https://${url}`);
  } catch {
    return fullUrl ? { url } : { scheme: '', host: MASK, path: MASK };
  }
  const scheme = parsed.protocol.slice(0, -1);
  if (fullUrl) return { url: parsed.href, scheme, host: parsed.hostname, path: parsed.pathname };
  return { scheme, host: CARRIERS.has(id) ? MASK : parsed.hostname, path: parsed.pathname === '/' ? '/' : `/${MASK}` };
}
