import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { OpRequest } from '../../../core/store/messages.ts';
import { Engine } from '../../../core/store/sqlite/engine/group-commit.ts';
import { Fault } from '../../../proto/rpc/errors.ts';

const test = suite('core/store/engine');

/** An engine over one table, with operations that go right and wrong. */
function engineOf(setUp = '') {
  const db = new Sqlite(':memory:');
  db.exec(`CREATE TABLE parents (id INTEGER PRIMARY KEY) STRICT;
    CREATE TABLE rows (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parents (id), text TEXT)
      STRICT;
    PRAGMA foreign_keys = ON; ${setUp}`);
  const points: string[] = [];
  const engine = new Engine(
    db,
    (name) => points.push(name),
    (tx) => {
      const insert = db.prepare<[number, string]>('INSERT INTO rows (id, text) VALUES (?, ?)');
      return {
        add: (id: number, text = '') => {
          insert.run(id, text);
          tx.wake('deliveries');
          return id;
        },
        addThenThrow(id: number, error: 'fault' | 'error') {
          insert.run(id, '');
          tx.wake('work:build');
          if (error === 'fault') throw new Fault('QUEUE_FULL', 'full', { max: 1 });
          throw new Error('a bug');
        },
        moveTimes(_: number, isFull = false) {
          if (isFull) insert.run(90, 'x'.repeat(200_000));
        },
        leaseWork: () => db.pragma('synchronous', { simple: true }),
        syncs: () => db.pragma('synchronous', { simple: true }),
        spoilCommit() {
          db.pragma('defer_foreign_keys = ON');
          db.exec('INSERT INTO rows (id, parent) VALUES (99, 1)');
        },
      };
    },
  );
  const ids = () => db.prepare<[], number>('SELECT id FROM rows ORDER BY id').pluck().all();
  return { db, engine, points, ids };
}

const op = (name: string, ...args: unknown[]): OpRequest => ({
  kind: 'op',
  id: Number(args[0] ?? 0),
  op: name,
  args,
});

test('after an undone clock step only operations with the old times run', () => {
  const { engine, ids } = engineOf('PRAGMA max_page_count = 20;');
  const at = (step: number, request: OpRequest): OpRequest => ({ ...request, step });
  const run = (...group: OpRequest[]) => {
    const outcome = engine.run(group);
    if (outcome.kind !== 'committed') throw new Error(outcome.message);
    return outcome.answers.map((answer) => ('error' in answer ? answer.error.message : 'done'));
  };
  const refused = 'The clock is being set. Try again.';
  const full = 'The disk is full.';
  const group = [at(0, op('add', 1)), at(1, op('moveTimes', 0, true)), at(1, op('add', 2))];
  assert.equal(run(...group), [full, full, full]);
  assert.equal(run(at(1, op('add', 2))), [refused]);
  assert.equal(run(at(0, op('add', 3)), at(1, op('moveTimes', 0)), at(1, op('add', 4))), [
    'done',
    'done',
    'done',
  ]);
  assert.equal(run(at(0, op('add', 5))), [refused]);
  assert.equal(ids(), [3, 4]);
});

test('a group is one transaction, and each operation succeeds or fails alone', () => {
  const { engine, ids, points } = engineOf();
  const group = [op('add', 1), op('addThenThrow', 2, 'fault'), op('add', 1), op('add', 3)];
  const outcome = engine.run(group);
  if (outcome.kind !== 'committed') throw new Error(outcome.message);
  assert.equal(ids(), [1, 3]);
  const [first, second, third, fourth] = outcome.answers;
  assert.equal(
    [first, fourth],
    [
      { id: 1, value: 1 },
      { id: 3, value: 3 },
    ],
  );
  assert.equal(second, {
    id: 2,
    error: { kind: 'fault', reason: 'QUEUE_FULL', message: 'full', facts: { max: 1 } },
  });
  assert.is(third && 'error' in third && third.error.kind, 'error');
  assert.equal(points, ['tx-begin', 'before-commit', 'after-commit']);
});

test('an undone operation wakes no listener', () => {
  const { engine } = engineOf();
  const outcome = engine.run([op('addThenThrow', 1, 'error'), op('add', 2), op('add', 3)]);
  assert.equal(outcome.kind === 'committed' && outcome.wakes, ['deliveries']);
});

test('an unknown operation fails alone', () => {
  const { engine, ids } = engineOf();
  const outcome = engine.run([op('nothing'), op('add', 1)]);
  assert.is(outcome.kind, 'committed');
  assert.equal(ids(), [1]);
});

test('a failed commit is fatal, and no operation resolves', () => {
  const { engine } = engineOf();
  const outcome = engine.run([op('add', 1), op('spoilCommit')]);
  assert.is(outcome.kind, 'fatal');
  assert.match(
    outcome.kind === 'fatal' ? outcome.message : '',
    /^commit failed: SQLITE_CONSTRAINT/,
  );
});

test('a full disk fails the operations that do not fit and keeps the others', () => {
  const { engine, ids } = engineOf('PRAGMA max_page_count = 20;');
  const outcome = engine.run([op('add', 1), op('add', 2, 'x'.repeat(200_000))]);
  if (outcome.kind !== 'committed') throw new Error(outcome.message);
  const last = outcome.answers.at(-1);
  const error = last && 'error' in last ? last.error : undefined;
  assert.is(error?.kind === 'fault' && error.reason, 'STORAGE_FULL');
  const first = outcome.answers[0];
  const isKept = first !== undefined && 'value' in first;
  assert.equal(ids(), isKept ? [1] : [], 'the answer tells the truth');
  assert.equal(engine.run([op('add', 5)]).kind, 'committed', 'and the next group goes on');
});

test('only an offer of work does not wait for the disk', () => {
  const [FULL, NORMAL] = [2, 1];
  const said = (engine: Engine, ...ops: string[]) => {
    const outcome = engine.run(ops.map((name) => op(name)));
    return (
      outcome.kind === 'committed' && outcome.answers.map((one) => 'value' in one && one.value)
    );
  };
  const { engine } = engineOf('PRAGMA synchronous = FULL');
  assert.equal(said(engine, 'leaseWork'), [NORMAL]);
  assert.equal(said(engine, 'leaseWork', 'syncs'), [FULL, FULL]);
  assert.equal(said(engine, 'syncs'), [FULL]);
  const { engine: quick } = engineOf('PRAGMA synchronous = NORMAL');
  assert.equal(said(quick, 'leaseWork'), [NORMAL]);
  assert.equal(said(quick, 'syncs'), [NORMAL]);
});

test.run();
