/**
 * Chrome answers a command that meets the end of its session with its id alone. Such an answer
 * reaches the sender of that command, and no other sender that has a command of the same id.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openTargetSession } from '../../../../runner/browser/cdp/target-session.ts';
import { PENDING_MAX } from '../../../../runner/sessions/relay/pending-commands.ts';
import { errorOf } from '../../../support/fault.ts';
import { openLab, until } from '../../browser/lab.ts';
import { openRaw, type Raw } from './raw.ts';

const answers = suite('runner/sessions/relay/answers');

/** A page's promise that is pending until `release()`. */
const WAITING = 'new Promise((resolve) => { globalThis.release = () => resolve(5) })';
const evaluate = (id: number, sessionId: string, expression: string): string => {
  const params = { expression, awaitPromise: true };
  return JSON.stringify({ id, method: 'Runtime.evaluate', params, sessionId });
};
const withId = (raw: Raw, id: number): string[] =>
  raw.said.filter((text) => JSON.parse(text).id === id);

for (const id of [500, 2 ** 31 - 1, -(2 ** 31), -1_000_000_005]) {
  answers(`${id}: the end of one client's session sends no response to another`, async () => {
    await using lab = await openLab({ allow: [] });
    const [one, other] = [await openRaw(lab.connectUrl), await openRaw(lab.connectUrl)];
    const [ending, lasting] = [await one.attach(), await other.attach()];
    other.socket.send(evaluate(id, lasting, WAITING));
    await other.call('Runtime.evaluate', { expression: '1' }, lasting); // Chrome has both
    const params = { sessionId: ending };
    one.socket.send(JSON.stringify({ id: 700, method: 'Target.detachFromTarget', params }));
    one.socket.send(evaluate(id, ending, '2'));
    await until(() => withId(one, id).length > 0, 'the answer for the session that has ended');
    const [said = ''] = withId(one, id);
    assert.equal(JSON.parse(said).error.code, -32001);
    await other.call('Runtime.evaluate', { expression: 'release()' }, lasting);
    await until(() => withId(other, id).length > 0, 'the answer of the other client');
    const texts = withId(other, id).map((text) => JSON.parse(text).result?.result.value);
    assert.equal(texts, [5]);
    assert.is(withId(one, id).length, 1);
    one.socket.close();
    other.socket.close();
  });
}

answers('the end of a session of the service sends no response to a client', async () => {
  await using lab = await openLab({ allow: [] });
  const { pipe } = lab.chrome;
  const raw = await openRaw(lab.connectUrl);
  const lasting = await raw.attach();
  const ids = Array.from({ length: 50 }, (_, index) => -index);
  for (const id of ids) raw.socket.send(evaluate(id, lasting, WAITING));
  for (const id of ids) raw.socket.send(evaluate(100 - id, lasting, WAITING));
  await raw.call('Runtime.evaluate', { expression: '1' }, lasting);
  const before = raw.said.length;
  const { targetInfos } = await pipe.call('Target.getTargets');
  const targetId = (targetInfos as { targetId: string }[])[0]?.targetId;
  for (let round = 0; round < 10; round += 1) {
    const { sessionId } = await pipe.call('Target.attachToTarget', { targetId, flatten: true });
    const own = openTargetSession(pipe, String(sessionId));
    for (let count = 0; count < 10; count += 1)
      await own.call('Runtime.evaluate', { expression: '1' });
    const gone = pipe.call('Target.detachFromTarget', { sessionId });
    const late = errorOf(own.call('Runtime.evaluate', { expression: '1' }));
    await gone;
    assert.match(String(await late), /Session with given id not found/, 'it does not wait');
    own.end();
  }
  await raw.call('Runtime.evaluate', { expression: '1' }, lasting);
  assert.equal(raw.said.length, before + 1, raw.said.slice(before).join('\n'));
  raw.socket.close();
});

answers('with too many unanswered commands the oldest are refused', async () => {
  await using lab = await openLab({ allow: [] });
  const raw = await openRaw(lab.connectUrl);
  const page = await raw.attach();
  raw.socket.send(evaluate(-1, page, 'for (;;);'));
  for (let id = 1_000; id < 1_000 + PENDING_MAX; id += 1) {
    raw.socket.send(evaluate(id, page, '1'));
  }
  await until(() => withId(raw, -1).length > 0, 'the refusal of the first one');
  const { error, sessionId } = JSON.parse(withId(raw, -1)[0] ?? '');
  assert.match(error.message, `Chrome answers none of ${PENDING_MAX} commands: this is among`);
  assert.is(sessionId, page);
  assert.is(withId(raw, PENDING_MAX).length, 0, 'a later one waits');
  await raw.call('Browser.getVersion');
  raw.socket.close();
});

answers.run();
