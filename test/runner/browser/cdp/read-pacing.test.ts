/** Reading from Chrome's pipe pauses after network events only. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openPace } from '../../../../runner/browser/cdp/read-pacing.ts';
import { until } from '../../../support/poll.ts';

const pace = suite('runner/browser/cdp/read-pacing');
const NEWS = '{"method":"Network.dataReceived","params":{}}';
const OTHER = '{"method":"Page.loadEventFired","params":{}}';
/** Nothing but a word ends a rest of that length. */
const FOREVER_MS = 600_000;
/** Of the event loop: by then what can be read has been. */
const TURNS = 10;

/** Two ends of a socket, one of them read at a pace; each write is one message. */
async function openLab(restMs?: number) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const coming = once(server, 'connection');
  const reader = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [chrome] = (await coming) as [Socket];
  const heard: string[] = [];
  let at = 0;
  const own = openPace(reader, { ...(restMs && { pauseMs: restMs }), now: () => at });
  reader.on('data', (message) => {
    heard.push(message.toString());
    own.onMessage(message);
    own.onRead();
  });
  return {
    pace: own,
    heard,
    reader,
    chrome,
    pass(ms: number): void {
      at += ms;
    },
    async hear(message: string): Promise<void> {
      const before = heard.length;
      chrome.write(message);
      await until(() => heard.length > before);
      assert.is(heard.at(-1), message);
    },
    async hearNothing(message: string): Promise<void> {
      const before = heard.length;
      chrome.write(message);
      for (let turns = 0; turns < TURNS; turns += 1) await turn();
      assert.is(heard.length, before);
    },
    [Symbol.dispose]() {
      own[Symbol.dispose]();
      reader.destroy();
      chrome.destroy();
      server.close();
    },
  };
}

pace('after network events nothing is read until a command is sent', async () => {
  using lab = await openLab(FOREVER_MS);
  await lab.hear(NEWS);
  await lab.hearNothing(OTHER);
  lab.pace.onCommand();
  await until(() => lab.heard.length === 2);
  assert.equal(lab.heard, [NEWS, OTHER]);
});

pace('a pause ends by itself', async () => {
  using lab = await openLab();
  for (let times = 0; times < 3; times += 1) await lab.hear(NEWS);
});

pace('other messages cause no pause', async () => {
  for (const other of [
    OTHER,
    '{"method":"Network.requestIntercepted","params":{}}', // its request waits for an answer
    '{"id":1,"result":{}}',
  ]) {
    using lab = await openLab(FOREVER_MS);
    await lab.hear(other);
    await lab.hear(NEWS);
    await lab.hearNothing(NEWS);
  }
});

for (const answer of ['{"id":1,"result":{}}', '{"error":{"message":"gone"},"id":1}']) {
  pace(`while ${answer}is pending, reading is not paced`, async () => {
    using lab = await openLab(FOREVER_MS);
    lab.pace.onCommand();
    await lab.hear(NEWS);
    await lab.hear(NEWS);
    await lab.hear(answer);
    await lab.hear(NEWS);
    await lab.hearNothing(NEWS);
  });
}

pace('a later command does not delay a slow response', async () => {
  using lab = await openLab(FOREVER_MS);
  lab.pace.onCommand();
  lab.pass(100);
  lab.pace.onCommand();
  await lab.hear('{"id":2,"result":{}}');
  await lab.hear(NEWS);
  await lab.hearNothing(NEWS);
});

pace('after a dispose during a pause the end of the stream is still read', async () => {
  using lab = await openLab(FOREVER_MS);
  await lab.hear(NEWS);
  lab.chrome.end(OTHER);
  lab.pace[Symbol.dispose]();
  await once(lab.reader, 'end');
  assert.equal(lab.heard, [NEWS, OTHER]);
});

pace('a slow response stops no pause', async () => {
  using lab = await openLab(FOREVER_MS);
  lab.pace.onCommand();
  lab.pass(100);
  await lab.hear(NEWS);
  await lab.hearNothing(NEWS);
});

pace.run();
