/** Actions on accounts. Each asks for confirmation, describes what will happen, and uses the same code as the command line. */
import { counted } from '../../counted.ts';
import { correctMeter } from '../../ledger/correct-meter.ts';
import { isKeyCurrent } from '../../ledger/key-validity.ts';
import type { AccountView, IssuedKey, Ledger } from '../../ledger/ledger.ts';
import type { Plan } from '../../ledger/plans.ts';
import { LIMITS } from '../../limits.ts';
import { type Html, html } from '../web/html.ts';
import { type Fields, HttpRefusal } from '../web/request.ts';
import type { Notice } from '../web/route.ts';
import { count } from '../web/widgets.ts';

export interface ActionInput {
  readonly ledger: Ledger;
  readonly ledgerFile: string;
  readonly name: string;
  readonly form: Fields;
}

export interface AccountAction {
  /** Its segment of the URL. */
  readonly id: string;
  readonly title: string;
  readonly isDangerous?: boolean;
  /** Whether the action is possible for an account in its current state. */
  readonly applies: (view: AccountView) => boolean;
  /** Describes what will happen. */
  readonly says: (view: AccountView, query: Fields) => string;
  /** Further fields of the form. `plans` is a function, so that only the form with plans reads the catalog. */
  readonly fields?: (plans: () => readonly Plan[], query: Fields) => Html;
  readonly run: (input: ActionInput) => Promise<Notice>;
}

const OVERLAPS: readonly (readonly [seconds: number, text: string])[] = [
  [0, 'ends at once'],
  [3_600, 'stays valid for 1 hour'],
  [86_400, 'stays valid for 1 day'],
  [7 * 86_400, 'stays valid for 7 days'],
  [30 * 86_400, 'stays valid for 30 days'],
];

const good = (text: string, secret?: string): Notice => ({
  tone: 'good',
  text,
  ...(secret === undefined ? {} : { secret }),
});
const hasKey = ({ keys, latestSeconds }: AccountView): boolean => keys.some((key) => isKeyCurrent(key, latestSeconds));
const isOpen = ({ account }: AccountView): boolean => account.state !== 'closed';
const keyIdOf = (form: Fields): number => {
  const id = form.whole('key');
  if (id === undefined) throw new HttpRefusal(400, 'key: expected the number of a key.');
  return id;
};

export const overlapField = (): Html => html`<label>The current key
<select name="overlap">${OVERLAPS.map(([seconds, text]) => html`<option value="${seconds}"${seconds === 86_400 && html` selected`}>${text}</option>`)}</select></label>`;

export const rotate = ({ ledger, name, form }: ActionInput): Promise<IssuedKey> =>
  ledger.rotateKey(name, form.whole('overlap') ?? 0);

export const keyIssuedNotice = (name: string, { key, record }: IssuedKey): Notice =>
  good(`Key ${record.id} of ${name} is issued.`, key);

export async function showKey({ ledger, name, form }: ActionInput): Promise<Notice> {
  const { key, record } = await ledger.showKey(name, form.whole('key'));
  return good(`Key ${record.id} of ${name}. The audit names you as the one who viewed it.`, key);
}

export async function revoke({ ledger, name, form }: ActionInput): Promise<Notice> {
  const { id } = await ledger.revokeKey(name, keyIdOf(form));
  return good(`Key ${id} of ${name} is revoked.`);
}

export const keyField = (query: Fields): Html => html`<input type="hidden" name="key" value="${query.get('key')}">`;

const planField = (plans: () => readonly Plan[]): Html => html`<label>Plan <select name="plan" required>${plans().map(
  ({ id, name, lookups }) =>
    html`<option value="${id}">${name}: ${lookups === null ? 'lookups as agreed' : `${count(lookups)} lookups`}</option>`,
)}</select></label>
<label>Payment reference; each counts once <input name="reference" maxlength="128" required></label>
<label>Lookups per cycle, for a plan without a fixed number <input name="limit" inputmode="numeric" maxlength="15"></label>`;

const creditField =
  (): Html => html`<label>Lookups to give back <input name="credit" inputmode="numeric" maxlength="15" required></label>
<label>Why, for the audit <input name="note" maxlength="${LIMITS.correctionNote.value}" required></label>`;

