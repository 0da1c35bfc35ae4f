/** 15s-boundary: interface.md 6 with the real clocks. A file of its own: it takes 16 s. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Answer } from '../../support/receiver.ts';
import { bootSend } from '../../support/send.ts';

const boundary = suite('gateway/webhooks/boundary');
const after =
  (ms: number): Answer =>
  (response) =>
    void setTimeout(() => response.writeHead(200).end(), ms);

boundary('15s-boundary: an answer after 14.5 s is success, after 15.5 s failure', async () => {
  await using app = await bootSend();
  app.receiver.script(after(14_500));
  const early = app.post(`${app.receiver.url}/early`);
  await app.receiver.received(({ path }) => path === '/early');
  app.receiver.script(after(15_500));
  const [ok, late] = await Promise.all([early, app.post(`${app.receiver.url}/late`)]);
  assert.equal([ok.outcome, ok.status], ['OK', 200]);
  assert.equal([late.outcome, late.status], ['TIMEOUT', 0]);
  assert.is(late.error, 'no answer within 15 s');
});

boundary.run();
