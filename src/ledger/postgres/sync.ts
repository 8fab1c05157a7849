/**
 * The protocol between a node and the engine: one call of the SQL function `sync` per message. The node reports what it holds and has spent;
 * the engine answers with grants. All rules for granting blocks to nodes are in this function.
 *
 * A node never spends more than what it last reported as held plus what it was granted since. So an answer that was lost needs no retry, and a
 * node gives a block back by reporting a lower number.
 */

/** A node's report about an account's cycle. */
export interface SyncItem {
  /** The account's. */
  readonly id: number;
  readonly cycle: number;
  /** Lookups of the cycle that the node may spend, as far as it knows; including those that it has spent. */
  readonly granted: number;
  /** Lookups that it has spent. */
  readonly spent: number;
  /** The value of `granted` that it requests. */
  readonly target: number;
  /** All lookups that this node has ever charged to the account. */
  readonly total: number;
}

export interface SyncDay {
  readonly id: number;
  readonly day: number;
  readonly lookups: number;
}

export interface SyncRequest {
  readonly node: string;
  readonly name: string;
  readonly incarnation: number;
  /** A random number that identifies this ledger writer's process. */
  readonly session: string;
  /** The session of the previous ledger writer on this host, which has ended; 0 if there was none since the host was started. */
  readonly previous: string;
  /** The number of the message in its session. */
  readonly seq: number;
  /** With this message the node has reported everything that it holds. */
  readonly full: boolean;
  /** The session ends in an orderly way. */
  readonly leaves: boolean;
  readonly revision: number;
  readonly program: string;
  readonly generation: string;
  /** Seconds. */
  readonly max_staleness: number;
  readonly accounts: readonly SyncItem[];
  readonly days: readonly SyncDay[];
}

/** Why a node is refused. */
export type SyncRefusal =
  /** Another session of this node is alive, or was moments ago. */
  | 'busy'
  /** Another process has started from the same state. */
  | 'copied'
  /** An operator has retired the node. */
  | 'retired'
  /** The message is not newer than the latest one of this session. */
  | 'late'
  | 'moved';

export interface SyncGrant {
  readonly id: number;
  readonly cycle: number;
  readonly granted: number;
  /** What other nodes have used of the cycle, less what an operator gave back; may be negative. */
  readonly others: number;
}

export interface SyncReply {
  readonly refused?: SyncRefusal;
  /** The engine's clock, in seconds since 1970. */
  readonly now: number;
  readonly revision: number;
  readonly history: number;
  readonly learning: boolean;
  readonly accounts: readonly SyncGrant[];
  /** Ids of accounts of which other nodes need what this node holds. */
  readonly recalled: readonly number[];
}

