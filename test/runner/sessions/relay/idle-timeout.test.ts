/** A connection without messages is closed; one with messages in either direction is not. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Closed } from '../../../../runner/sessions/relay/connection.ts';
import { watchIdle } from '../../../../runner/sessions/relay/idle-timeout.ts';
import { until } from '../../browser/lab.ts';

const idle = suite('runner/sessions/relay/idle-timeout');

function open(idleMs: number | undefined, isHeld = () => false) {
  const closes: string[] = [];
  const { promise: closed, resolve } = Promise.withResolvers<Closed>();
  const gone = (): void => resolve({ isBroken: false, hasFailed: false });
  let messages = 0;
  const client = {
    get messages() {
      return messages;
    },
    close: (code: number, reason: string) => void closes.push(`${code} ${reason}`),
  };
  watchIdle({ ping: () => {}, closed }, client, { idleMs, isHeld });
  return { closes, say: () => (messages += 1), gone };
}

idle('a silent connection is closed with 1008 and a reason; an active one is not', async () => {
  const quiet = open(50);
  const lively = open(2_000); // longer than a loaded machine stalls
  const speaking = setInterval(lively.say, 1);
  const never = open(undefined);
  let isHeld = true;
  const held = open(50, () => isHeld);
  await until(() => quiet.closes.length > 0, 'it ended');
  assert.is(quiet.closes[0], '1008 no CDP traffic for 0.05 s');
  assert.equal(lively.closes, []);
  assert.equal(never.closes, []);
  assert.equal(held.closes, [], 'it waits for a person');
  isHeld = false;
  await until(() => held.closes.length > 0, 'it ended when it was not held any more');
  clearInterval(speaking);
  await until(() => lively.closes.length > 0, 'it ended when it spoke no more');
  for (const one of [quiet, lively, never, held]) one.gone();
});

idle('a closed connection is not watched', async () => {
  const before = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const one = open(50);
  one.gone();
  await new Promise(setImmediate);
  const after = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  assert.is(after, before);
  assert.equal(one.closes, []);
});

idle.run();
