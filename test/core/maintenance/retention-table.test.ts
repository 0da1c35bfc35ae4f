/** One pass over a table: its order, its limits, and its end. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { idAt } from '../../../core/common/ids.ts';
import { readCoreConfig } from '../../../core/config.ts';
import { purgeOld } from '../../../core/maintenance/retention.ts';
import {
  type Limit,
  type Retention,
  retentionTable,
} from '../../../core/maintenance/retention-table.ts';
import { openLog } from '../../../proto/common/log.ts';

const test = suite('core/maintenance/retention-table');
const DAY_MS = 86_400_000;
const AT = 1_000 * DAY_MS;
const none = async () => ({ removed: 0, last: undefined });
const row = (name: string, purge: Retention['purge'] = none): Retention => ({
  name,
  unit: 'rows',
  keptMs: 10 * DAY_MS,
  purge,
});

/** One pass; returns its log lines. */
async function pass(
  table: Retention[],
  { isHeld = (): boolean => false, signal = new AbortController().signal } = {},
): Promise<unknown[][]> {
  const lines: unknown[][] = [];
  const log = openLog({ role: 'test', level: 'silent' });
  for (const level of ['debug', 'info', 'error'] as const) {
    log[level] = (...line: unknown[]) => void lines.push([level, ...line]);
  }
  await purgeOld(table, { log, now: () => AT, isHeld }, signal);
  return lines;
}

test('a row is purged in batches until the store is at its end', async () => {
  const asked: Limit[] = [];
  const batches = [
    { removed: 500, last: '' },
    { removed: 0, last: 'b' },
    { removed: 7, last: undefined },
  ];
  const purge = async (limit: Limit) => {
    asked.push(limit);
    return batches.shift() ?? none();
  };
  assert.equal(await pass([row('files', purge)]), [
    ['info', { rows: 507 }, 'old files were removed'],
  ]);
  const before = AT - 10 * DAY_MS;
  const limit = { beforeId: idAt(before), before, at: AT, max: 500 };
  assert.equal(asked, [
    { ...limit, after: '' },
    { ...limit, after: '' },
    { ...limit, after: 'b' },
  ]);
});

test('rows found by id are also searched among the ids ahead of the clock', async () => {
  const asked: string[] = [];
  const purge = async ({ after, beforeId }: Limit) => {
    asked.push(`${after}..${beforeId}`);
    return none();
  };
  assert.equal(await pass([{ ...row('sessions', purge), isById: true }]), []);
  assert.equal(asked, [`..${idAt(AT - 10 * DAY_MS)}`, `${idAt(AT + DAY_MS)}..~`]);
});

test('while the clock is held nothing is removed, and the pass ends', async () => {
  let asked = 0;
  const count = row('files', async () => {
    asked += 1;
    return none();
  });
  await pass([count], { isHeld: () => true });
  assert.is(asked, 0);
  await pass([count, count], { isHeld: () => asked === 1 });
  assert.is(asked, 1);
});

test('an abort stops between two batches and between two rows of the table', async () => {
  const closing = new AbortController();
  let asked = 0;
  const endless = row('files', async () => {
    asked += 1;
    if (asked === 3) closing.abort();
    return { removed: 1, last: '' };
  });
  await pass([endless, endless], { signal: closing.signal });
  assert.is(asked, 3);
});

test('a failing row of the table is logged once, and the next rows continue', async () => {
  const err = new Error('no database');
  const lines = await pass([
    row('files', () => Promise.reject(err)),
    { ...row('keys', async () => ({ removed: 1, last: undefined })), level: 'debug' },
  ]);
  assert.equal(lines, [
    ['error', { err }, 'removing old files failed'],
    ['debug', { rows: 1 }, 'old keys were removed'],
  ]);
});

test('every kind of row is kept for its own time, and sessions are removed last', () => {
  const kept = { ...readCoreConfig({}), eventDays: 1, sessionDays: 2 };
  const table = retentionTable(kept, { store: {} } as never);
  const days = table.map(({ name, keptMs }) => [name, keptMs / DAY_MS]);
  assert.equal(days, [
    ['events and deliveries', 1],
    ['audit events', 365],
    ['downloads', 30],
    ['extensions', 0],
    ['certificates', 0],
    ['labels', 0],
    ['session logs', 30],
    ['recordings', 31.25],
    ['idempotency keys', 0],
    ['logs', 30],
    ['invocations', 90],
    ['deleted functions', 0],
    ['builds', 90],
    ['sums of days', 400],
    ['sessions', 2],
  ]);
});

test.run();
