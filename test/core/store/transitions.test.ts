/**
 * An event shows its resource as the transition has stored it, in every engine: an engine may make
 * the event of what it knew before it writes.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { envelope } from '../../../core/delivery/envelope.ts';
import {
  invocationEvent,
  type NewEvent,
  sessionEvent,
} from '../../../core/store/operations/events.ts';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { type Bench, ENGINES, HOLDER, LEASE_MS, newSession, openBench, T0 } from './engines.ts';

type Shown = { type: string; data: unknown };

/** A client that polls the project's events: calls it with those since the last call. */
async function openListener({ store }: Bench, projectId: string) {
  let after = await store.listen({ projectId, until: Number.MAX_SAFE_INTEGER });
  return async (): Promise<Shown[]> => {
    // an older transaction of the database, as a message of wakes, hides later events
    const { events } = await until(async () => {
      const found = await store.eventsAfter({ projectId, after, limit: 100 });
      return !found.isEarly && found;
    });
    after = events.at(-1)?.seq ?? after;
    return events.map(({ type, body }) => shown(type, body));
  };
}

function shown(type: string, body: Uint8Array): Shown {
  return { type, data: JSON.parse(Buffer.from(body).toString()).data };
}

function bodyOf(event: NewEvent): Shown {
  return shown(event.type, envelope({ ...event, id: newId() }));
}

async function sessionAs(step: 'running' | 'ended', bench: Bench, wanted: Owned): Promise<Shown> {
  const row = must(await bench.store.getSession(wanted), 'session');
  const { params: _, isReleased: __, ...listed } = row;
  return bodyOf(sessionEvent(step, listed));
}

async function invocationAs(
  step: 'running' | 'completed' | 'failed',
  bench: Bench,
  wanted: Owned,
): Promise<Shown> {
  return bodyOf(invocationEvent(step, must(await bench.store.getInvocation(wanted), 'row')));
}

type Owned = { id: string; projectId: string };

const LABELS = [
  { name: 'Blue', nameKey: 'blue' },
  { name: 'Azure', nameKey: 'azure' },
].map((label) => ({ ...label, id: newId() }));

/** Its only page is recorded wholly. */
async function record({ store }: Bench, leaseId: string): Promise<void> {
  const page = { pageId: 0, startMs: 0, endMs: 1, url: 'a', parts: [], complete: true };
  const quota = { kinds: ['RECORDING'], maxBytes: 1e9 } as const;
  const answer = await store.addRecording({ leaseId, ...page, quota, endedAfter: T0, at: T0 });
  assert.is(answer, 'added');
}

for (const engine of ENGINES) {
  const test = suite(`store-transitions/${engine.name}`);

  test('the events of a session', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const metadata = JSON.stringify({ for: 'a\u00e9"\u2028' });
    const wanted = { ...newSession(projectId), userMetadata: metadata, keepAlive: true };
    const { id } = await store.createSession(wanted);
    await store.setSessionLabels({ id, projectId, labels: LABELS, at: T0 + 1 }, 10);
    const heard = await openListener(bench, projectId);
    const { leaseId } = must((await bench.lease('session'))[0], 'work');
    await store.startSession({ leaseId, startedAt: T0 - 1, at: T0 + 2 });
    const session = { id, projectId };
    assert.equal(await heard(), [await sessionAs('running', bench, session)]);
    const link = { id: newId(), sessionId: id, projectId, instructions: 'help', keyId: 'k' };
    await store.createHandoff({ ...link, expiresAt: T0 + 100, at: T0 + 3 }, 10);
    await record(bench, leaseId);
    await heard();
    const reason = 'over \0\u00e9';
    const end = { status: 'COMPLETED', reason, proxyBytes: 7, at: T0 + 4 } as const;
    await store.completeSession({ leaseId, ...end });
    const [expired, ended, recorded, ...others] = await heard();
    assert.is(expired?.type, 'sessions.handoff.expired');
    assert.equal(ended, await sessionAs('ended', bench, session));
    assert.equal(recorded, { type: 'sessions.recording.ready', data: { sessionId: id } });
    assert.equal(others, []);
  });

  test('the events of an invocation and of its session', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const fn = await bench.publish(projectId);
    const outcomes = [
      { step: 'completed', outcome: { kind: 'success', results: '{"a":[1]}' } },
      {
        step: 'failed',
        outcome: { kind: 'failure', cause: { code: 'WORKLOAD_ERROR', message: 'it fails' } },
      },
    ] as const;
    const heard = await openListener(bench, projectId);
    for (const { step, outcome } of outcomes) {
      const { id, sessionId } = await bench.accept(projectId, fn);
      await heard();
      // by the clock of a core that is behind
      const { leaseId } = must((await bench.lease('invocation', 1, T0 - 1))[0], 'work');
      const [invocation, session] = [
        { id, projectId },
        { id: sessionId, projectId },
      ];
      const running = [
        await sessionAs('running', bench, session),
        await invocationAs('running', bench, invocation),
      ];
      assert.equal(await heard(), running);
      assert.is((await store.getSession(session))?.startedAt, T0);
      await store.completeInvocation({ leaseId, outcome, sessionStartedAt: T0, at: T0 + 2 });
      const ended = [
        await sessionAs('ended', bench, session),
        await invocationAs(step, bench, invocation),
      ];
      assert.equal(await heard(), ended);
    }
  });

  test('an end that comes before the first renewal starts the work, too', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p');
    const { id } = await bench.accept(projectId, await bench.publish(projectId));
    const heard = await openListener(bench, projectId);
    const { leaseId } = must((await bench.offer('invocation'))[0], 'work');
    const outcome = { kind: 'success', results: '1' } as const;
    const end = { leaseId, outcome, sessionStartedAt: T0 + 1, at: T0 + 2 };
    assert.ok(await bench.store.completeInvocation(end));
    const events = await heard();
    assert.equal(
      events.map(({ type }) => type),
      [
        'sessions.running',
        'functions.invocations.running',
        'sessions.ended',
        'functions.invocations.completed',
      ],
    );
    assert.equal(events[3], await invocationAs('completed', bench, { id, projectId }));
    assert.ok(await bench.store.completeInvocation(end), 'a repeated report is known');
    const renewal = { ...HOLDER, leaseIds: [leaseId], leaseMs: LEASE_MS, at: T0 + 3 };
    assert.equal(await bench.store.renewLeases(renewal), []);
    assert.equal(await heard(), []);
  });

  test.run();
}
