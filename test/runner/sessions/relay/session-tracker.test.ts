/** What a client is told of: sessions and browser contexts that are new to it. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { watcher } from '../../../../runner/sessions/relay/session-tracker.ts';

const newcomers = suite('runner/sessions/relay/session-tracker');

function openWatch() {
  const told: string[] = [];
  const watch = watcher({
    own: (id, parent, target) => told.push(`own ${id} below ${parent} ${target?.targetId}`),
    disown: (id) => told.push(`disown ${id}`),
    made: (id) => void (id && told.push(`made ${id}`)),
  });
  const heard = (text: string): void => watch.heard(Buffer.from(text), 'root');
  return { told, watch, heard };
}

newcomers('events tell of sessions that come and go', () => {
  const { told, heard } = openWatch();
  const target = '"targetInfo":{"targetId":"t","type":"page"}';
  heard(`{"method":"Target.attachedToTarget","params":{"sessionId":"s",${target}}}`);
  heard('{"method":"Target.targetCreated","params":{"sessionId":"x"}}');
  heard('{"method":"Target.detachedFromTarget","params":{"sessionId":"s"}}');
  assert.equal(told, ['own s below root t', 'disown s']);
});

newcomers('answers tell of what a client has made, whatever their number', () => {
  const { told, watch, heard } = openWatch();
  watch.sent({ id: 5, method: 'Target.attachToBrowserTarget' }, 'root');
  watch.sent({ id: -5, method: 'Target.createBrowserContext' }, 'root');
  watch.sent({ id: 6, method: 'Target.getTargets' }, 'root');
  heard('{"id":-5,"result":{"browserContextId":"c"}}');
  heard('{"id":6,"result":{"browserContextId":"x"}}');
  heard('{"id":5,"result":{"sessionId":"s"}}');
  assert.equal(told, ['made c', 'own s below root undefined']);
  assert.is(watch.awaited, 0);
});

newcomers('what Chrome refuses makes nothing, and is remembered no longer', () => {
  const { told, watch, heard } = openWatch();
  watch.sent({ id: 1, method: 'Target.createBrowserContext' }, 'root');
  heard('{"id":1,"error":{"code":-32000,"message":"Not allowed"}}');
  assert.equal(told, []);
  assert.is(watch.awaited, 0);
});

newcomers('what nobody will hear of is made for nobody', () => {
  const made: [string | undefined, number][] = [];
  const ignore = (): void => undefined;
  const watch = watcher({ own: ignore, disown: ignore, made: (...one) => made.push(one) });
  const method = 'Target.createBrowserContext';
  for (const [id, session] of [
    [1, 'root'],
    [2, 'other'],
    [3, 'root'],
  ] as const) {
    watch.sent({ id, method }, session);
  }
  watch.sent({ id: 4, method: 'Target.attachToBrowserTarget' }, 'root');
  watch.unknown(3);
  watch.ended('root');
  watch.unknown(9);
  assert.equal(made, [
    [undefined, 3],
    [undefined, 1],
  ]);
  assert.is(watch.awaited, 1);
});

newcomers.run();
