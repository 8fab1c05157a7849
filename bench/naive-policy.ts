/** The policy's rules as a simple list of regular expressions over `new URL`, as a baseline to compare the policy with. */
import { phrasesOf } from '../src/policy/documents.ts';
import type { Policy } from '../src/policy/policy.ts';

interface NaiveRule {
  readonly id: string;
  readonly verdict: string;
  readonly pattern: RegExp;
  readonly part: 'host' | 'path' | 'query' | 'href';
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/[-_ ]+/g, '[-_ ]?');

const ADDRESSES: Readonly<Record<string, RegExp>> = {
  loopback: /^(?:127\.|\[::1\]$)/,
  private_network: /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[f[cd])/,
  link_local: /^(?:169\.254\.|\[fe80)/,
  reserved_address: /^(?:0\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|22[4-9]\.|2[3-5]\d\.)/,
  embedded_address: /^\[(?:::ffff:|64:ff9b:|2002:)/,
  public_address: /^(?:[\d.]+|\[.*\])$/,
};

/** Creates the list from the data of the compiled policy, so that both use the same words. */
export function naivePolicy(policy: Policy): (url: string) => string {
  const { document } = policy;
  const words = (list: string): string => {
    const found = document.tokens[list];
    return found === undefined ? '' : [...phrasesOf(found)].map(escaped).join('|');
  };
  const rules: NaiveRule[] = document.hosts.map((entry) => ({
    id: entry.id,
    verdict: entry.verdict ?? entry.reads ?? 'flag',
    pattern: new RegExp(`${entry.host.startsWith('=') ? '^' : '(?:^|\\.)'}${escaped(entry.id)}$`, 'i'),
    part: 'host',
  }));
  for (const rule of document.rules) {
    const { id, verdict } = rule;
    const address = ADDRESSES[id];
    if (address !== undefined) rules.push({ id, verdict, pattern: address, part: 'host' });
    if (rule.suffixes !== undefined) {
      rules.push({
        id,
        verdict,
        pattern: new RegExp(`(?:^[^.]+|\\.(?:${rule.suffixes.map(escaped).join('|')}))$`, 'i'),
        part: 'host',
      });
    }
    for (const token of rule.tokens ?? []) {
      const body = token.min_length > 0 ? `[\\w.-]{${token.min_length},}` : '';
      rules.push({
        id,
        verdict,
        pattern: new RegExp(`\\b(?:${token.prefixes.map(escaped).join('|')})${body}`),
        part: 'href',
      });
    }
    for (const condition of rule.when ?? []) {
      if (condition.segment !== undefined) {
        const end = condition.at === 'last' ? '/?$' : '(?:/|$)';
        rules.push({
          id,
          verdict,
          pattern: new RegExp(`/(?:${words(condition.segment)})(?:\\.\\w{1,8})?${end}`, 'iu'),
          part: 'path',
        });
      }
      if (condition.host_label !== undefined) {
        rules.push({
          id,
          verdict,
          pattern: new RegExp(`^(?:${words(condition.host_label)})\\.[^.]+\\.`, 'i'),
          part: 'host',
        });
      }
      if (condition.query_name !== undefined && condition.query_value !== undefined) {
        const pattern = new RegExp(
          `[?&](?:${words(condition.query_name)})=(?:${words(condition.query_value)})(?:&|$)`,
          'iu',
        );
        rules.push({ id, verdict, pattern, part: 'query' });
      }
      if (condition.extension !== undefined) {
        rules.push({ id, verdict, pattern: new RegExp(`\\.(?:${words(condition.extension)})$`, 'i'), part: 'path' });
      }
    }
  }
  const ordered = [
    ...rules.filter((rule) => rule.verdict === 'deny'),
    ...rules.filter((rule) => rule.verdict !== 'deny'),
  ];
  return (value) => {
    const url = new URL(value.includes('://') ? value : `https://${value}`);
    const parts = { host: url.hostname, path: decodeURI(url.pathname), query: url.search, href: url.href };
    for (const rule of ordered) if (rule.pattern.test(parts[rule.part])) return rule.id;
    return 'default';
  };
}
