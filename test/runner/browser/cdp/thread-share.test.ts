/** Sessions of one thread get their turns, however busy another session is. */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Share } from '../../../../runner/browser/cdp/thread-share.ts';
import { openRaw } from '../../sessions/relay/raw.ts';
import { openLab, until } from '../lab.ts';

const share = suite('runner/browser/cdp/thread-share');

function openClock() {
  let at = 10_000;
  const now = () => at;
  return {
    now,
    work: (one: Share, ms: number): void =>
      one.spend(() => {
        at += ms;
      }),
    pass(ms: number): void {
      at += ms;
    },
  };
}

function source() {
  const calls: string[] = [];
  return { calls, pause: () => calls.push('pause'), resume: () => calls.push('resume') };
}

share('a busy session pauses while another is active, then continues', async () => {
  const { now, work, pass } = openClock();
  using greedy = new Share(now);
  using modest = new Share(now);
  const [one, late] = [source(), source()];
  greedy.add(one);
  work(greedy, 500);
  assert.equal(one.calls, [], 'nobody else is there');
  pass(2_000);
  work(modest, 2);
  work(greedy, 60);
  assert.equal(one.calls, [], 'it may take so much at once');
  work(greedy, 60);
  assert.equal(one.calls, ['pause']);
  work(greedy, 60);
  greedy.add(late);
  assert.equal(late.calls, ['pause'], 'a client that comes during a rest');
  await until(() => one.calls.length === 2, 'the end of the rest');
  assert.equal(
    [one.calls, late.calls],
    [
      ['pause', 'resume'],
      ['pause', 'resume'],
    ],
  );
});

share('a session with little work never pauses', () => {
  const { now, work, pass } = openClock();
  using greedy = new Share(now);
  using modest = new Share(now);
  const calm = source();
  modest.add(calm);
  for (let turn = 0; turn < 100; turn += 1) {
    work(greedy, 90);
    work(modest, 4);
    pass(6);
  }
  assert.equal(calm.calls, []);
});

share('the end of a share ends its pause', () => {
  const { now, work } = openClock();
  const greedy = new Share(now);
  using modest = new Share(now);
  const one = source();
  greedy.add(one);
  work(modest, 2);
  work(greedy, 200);
  greedy[Symbol.dispose]();
  assert.equal(one.calls, ['pause', 'resume']);
  work(greedy, 500);
  assert.is(one.calls.length, 2);
});

/** Connections that each send the worst message again as soon as it is answered. */
const FLOOD = `
const { workerData, parentPort } = require('node:worker_threads');
const { WebSocket } = require('ws');
const many = '[],'.repeat(1e6);
const text = Buffer.from('{"id":1,"method":"A.a","params":{"x":[' + many + '0]}} no JSON');
let answers = 0;
for (let count = 0; count < 8; count += 1) {
  const socket = new WebSocket(workerData.url);
  socket.on('open', () => socket.send(text, { binary: false }));
  socket.on('message', () => {
    answers += 1;
    parentPort.postMessage(answers);
    socket.send(text, { binary: false });
  });
  socket.on('close', (code) => parentPort.postMessage('closed ' + code));
}
`;

share(
  'a flood of heavy messages does not block a second tenant, and closes no client',
  async () => {
    await using flooded = await openLab({ allow: [] });
    await using calm = await openLab({ allow: [] });
    const tenant = await openRaw(calm.connectUrl);
    const flood = new Worker(FLOOD, { eval: true, workerData: { url: flooded.connectUrl } });
    let answers = 0;
    const ends: string[] = [];
    flood.on('message', (said: number | string) => {
      if (typeof said === 'number') answers = said;
      else ends.push(said);
    });
    await until(() => answers > 0, 'the flood');
    // counted, not timed: load does not change the counts
    const between: number[] = [];
    while (between.length < 21) {
      const before = answers;
      await tenant.call('Browser.getVersion');
      await pause(5);
      between.push(answers - before);
    }
    const median = between.sort((one, other) => one - other)[10] ?? 0;
    const last = answers;
    await until(() => answers > last, 'the flood goes on');
    assert.equal(ends, []);
    assert.ok(median <= 3, `of eight connections ${median} had their turn in each round trip`);
    if (process.env['COST']) console.log(between);
    flood.terminate();
    await once(flood, 'exit');
    tenant.socket.close();
  },
);

share.run();
