/** Filters lines of the decision log. */

/** A line of the decision log. If the URL is masked, there is no `url`. */
export interface LoggedDecision {
  /** RFC 3339 with milliseconds, UTC. */
  readonly time: string;
  readonly id: string;
  readonly account: string;
  readonly method: string;
  readonly url?: string;
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly domain: string;
  readonly found: boolean;
  readonly verdict: string;
  readonly matched: { readonly layer: string; readonly id: string; readonly note: string };
  readonly data: string;
  readonly latency_ms: number;
}

export interface DecisionFilter {
  readonly verdict?: string | undefined;
  readonly account?: string | undefined;
  /** A domain and those below it; with a leading dot, only those below. */
  readonly domain?: string | undefined;
  /** The id of the matched rule or entry. */
  readonly rule?: string | undefined;
  /** The first and the last time, RFC 3339 with milliseconds. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** Whether a line matches the filter; the time is not checked. */
export function isWanted(line: LoggedDecision, { verdict, account, domain, rule }: DecisionFilter): boolean {
  return (
    (verdict === undefined || line.verdict === verdict) &&
    (account === undefined || line.account === account) &&
    (rule === undefined || line.matched.id === rule) &&
    (domain === undefined || isBelow(line.domain, domain) || isBelow(line.host, domain))
  );
}

const isBelow = (name: string, domain: string): boolean =>
  domain.startsWith('.') ? name.endsWith(domain) : name === domain || name.endsWith(`.${domain}`);

/** Returns texts that every matching line contains: other lines need not be parsed as JSON. */
export function needles({ verdict, account, domain, rule }: DecisionFilter): Buffer[] {
  const text = (name: string, value: string | undefined): string[] =>
    value === undefined ? [] : [`"${name}":${JSON.stringify(value)}`];
  const inside = domain === undefined ? [] : [JSON.stringify(domain).slice(1, -1)];
  return [...inside, ...text('account', account), ...text('id', rule), ...text('verdict', verdict)].map((needle) =>
    Buffer.from(needle),
  );
}

/** Parses a line; undefined if it is not a complete line of the decision log. */
export function parseDecision(text: string): LoggedDecision | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const line = value as { readonly [name in keyof LoggedDecision]?: unknown };
  const matched = line.matched as { readonly [name in keyof LoggedDecision['matched']]?: unknown } | null | undefined;
  const texts = [
    line.time,
    line.id,
    line.account,
    line.method,
    line.scheme,
    line.host,
    line.path,
    line.domain,
    line.verdict,
    line.data,
    line.url ?? '',
    matched?.layer,
    matched?.id,
    matched?.note,
  ];
  const isWhole =
    texts.every((one) => typeof one === 'string') &&
    typeof line.found === 'boolean' &&
    typeof line.latency_ms === 'number';
  return isWhole ? (value as LoggedDecision) : undefined;
}
