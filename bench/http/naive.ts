/**
 * A naive implementation to compare with: node:http, better-sqlite3 with the records as MessagePack, a list of regular expressions over
 * `new URL`, and the quota as one UPDATE per request, with the usual settings (WAL, synchronous=NORMAL). The keys and the records of the
 * sample are in a Map, which favors it. Arguments: port, folder of the bench, number of records, state folder, key.
 */
import { createServer } from 'node:http';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { loadPolicy } from '../../src/policy/load.ts';
import { naivePolicy } from '../naive-policy.ts';
import { unpackRecord } from '../packed-records.ts';
import { openPeer } from '../peers.ts';
import { sampleRecords } from './mix.ts';

const [port, dir = '', records, state = '', key = ''] = process.argv.slice(2);
const LIMIT = 1_000_000_000_000;

const peer = await openPeer(dir, 'sqlite', Number(records));
const sample = new Map(sampleRecords().map(({ domain, ...rest }) => [domain, rest]));
const judge = naivePolicy(loadPolicy());
const accounts = new Map([[key, 1]]);
const ledger = new Database(join(state, 'naive.sqlite'));
ledger.pragma('journal_mode = WAL');
ledger.pragma('synchronous = NORMAL');
ledger.exec('CREATE TABLE IF NOT EXISTS meters (id INTEGER PRIMARY KEY, used INTEGER NOT NULL) STRICT');
ledger.exec('INSERT OR IGNORE INTO meters VALUES (1, 0)');
const charge = ledger
  .prepare<[number, number], number>('UPDATE meters SET used = used + 1 WHERE id = ? AND used < ? RETURNING used')
  .pluck();

function answer(account: number, value: string): object {
  const url = new URL(value.includes('://') ? value : `https://${value}`);
  const domain = url.hostname.replace(/^www\./, '');
  const packed = peer.get(domain);
  const record = packed === undefined ? sample.get(domain) : unpackRecord(packed);
  const matched = judge(value);
  const used = charge.get(account, LIMIT) ?? LIMIT;
  return { domain, found: record !== undefined, ...record, quota_remaining: LIMIT - used, matched };
}

const server = createServer((req, res) => {
  const account = accounts.get(String(req.headers['x-api-key']));
  const value = new URL(req.url ?? '', 'http://localhost').searchParams.get('url');
  if (account === undefined || value === null) {
    res.writeHead(400).end('{}');
    return;
  }
  const body = Buffer.from(JSON.stringify(answer(account, value)));
  res.writeHead(200, {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-pagegate-data': '1.naive',
    'content-length': body.length,
  });
  res.end(body);
});
process.on('disconnect', () => process.exit(0));
server.listen(Number(port), '127.0.0.1', () => process.send?.('listening'));