export const SYNC = `
CREATE OR REPLACE FUNCTION sync(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  -- A session that reported within this many seconds counts as alive.
  takeover_after CONSTANT float8 := 3;
  recall_lasts CONSTANT float8 := 5;
  -- Earlier cycles are deleted.
  kept_cycles CONSTANT int8 := 3;
  me CONSTANT text := request->>'node';
  stale CONSTANT float8 := (request->>'max_staleness')::float8;
  -- After a loss of commits, nothing is granted for at least this many seconds. Nodes that the engine has lost report again meanwhile.
  learning_min CONSTANT float8 := stale / 6;
  moment float8;
  home ledger%ROWTYPE;
  known nodes%ROWTYPE;
  account accounts%ROWTYPE;
  item record;
  mine record;
  others record;
  is_first boolean;
  is_lost boolean;
  is_learning boolean;
  live int8;
  present int8;
  held int8;
  wanted int8;
  whole int8;
  free int8;
  remaining int8;
  answers jsonb := '[]';
  recalled jsonb;
  -- What a node knows and the engine does not; written to the audit table.
  evidence jsonb;
BEGIN
  INSERT INTO nodes (id, name, created_at) VALUES (me, request->>'name', extract(epoch FROM clock_timestamp()))
    ON CONFLICT DO NOTHING;
  SELECT * INTO STRICT known FROM nodes WHERE id = me FOR UPDATE;
  -- Read after the lock, because a move of the ledger locks out all nodes.
  SELECT * INTO STRICT home FROM ledger;
  IF home.moved_to IS NOT NULL THEN RETURN jsonb_build_object('refused', 'moved'); END IF;
  moment := extract(epoch FROM clock_timestamp());
  IF known.retired_at IS NOT NULL THEN RETURN jsonb_build_object('refused', 'retired'); END IF;
  is_first := known.session <> request->>'session';
  IF is_first THEN
    IF (request->>'incarnation')::int8 <= known.incarnation THEN RETURN jsonb_build_object('refused', 'copied'); END IF;
    IF known.session NOT IN ('', request->>'previous') AND known.seen_at > moment - takeover_after THEN
      RETURN jsonb_build_object('refused', 'busy');
    END IF;
  ELSIF (request->>'seq')::int8 <= known.seq THEN
    RETURN jsonb_build_object('refused', 'late');
  END IF;
  -- Revisions before the first row of this table were not recorded.
  is_lost := (request->>'revision')::int8 > (SELECT min(revision) FROM revisions)
    AND NOT EXISTS (SELECT 1 FROM revisions WHERE revision = (request->>'revision')::int8);
  IF is_lost THEN
    evidence := jsonb_build_object('revision', request->'revision', 'known', home.revision);
    -- Other nodes may have this revision, too. Recording it makes sure that the same loss is noticed only once: then all nodes copy everything.
    INSERT INTO revisions VALUES ((request->>'revision')::int8) ON CONFLICT DO NOTHING;
    is_lost := FOUND;
  END IF;

  -- First store what the node reports. The rows of the cycles are locked in the order of the account ids.
  FOR item IN
    SELECT x.*, a.id IS NOT NULL AS is_known,
        CASE WHEN a.cycle_anchor IS NULL THEN 0 ELSE cycle_at(a.cycle_anchor, moment::numeric) END AS present
      FROM jsonb_to_recordset(request->'accounts') AS x(id int8, cycle int8, granted int8, spent int8, target int8, total int8)
      LEFT JOIN accounts a ON a.id = x.id ORDER BY x.id, x.cycle
  LOOP
    -- Older cycles were deleted on purpose.
    CONTINUE WHEN item.cycle < item.present - kept_cycles;
    IF NOT item.is_known THEN
      is_lost := true;
      evidence := jsonb_build_object('account', item.id, 'known', NULL);
      -- Keep the id and its usage in a closed account, so that no other account gets this id and the usage is not lost again. The name is not
      -- a valid account name.
      INSERT INTO accounts (id, name, state, created_at) VALUES (item.id, '-' || item.id, 'closed', floor(moment))
        ON CONFLICT DO NOTHING;
      PERFORM setval('accounts_id_seq', greatest(item.id, (SELECT last_value FROM accounts_id_seq)));
    END IF;
    INSERT INTO cycles (account_id, cycle) VALUES (item.id, item.cycle) ON CONFLICT DO NOTHING;
    PERFORM 1 FROM cycles WHERE account_id = item.id AND cycle = item.cycle FOR UPDATE;
    SELECT coalesce(max(granted), 0) AS granted, coalesce(max(spent), 0) AS spent INTO mine
      FROM grants WHERE account_id = item.id AND cycle = item.cycle AND node = me;
    IF item.granted > mine.granted THEN
      is_lost := true;
      evidence := jsonb_build_object('account', item.id, 'cycle', item.cycle, 'granted', item.granted, 'spent', item.spent, 'known', mine.granted);
    END IF;
    -- In its first message a session may not know all that an earlier session was granted, so the node keeps that until a later message. A
    -- session that leaves has no later message, so its report counts at once.
    held := greatest(item.granted, item.spent, mine.spent,
      CASE WHEN is_first AND NOT (request->>'leaves')::boolean THEN mine.granted ELSE 0 END);
    INSERT INTO grants (account_id, cycle, node, granted, spent)
      VALUES (item.id, item.cycle, me, held, greatest(item.spent, mine.spent))
      ON CONFLICT (account_id, cycle, node) DO UPDATE SET granted = excluded.granted, spent = excluded.spent;
    INSERT INTO node_totals (node, account_id, total) VALUES (me, item.id, item.total)
      ON CONFLICT (node, account_id) DO UPDATE SET total = greatest(node_totals.total, excluded.total);
    IF held < mine.granted THEN PERFORM pg_notify('pagegate', 'returned'); END IF;
  END LOOP;
  INSERT INTO usage_days (account_id, day, node, lookups)
    SELECT x.id, x.day, me, x.lookups FROM jsonb_to_recordset(request->'days') AS x(id int8, day int8, lookups int8)
      WHERE EXISTS (SELECT 1 FROM accounts WHERE accounts.id = x.id)
    ON CONFLICT (account_id, day, node) DO UPDATE SET lookups = greatest(usage_days.lookups, excluded.lookups);
  UPDATE nodes SET name = request->>'name', incarnation = (request->>'incarnation')::int8, seq = (request->>'seq')::int8,
    session = CASE WHEN (request->>'leaves')::boolean THEN '' ELSE request->>'session' END,
    seen_at = moment, presented_at = CASE WHEN (request->>'full')::boolean THEN moment ELSE presented_at END,
    revision = (request->>'revision')::int8, program = request->>'program', generation = request->>'generation'
    WHERE id = me;

  IF is_lost THEN
    UPDATE ledger SET revision = greatest(revision, (request->>'revision')::int8) + 1, history = history + 1,
      learning_since = coalesce(learning_since, moment) RETURNING * INTO home;
    INSERT INTO audit (at, actor, action, after) VALUES (floor(moment), 'fleet', 'fleet.lost_commits',
      (evidence || jsonb_build_object('node', request->>'name'))::text);
  END IF;
  is_learning := home.learning_since IS NOT NULL;
  IF is_learning AND NOT is_lost AND (moment > home.learning_since + 2 * stale OR (moment > home.learning_since + learning_min
      AND NOT EXISTS (SELECT 1 FROM nodes WHERE retired_at IS NULL AND session <> '' AND presented_at < home.learning_since)))
  THEN
    UPDATE ledger SET learning_since = NULL WHERE learning_since = home.learning_since;
    INSERT INTO audit (at, actor, action) VALUES (floor(moment), 'fleet', 'fleet.learned');
    is_learning := false;
  END IF;
  SELECT count(*) INTO live FROM nodes WHERE retired_at IS NULL AND session <> '' AND seen_at > moment - stale;

  -- Then grant what it requests.
  FOR item IN
    SELECT x.*, a AS account FROM jsonb_to_recordset(request->'accounts')
      AS x(id int8, cycle int8, target int8) JOIN accounts a ON a.id = x.id ORDER BY x.id, x.cycle
  LOOP
    account := item.account;
    present := CASE WHEN account.cycle_anchor IS NULL THEN 0 ELSE cycle_at(account.cycle_anchor, moment::numeric) END;
    SELECT * INTO mine FROM grants JOIN cycles USING (account_id, cycle)
      WHERE account_id = item.id AND cycle = item.cycle AND node = me;
    CONTINUE WHEN NOT FOUND;
    -- A node that has not reported lately may have spent all that it holds.
    SELECT coalesce(sum(granted), 0)::int8 AS granted,
        coalesce(sum(CASE WHEN retired_at IS NULL AND seen_at > moment - stale THEN spent ELSE granted END), 0)::int8 AS gone
      INTO others FROM grants JOIN nodes ON nodes.id = grants.node
      WHERE account_id = item.id AND cycle = item.cycle AND node <> me;
    held := mine.granted;
    IF item.cycle = present AND account.state = 'active' AND NOT is_learning AND item.target > held THEN
      whole := limit_in(account, present) + mine.credit;
      free := whole - others.granted - held;
      remaining := greatest(0, whole - others.gone - mine.spent);
      -- A node may hold at most 1 % of the limit, and a share of what is left, which gets smaller towards the end of the quota.
      wanted := least(item.target, mine.spent + greatest(1, least(limit_in(account, present) / 100, remaining / (8 * live))));
      held := held + greatest(0, least(wanted - held, free));
      IF held > mine.granted THEN
        UPDATE grants SET granted = held WHERE account_id = item.id AND cycle = item.cycle AND node = me;
        UPDATE cycles SET recall_at = NULL
          WHERE account_id = item.id AND cycle = item.cycle AND recall_at IS NOT NULL AND mine.granted = mine.spent;
      ELSIF held = mine.spent AND remaining > 0 THEN
        UPDATE cycles SET recall_at = moment WHERE account_id = item.id AND cycle = item.cycle;
        PERFORM pg_notify('pagegate', 'recall');
      END IF;
    END IF;
    answers := answers || jsonb_build_object('id', item.id, 'cycle', item.cycle, 'granted', held, 'others', others.gone - mine.credit);
  END LOOP;
  SELECT coalesce(jsonb_agg(DISTINCT grants.account_id), '[]') INTO recalled FROM grants JOIN cycles USING (account_id, cycle)
    WHERE grants.node = me AND grants.granted > grants.spent AND cycles.recall_at > moment - recall_lasts;

  -- The latest time seen, against which clocks are checked. Updated at most once a minute, and skipped if a change has locked the row.
  UPDATE ledger SET last_seen_at = greatest(last_seen_at, floor(moment)::int8)
    WHERE one = (SELECT one FROM ledger WHERE last_seen_at < moment - 60 FOR UPDATE SKIP LOCKED);
  IF FOUND AND floor(moment / 86400) > floor(home.last_seen_at / 86400.0) THEN
    DELETE FROM usage_days WHERE day <= floor(moment / 86400) - 400;
    DELETE FROM cycles WHERE (account_id, cycle) IN (SELECT c.account_id, c.cycle FROM cycles c JOIN accounts a ON a.id = c.account_id
      WHERE a.cycle_anchor IS NOT NULL AND c.cycle < cycle_at(a.cycle_anchor, moment::numeric) - kept_cycles);
  END IF;
  RETURN jsonb_build_object('now', extract(epoch FROM clock_timestamp()), 'ledger_id', home.ledger_id, 'revision', home.revision,
    'history', home.history, 'learning', is_learning, 'live', live, 'accounts', answers, 'recalled', recalled);
END $$;
`;
