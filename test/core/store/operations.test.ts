/**
 * The rules of transactions hold on an asynchronous engine, whose reads are promises, as
 * PostgreSQL's will be. The tables of states match the statements.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { type QueueStatements, queueOperations } from '../../../core/store/operations/queue.ts';
import {
  BUILD,
  DELIVERY,
  INVOCATION,
  LEASE,
  OPEN_DELIVERY,
  openStates,
  SESSION,
  statesBefore,
} from '../../../core/store/operations/states.ts';
import type { Read, Steps } from '../../../core/store/operations/steps.ts';
import { Fault } from '../../../proto/rpc/errors.ts';

const test = suite('core/store/operations');

/** A read whose value arrives in a later turn of the event loop. */
function later<Value>(value: () => Value): Read<Value> {
  return {
    *[Symbol.iterator]() {
      return (yield new Promise((resolve) => setImmediate(() => resolve(value())))) as Value;
    },
  };
}

/** Runs an operation as an asynchronous engine does. */
async function runLater<Value>(steps: Steps<Value>): Promise<Value> {
  let step = steps.next();
  while (!step.done) step = steps.next(await step.value);
  return step.value;
}

/** One project's queue in memory, with the statements that the test needs. */
function openQueue(ready: number) {
  const writes: unknown[][] = [];
  const wakes: string[] = [];
  const waiting = { ready, readyMax: 2, turn: 3, firstTurn: ready > 0 ? null : 7, lastTurn: 9 };
  const statements: Partial<QueueStatements> = {
    queueOf: () => later(() => waiting),
    count: (...args) => void writes.push(['count', ...args]),
    insert: ({ id }) => void writes.push(['insert', id]),
    remove: (id) => void writes.push(['remove', id]),
    hasReady: () => later(() => true),
  };
  const tx = {
    wake: (topic: string) => void wakes.push(topic),
    crashPoint: () => {},
    later: () => {},
  };
  return { queue: queueOperations(statements as QueueStatements, tx), writes, wakes };
}

function newJob() {
  const id = newId();
  const kind = 'invocation' as const;
  return { id, kind, projectId: 'p', expiresAt: 1, queueMax: 5, traceparent: undefined, at: 0 };
}

test('an operation completes after reads that return later', async () => {
  const { queue, writes, wakes } = openQueue(0);
  const job = newJob();
  await runLater(queue.add(job));
  const turns = 4; // from 3 to the first turn of the others, 7
  assert.equal(writes, [
    ['count', 'invocation', 'p', { ready: 1, running: 0, turns }],
    ['insert', job.id],
  ]);
  assert.equal(wakes, ['work:invocation']);
});

test('a queue in which work waits keeps its turn', async () => {
  const { queue, writes } = openQueue(1);
  await runLater(queue.add(newJob()));
  assert.equal(writes[0], ['count', 'invocation', 'p', { ready: 1, running: 0, turns: 0 }]);
});

test('a full queue refuses work on such reads too, and writes nothing', async () => {
  const { queue, writes, wakes } = openQueue(2);
  const error = await runLater(queue.add(newJob())).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.instance(error, Fault);
  assert.is((error as Fault).reason, 'QUEUE_FULL');
  assert.equal([writes, wakes], [[], []]);
});

test('every next state is a state, and ended work has none', () => {
  for (const table of [INVOCATION, BUILD, SESSION, LEASE, DELIVERY]) {
    const states = Object.keys(table);
    const next = Object.values(table).flat();
    assert.ok(next.every((state) => states.includes(state)));
  }
  assert.equal(openStates(INVOCATION), ['PENDING', 'RUNNING']);
  assert.equal(openStates(SESSION), ['PENDING', 'RUNNING']);
  assert.equal(openStates(LEASE), ['ready', 'offered', 'running']);
});

test('work runs once: RUNNING follows PENDING alone, and is never offered again', () => {
  assert.equal(statesBefore(INVOCATION, 'RUNNING'), ['PENDING']);
  assert.equal(statesBefore(SESSION, 'RUNNING'), ['PENDING']);
  assert.equal(statesBefore(LEASE, 'offered'), ['ready']);
  assert.equal(statesBefore(LEASE, 'ready'), ['offered']);
});

test('a delivery is sent from pending alone, and no report of a success ends it twice', () => {
  assert.equal(statesBefore(DELIVERY, 'in_flight'), ['pending']);
  assert.equal(statesBefore(DELIVERY, 'exhausted'), ['in_flight']);
  assert.not(statesBefore(DELIVERY, 'delivered').includes('delivered'));
  assert.equal(OPEN_DELIVERY, ['pending', 'in_flight']);
});

test.run();
