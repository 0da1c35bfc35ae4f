/**
 * A canary: relay and log read a message of Chrome by its first bytes and its last, unparsed. When
 * a new Chrome writes its members in another order, this fails first.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLab, until } from '../../browser/lab.ts';
import { openRaw } from './raw.ts';

const test = suite('runner/sessions/relay/order');
const TAIL = /,"sessionId":"[0-9A-F]{32}"\}$/;

test('Chrome writes id or method first and the session last', async () => {
  await using lab = await openLab({ allow: [] });
  const raw = await openRaw(lab.connectUrl);
  const sessionId = await raw.attach();
  const before = raw.said.length;
  await raw.call('Runtime.enable', {}, sessionId);
  await raw.call('Runtime.evaluate', { expression: 'console.log(1)' }, sessionId);
  await raw.call('Runtime.noSuchThing', {}, sessionId).catch(() => undefined);
  await until(() => raw.said.some((text) => text.includes('consoleAPICalled')), 'an event');
  const said = raw.said.slice(before);
  for (const text of said) assert.match(text, TAIL);
  const count = (head: RegExp): number => said.filter((text) => head.test(text)).length;
  assert.is(count(/^\{"id":\d+,"result":\{/), 2);
  assert.is(count(/^\{"id":\d+,"error":\{/), 1);
  assert.is(count(/^\{"method":"[^"]+","params":\{/), said.length - 3);
  await raw.call('Target.setDiscoverTargets', { discover: true });
  const ofBrowser = raw.said.filter((text) => text.includes('Target.targetCreated'));
  assert.ok(ofBrowser.length > 0);
  for (const text of ofBrowser) assert.match(text, /^\{"method":"Target\.targetCreated","params":/);
  raw.socket.close();
  await raw.closed;
});

test.run();
