/**
 * 15s-boundary: proto/spec/webhooks.md 5 in real time. A separate file, because it takes 16 s.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BUDGET, type Result } from '../../../gateway/webhooks/attempt.ts';
import { bootSend } from '../../support/core/send.ts';
import type { Answer } from '../../support/servers/receiver.ts';

const boundary = suite('gateway/webhooks/boundary');
/** Both clocks are of this process: after a pause it may have missed the half second. */
const LATE_MS = 200;
const TRIES_MAX = 5;
const after =
  (ms: number): Answer =>
  (response) =>
    void setTimeout(() => response.writeHead(200).end(), ms);

/** The outcomes of responses after 14.5 s and after 15.5 s, and the delay of the clocks. */
async function play(): Promise<{ early: Result; late: Result; lateMs: number }> {
  await using app = await bootSend({ budget: BUDGET });
  app.receiver.script(after(14_500));
  const first = app.post(`${app.receiver.url}/early`);
  await app.receiver.received(({ path }) => path === '/early');
  app.receiver.script(after(15_500));
  const delays = monitorEventLoopDelay();
  delays.enable();
  const [early, late] = await Promise.all([first, app.post(`${app.receiver.url}/late`)]);
  delays.disable();
  return { early, late, lateMs: delays.max / 1e6 };
}

boundary('15s-boundary: an answer after 14.5 s is success, after 15.5 s failure', async () => {
  let { early, late, lateMs } = await play();
  for (let tries = 1; lateMs > LATE_MS && tries < TRIES_MAX; tries += 1) {
    ({ early, late, lateMs } = await play());
  }
  assert.equal([early.outcome, early.status], ['OK', 200]);
  assert.equal([late.outcome, late.status], ['TIMEOUT', 0]);
  assert.is(late.error, 'no answer within 15 s');
});

boundary.run();
