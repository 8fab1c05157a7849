/**
 * Squid external ACL helper: one line in, one line out. In: `channel URI METHOD` (external_acl_type with `concurrency` and
 * `%URI %METHOD`). Out: `channel OK` for the verdict allow, `channel ERR` for any other, `channel BH` for a line that cannot be
 * parsed; Squid treats the last two as no match. The URI is judged without decoding: Squid escapes characters that would break a line,
 * but not the percent sign, so the decoded URI could differ from the one that is fetched. See README.md in this folder.
 */
import { parseArgs } from 'node:util';
import { ASK_OPTIONS, askerOf, type HelperDecision, plain } from '../ask-guard.ts';
import { startHelper } from '../start-helper.ts';

/** Longest line. Squid's buffer is smaller, so a longer line does not come from Squid. */
const LINE_MAX_CHARS = 64 * 1024;
const CHANNEL = /^[0-9]{1,10}$/;

/** The request in a line, and the channel to answer on. */
export interface AclRequest {
  readonly channel: string;
  readonly url: string;
  readonly method: string;
}

/** Parses a helper line; undefined if it is not valid. Squid appends "-" if the acl line has no arguments. */
export function parseLine(line: string): AclRequest | undefined {
  const [channel, url, method, extra, ...rest] = line.trimEnd().split(' ');
  if (channel === undefined || !CHANNEL.test(channel) || !url || !method) return undefined;
  return rest.length > 0 || (extra !== undefined && extra !== '-') ? undefined : { channel, url, method };
}

/** Returns the URLs to judge, all of which must be allowed. Empty for a tunnel, unless tunnels may be judged by their host alone. */
export function urlsToJudge({ url, method }: AclRequest, tunnels: string): readonly string[] {
  // Paths and methods inside a tunnel are not visible, so it is judged only by its host and port.
  if (method === 'CONNECT') return tunnels === 'judge-host' ? [`https://${url}/`] : [];
  // Squid escapes a number sign here but sends it unescaped, and some sites treat it as the end of the URL. An original `%23` looks the same.
  const sign = url.indexOf('%23');
  return sign === -1 ? [url] : [url, url.slice(0, sign)];
}

/**
 * Returns the answer line for a decision. Squid stores the pairs with the request: `message` is `%o` of the error page, `log` is `%ea` of a
 * log line, and `pagegate` is the note by which squid.conf permits a request.
 */
export function answerLine(channel: string, { allowed, verdict, reason, note }: HelperDecision): string {
  const message = `${verdict} (${reason}): ${note}`;
  return `${channel} ${allowed ? 'OK' : 'ERR'} pagegate=${verdict} message="${plain(message, 400)}" log="${plain(reason)}"\n`;
}

const TUNNEL_REFUSED: HelperDecision = {
  allowed: false,
  verdict: 'deny',
  reason: 'helper/connect',
  note: 'tunnels are not allowed here; path and method inside cannot be judged',
};

function main(): void {
  const { values } = parseArgs({
    options: { ...ASK_OPTIONS, tunnels: { type: 'string', default: 'deny' } },
  });
  if (values.tunnels !== 'deny' && values.tunnels !== 'judge-host') throw new Error('--tunnels is deny or judge-host');
  const asker = askerOf(values);

  const answer = async (line: string): Promise<void> => {
    const question = parseLine(line);
    if (question === undefined) {
      const channel = line.split(' ')[0] ?? '';
      process.stdout.write(`${CHANNEL.test(channel) ? channel : 0} BH message="the line is not: channel URI METHOD"\n`);
      return;
    }
    let decision = TUNNEL_REFUSED;
    for (const url of urlsToJudge(question, values.tunnels)) {
      decision = await asker.ask(url, question.method === 'CONNECT' ? 'GET' : question.method);
      if (!decision.allowed) break;
    }
    process.stdout.write(answerLine(question.channel, decision));
  };

  let open = 0;
  let ended = false;
  const settle = (): void => {
    if (ended && open === 0) asker.close();
  };
  let pending = '';
  process.stdin.setEncoding('latin1');
  process.stdin.on('data', (chunk: string) => {
    const lines = (pending + chunk).split('\n');
    pending = lines.pop()!;
    if (pending.length > LINE_MAX_CHARS) throw new Error('a line without end; this is not Squid');
    for (const line of lines) {
      open += 1;
      answer(line).finally(() => {
        open -= 1;
        settle();
      });
    }
  });
  process.stdin.on('end', () => {
    ended = true;
    settle();
  });
}

if (import.meta.main) startHelper('pagegate-acl', main);
