/** Which lines of the decision log are wanted. */

/** A line of the decision log, as `decision_log` writes it; where the URL is masked there is no `url`. */
export interface LoggedDecision {
  /** RFC 3339, in milliseconds, UTC. */
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
  /** This domain and those below it. */
  readonly domain?: string | undefined;
  /** The id of what matched. */
  readonly rule?: string | undefined;
  /** The first and the last moment, RFC 3339 in milliseconds. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** Whether a line is one that is wanted, but for its time. */
export function isWanted(line: LoggedDecision, { verdict, account, domain, rule }: DecisionFilter): boolean {
  return (
    (verdict === undefined || line.verdict === verdict) &&
    (account === undefined || line.account === account) &&
    (rule === undefined || line.matched.id === rule) &&
    (domain === undefined || isBelow(line.domain, domain) || isBelow(line.host, domain))
  );
}

const isBelow = (name: string, domain: string): boolean => name === domain || name.endsWith(`.${domain}`);

/** Texts that every wanted line has: lines without them need not be read as JSON. */
export function needles({ verdict, account, domain, rule }: DecisionFilter): Buffer[] {
  const text = (name: string, value: string | undefined): string[] =>
    value === undefined ? [] : [`"${name}":${JSON.stringify(value)}`];
  const inside = domain === undefined ? [] : [JSON.stringify(domain).slice(1, -1)];
  return [...inside, ...text('account', account), ...text('id', rule), ...text('verdict', verdict)].map((needle) =>
    Buffer.from(needle),
  );
}

/** A line as an object; undefined where it is none of ours, or half of one. */
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