const KEY_ACTIONS: readonly AccountAction[] = [
  {
    id: 'issue-key',
    title: 'Issue the first key',
    applies: (view) => isOpen(view) && !hasKey(view),
    says: ({ account }) => `${account.name} gets a key. Lookups with it are refused (403) until a plan is subscribed.`,
    run: async ({ ledger, name }) => keyIssuedNotice(name, await ledger.issueKey(name)),
  },
  {
    id: 'show-key',
    title: 'Show the key',
    applies: hasKey,
    says: ({ account }) => `The current key of ${account.name} is shown once. The audit records who viewed it.`,
    fields: (_, query) => keyField(query),
    run: showKey,
  },
  {
    id: 'rotate-key',
    title: 'Rotate the key',
    applies: (view) => isOpen(view) && hasKey(view),
    says: ({ account }) =>
      `${account.name} gets a new key. The current key stays valid for as long as you choose, and is refused (401) afterwards.`,
    fields: overlapField,
    run: async (input) => keyIssuedNotice(input.name, await rotate(input)),
  },
  {
    id: 'revoke-key',
    title: 'Revoke a key',
    isDangerous: true,
    applies: (view) => isOpen(view) && view.keys.length > 0,
    says: ({ account }, query) =>
      `Key ${query.get('key')} of ${account.name} is refused (401) from now on. Whoever still uses it is cut off at once.`,
    fields: (_, query) => keyField(query),
    run: revoke,
  },
];

const STATE_ACTIONS: readonly AccountAction[] = [
  {
    id: 'subscribe',
    title: 'Subscribe a plan',
    applies: isOpen,
    says: ({ account }) =>
      account.anchor === null
        ? `${account.name} is activated with the plan, its cycle of 30 days begins now, and it gets a key if it has none.`
        : `A larger plan of ${account.name} takes effect at once; what is used stays used. A smaller one takes effect with the next cycle.`,
    fields: planField,
    run: async ({ ledger, name, form }) => {
      const { account, issued: first } = await ledger.subscribe(
        name,
        form.get('plan'),
        form.get('reference'),
        form.whole('limit'),
      );
      const then = account.next === null ? '' : ` From the next cycle on: ${account.next.plan}.`;
      return good(`${name} is on the plan ${account.plan ?? ''}.${then}`, first?.key);
    },
  },
  {
    id: 'keep-plan',
    title: 'Withdraw the downgrade',
    applies: ({ account }) => account.next !== null && account.state !== 'closed',
    says: ({ account }) =>
      `${account.name} stays on its plan; the smaller plan that waits for the next cycle is withdrawn.`,
    run: async ({ ledger, name }) => good(`${name} stays on the plan ${(await ledger.keepPlan(name)).plan ?? ''}.`),
  },
  {
    id: 'suspend',
    title: 'Suspend',
    isDangerous: true,
    applies: ({ account }) => account.state === 'active',
    says: ({ account }) =>
      `Every lookup of ${account.name} is refused (403) until you reactivate it. Its cycle continues.`,
    run: async ({ ledger, name }) => {
      await ledger.setActive(name, false);
      return good(`${name} is suspended.`);
    },
  },
  {
    id: 'reactivate',
    title: 'Reactivate',
    applies: ({ account }) => account.state === 'suspended',
    says: ({ account }) => `Lookups of ${account.name} are answered again, within what is left of its quota.`,
    run: async ({ ledger, name }) => {
      await ledger.setActive(name, true);
      return good(`${name} is active again.`);
    },
  },
  {
    id: 'correct',
    title: 'Give lookups back',
    applies: ({ account }) => account.anchor !== null && account.state !== 'closed',
    says: ({ account }) =>
      `${account.name} gets lookups of the current cycle back: those that damage or a lost host has charged without an answer.`,
    fields: creditField,
    run: async ({ ledger, ledgerFile, name, form }) => {
      const credit = form.whole('credit') ?? 0;
      if (credit === 0) throw new HttpRefusal(400, 'credit: expected at least 1 lookup to give back.');
      const credited = await correctMeter(ledger, ledgerFile, { name, wanted: { credit }, note: form.get('note') });
      return good(`${name} got ${counted(credited, 'lookup')} back${credited < credit ? ': no more were used' : ''}.`);
    },
  },
  {
    id: 'close',
    title: 'Close for good',
    isDangerous: true,
    applies: isOpen,
    says: ({ account }) =>
      `${account.name} is closed for good: its keys no longer match an account (401). Its records stay. This cannot be undone.`,
    run: async ({ ledger, name }) => {
      await ledger.closeAccount(name);
      return good(`${name} is closed.`);
    },
  },
];

export const ACCOUNT_ACTIONS: readonly AccountAction[] = [...STATE_ACTIONS, ...KEY_ACTIONS];
