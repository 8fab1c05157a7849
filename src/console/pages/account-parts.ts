/** Parts that the pages of an account share, for operators and for the account itself. */
import { counted } from '../../counted.ts';
import { isKeyCurrent } from '../../ledger/key-validity.ts';
import type { AccountView } from '../../ledger/ledger.ts';
import { type Html, html, type Value } from '../web/html.ts';
import { count, facts, mark, moment, type Tone, table } from '../web/widgets.ts';
import { quotaMark, STATE_TONES } from './usage.ts';

export function planFacts(view: AccountView): Html {
  const { account, quota, cycle } = view;
  return facts([
    ['State', mark(STATE_TONES[account.state] ?? 'plain', account.state)],
    ['Plan', quota.plan ?? 'none yet'],
    [
      'Used',
      quota.quota_limit === null
        ? '–'
        : [`${count(quota.quota_used)} of ${count(quota.quota_limit)} `, quotaMark(view)],
    ],
    ['Left', quota.quota_limit === null ? '–' : count(quota.quota_remaining)],
    ['Resets', moment(quota.quota_resets_at)],
    ['Cycle', account.anchor === null ? '–' : count(cycle)],
    ['Then', account.next === null ? 'no change' : `${account.next.plan}, ${count(account.next.limit)} lookups`],
    ['Since', moment(account.createdAt)],
  ]);
}

/** Maximum number of ended keys on a page. */
const ENDED_SHOWN = 50;

/** Returns the table of keys, newest first, without the keys themselves. `action` returns the action for a key that is still valid. */
export function keyTable(view: AccountView, action: (keyId: number) => Value): Html {
  const ended = view.keys.filter((key) => !isKeyCurrent(key, view.latestSeconds));
  const hidden = ended.slice(0, -ENDED_SHOWN);
  const rows = view.keys
    .filter((key) => !hidden.includes(key))
    .toReversed()
    .map((key) => {
      const isOver = ended.includes(key);
      const [tone, state]: readonly [Tone, string] =
        key.revokedAt !== null
          ? ['bad', 'revoked']
          : isOver
            ? ['plain', 'expired']
            : key.expiresAt === null
              ? ['good', 'current']
              : ['warn', 'ends'];
      return [
        key.id,
        mark(tone, state),
        moment(key.createdAt),
        moment(key.revokedAt ?? key.expiresAt),
        isOver ? '' : action(key.id),
      ];
    });
  const titles = ['Key', 'State', 'Issued', 'Ends', 'Action'];
  const list = table('All keys', titles, rows);
  return hidden.length === 0
    ? list
    : html`${list}<p class="hint">${counted(hidden.length, 'key')} that ended earlier: see the audit.</p>`;
}
