/** The sessions and browser contexts that a client creates. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openSessionTracker } from '../../../../runner/sessions/relay/session-tracker.ts';

const tracker = suite('runner/sessions/relay/session-tracker');

function openBench() {
  const events: string[] = [];
  const sessions = openSessionTracker({
    onAttached: (id, parent, target) =>
      events.push(`attached ${id} below ${parent} ${target?.targetId}`),
    onDetached: (id) => events.push(`detached ${id}`),
    onContextCreated: (id) => void (id && events.push(`created ${id}`)),
  });
  const receive = (text: string): void => sessions.onMessage(Buffer.from(text), 'root');
  return { events, sessions, receive };
}

tracker('attach and detach events are tracked', () => {
  const { events, receive } = openBench();
  const target = '"targetInfo":{"targetId":"t","type":"page"}';
  receive(`{"method":"Target.attachedToTarget","params":{"sessionId":"s",${target}}}`);
  receive('{"method":"Target.targetCreated","params":{"sessionId":"x"}}');
  receive('{"method":"Target.detachedFromTarget","params":{"sessionId":"s"}}');
  assert.equal(events, ['attached s below root t', 'detached s']);
});

tracker('responses report what a client has created, whatever their ids', () => {
  const { events, sessions, receive } = openBench();
  sessions.onCommand({ id: 5, method: 'Target.attachToBrowserTarget' }, 'root');
  sessions.onCommand({ id: -5, method: 'Target.createBrowserContext' }, 'root');
  sessions.onCommand({ id: 6, method: 'Target.getTargets' }, 'root');
  receive('{"id":-5,"result":{"browserContextId":"c"}}');
  receive('{"id":6,"result":{"browserContextId":"x"}}');
  receive('{"id":5,"result":{"sessionId":"s"}}');
  assert.equal(events, ['created c', 'attached s below root undefined']);
  assert.is(sessions.pending, 0);
});

tracker('a refused command creates nothing and is dropped', () => {
  const { events, sessions, receive } = openBench();
  sessions.onCommand({ id: 1, method: 'Target.createBrowserContext' }, 'root');
  receive('{"id":1,"error":{"code":-32000,"message":"Not allowed"}}');
  assert.equal(events, []);
  assert.is(sessions.pending, 0);
});

tracker('a command without a response creates nothing', () => {
  const made: [string | undefined, number][] = [];
  const ignore = (): void => undefined;
  const sessions = openSessionTracker({
    onAttached: ignore,
    onDetached: ignore,
    onContextCreated: (...one) => made.push(one),
  });
  const method = 'Target.createBrowserContext';
  for (const [id, session] of [
    [1, 'root'],
    [2, 'other'],
    [3, 'root'],
  ] as const) {
    sessions.onCommand({ id, method }, session);
  }
  sessions.onCommand({ id: 4, method: 'Target.attachToBrowserTarget' }, 'root');
  sessions.onUnknownSession(3);
  sessions.onSessionEnd('root');
  sessions.onUnknownSession(9);
  assert.equal(made, [
    [undefined, 3],
    [undefined, 1],
  ]);
  assert.is(sessions.pending, 1);
});

tracker.run();
