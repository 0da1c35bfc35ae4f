/** Messages separated by NUL: split, matched, routed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openPipe } from '../../../../runner/browser/cdp/pipe.ts';
import { openPace } from '../../../../runner/browser/cdp/read-pacing.ts';
import { cdpSessionOf, splitter } from '../../../../runner/browser/cdp/split.ts';
import { ID_CHARS } from '../../../../runner/sessions/relay/pending-commands.ts';
import { until } from '../../../support/poll.ts';

const pipe = suite('runner/browser/cdp/pipe');
const SESSION = '0123456789ABCDEF0123456789ABCDEF';
const SESSION_TAIL = `"sessionId":"${SESSION}"}`;

const noSkip = (): never => {
  throw new Error('nothing is too long here');
};

function ends() {
  const toChrome = new PassThrough();
  const fromChrome = new PassThrough();
  return { toChrome, fromChrome, pipe: openPipe(toChrome, fromChrome) };
}

pipe('messages are complete however the bytes are split', () => {
  const whole = Buffer.from('{"a":1}\0{}\0{"text":"é"}\0');
  for (let size = 1; size <= whole.length; size += 1) {
    const got: string[] = [];
    const feed = splitter((message) => got.push(message.toString()), { skip: noSkip });
    for (let at = 0; at < whole.length; at += size) feed(whole.subarray(at, at + size));
    assert.equal(got, ['{"a":1}', '{}', '{"text":"é"}'], `pieces of ${size}`);
  }
});

pipe('the session id is read from the tail only', () => {
  const tail = `,"sessionId":"${SESSION}"}`;
  assert.is(cdpSessionOf(Buffer.from(`{"id":1,"result":{}${tail}`)), SESSION);
  assert.is(cdpSessionOf(Buffer.from(`{"method":"x","params":{"a":1${tail}}`)), undefined);
  assert.is(cdpSessionOf(Buffer.from('{"id":1,"result":{}}')), undefined);
});

pipe('a response resolves its call, an error rejects it', async () => {
  const { toChrome, fromChrome, pipe } = ends();
  const sent = once(toChrome, 'data');
  const [good, bad] = [pipe.call('A.a', { x: 1 }), pipe.call('B.b').catch(String)];
  const [one, two] = [1, 2];
  fromChrome.write(`{"id":${two},"error":{"message":"no"}}\0{"id":${one},"result":{"y":2}}\0`);
  assert.equal(await good, { y: 2 });
  assert.match(String(await bad), /no/);
  const both = [
    `{"id":${one},"method":"A.a","params":{"x":1}}\0`,
    `{"id":${two},"method":"B.b","params":{}}\0`,
  ];
  assert.is(String((await sent)[0]), both.join(''), 'in one write');
});

pipe('the end of Chrome rejects pending and later calls', async () => {
  const { fromChrome, pipe } = ends();
  const waiting = pipe.call('A.a').catch(String);
  fromChrome.end();
  await pipe.closed;
  assert.match(String(await waiting), /gone/);
  assert.match(String(await pipe.call('A.a').catch(String)), /gone/);
});

pipe("a response to a client's id settles no call of the runner", async () => {
  const { fromChrome, pipe } = ends();
  const call = pipe.call('A.a');
  const gone = '{"error":{"code":-32001,"message":"Session with given id not found."}';
  const heard: number[] = [];
  pipe.onUnknownSession((id, raw) => {
    assert.is(JSON.parse(raw.toString()).id, id);
    heard.push(id);
  });
  for (const id of [-1, 0, 1, 2]) fromChrome.write(`${gone},"id":${id}}\0`);
  fromChrome.write('{"id":1,"result":{"y":1}}\0');
  assert.equal(await call, { y: 1 });
  assert.equal(heard, [-1, 0, 1, 2]);
});

pipe('ids of commands on sessions are unique and have one length', () => {
  const { pipe } = ends();
  const ids = Array.from({ length: 1_000 }, () => pipe.newId());
  assert.is(new Set(ids).size, ids.length);
  for (const id of ids) assert.ok(`${id}`.length === ID_CHARS && id >= -(2 ** 31), `${id}`);
});

for (const [what, message] of [
  ['no JSON', 'x\0'],
  ['JSON that is no message', 'null\0'],
  ['a broken message of a session', `{"method",${SESSION_TAIL}\0`],
]) {
  pipe(`a Chrome that writes ${what}ends its pipe, and nothing throws`, async () => {
    const { toChrome, fromChrome, pipe } = ends();
    pipe.claim(SESSION, (raw) => void JSON.parse(raw.toString()));
    const call = pipe.call('A.a').catch(String);
    fromChrome.write(message);
    await pipe.closed;
    assert.match(String(await call), /gone/);
    assert.ok(toChrome.destroyed);
  });
}

pipe('only the tail of a message above the limit is kept, and the next message is complete', () => {
  const whole: string[] = [];
  const tails: string[] = [];
  const feed = splitter((message) => whole.push(message.toString()), {
    skip: (tail) => tails.push(tail.toString()),
    maxBytes: 100,
  });
  const long = `{"id":1,"result":{"value":"${'y'.repeat(200)}"},${SESSION_TAIL}`;
  const bytes = Buffer.from(`${'x'.repeat(100)}\0${long}\0{}\0${long}\0`);
  for (let at = 0; at < bytes.length; at += 7) feed(bytes.subarray(at, at + 7));
  feed(bytes);
  assert.equal(whole, ['x'.repeat(100), '{}', 'x'.repeat(100), '{}']);
  assert.equal(tails, Array(4).fill(`,${SESSION_TAIL}`));
});

pipe('a message that is too long is reported to the listener of its session', async () => {
  const { fromChrome, pipe } = ends();
  const got: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  pipe.claim(SESSION, (raw) => got.push(raw.toString()), resolve);
  const part = Buffer.alloc(1 << 20, 'x');
  for (let mib = 0; mib <= 128; mib += 1) fromChrome.write(part);
  fromChrome.write(`,${SESSION_TAIL}\0`);
  await promise;
  assert.equal(got, []);
  fromChrome.end(`{"method":"P.p","params":{},${SESSION_TAIL}\0`);
  await pipe.closed;
  assert.is(got.length, 1);
});

pipe('messages of a session reach its listener only, unchanged', async () => {
  const { fromChrome, pipe } = ends();
  const got: string[] = [];
  const events: string[] = [];
  pipe.claim(SESSION, (raw) => got.push(raw.toString()));
  pipe.onEvent(({ method }) => events.push(method));
  const message = `{"method":"P.p","params":{},"sessionId":"${SESSION}"}`;
  fromChrome.write(`${message}\0{"method":"T.t","params":{}}\0`);
  pipe.release(SESSION);
  fromChrome.write(`${message}\0`);
  fromChrome.end();
  await pipe.closed;
  assert.equal(got, [message]);
  assert.equal(events, ['T.t']);
});

pipe(
  'after news alone reading rests, but not while an answer is awaited or within a message',
  async () => {
    // its output is its input: written messages return as messages of Chrome
    const child = spawn('sh', ['-c', 'exec cat >&4'], {
      stdio: ['pipe', 'ignore', 'inherit', 'pipe', 'pipe'],
    });
    const [stdin, , , toChrome, fromChrome] = child.stdio as Ends;
    using _ = { [Symbol.dispose]: () => void child.kill() };
    const stops = stopsOf(fromChrome);
    const pipe = openPipe(toChrome, fromChrome, openPace(fromChrome, { now: () => 0 }));
    const heard: string[] = [];
    pipe.claim(SESSION, (raw) => heard.push(raw.toString()));
    const news = `{"method":"Network.dataReceived","params":{},${SESSION_TAIL}`;
    const event = `{"method":"Page.loadEventFired","params":{},${SESSION_TAIL}`;
    const hear = async (text: string, messages: number): Promise<void> => {
      stdin.write(text);
      await until(() => heard.length === messages);
    };
    await hear(`${event}\0`, 1);
    assert.is(stops(), 0);
    await hear(`${news}\0`, 2);
    assert.is(stops(), 1);
    pipe.write(Buffer.from('{}'));
    await hear(`${news}\0`, 3);
    assert.is(stops(), 1, 'an answer is awaited');
    await hear(`{"id":1,"result":{},${SESSION_TAIL}\0`, 4);
    await hear(`${news}\0${news.slice(0, 20)}`, 5);
    assert.is(stops(), 1, 'a message is not whole');
    await hear(`${news.slice(20)}\0`, 6);
    assert.is(stops(), 2);
    stdin.end();
    await once(child, 'close');
  },
);

type Ends = [Writable, null, null, Writable, Readable] & ChildProcess['stdio'];

/** How often Node stopped to read it. */
function stopsOf(stream: Readable): () => number {
  const inside = (stream as unknown as { _handle: { readStop(): number } })._handle;
  const readStop = inside.readStop.bind(inside);
  let count = 0;
  inside.readStop = () => {
    count += 1;
    return readStop();
  };
  return () => count;
}

pipe('reading stops while at least one owner pauses it', () => {
  const { fromChrome, pipe } = ends();
  const [one, two] = [{}, {}];
  pipe.pause(one);
  pipe.pause(two);
  pipe.resume(one);
  assert.ok(fromChrome.isPaused());
  pipe.resume(two);
  assert.not(fromChrome.isPaused());
});

pipe.run();
