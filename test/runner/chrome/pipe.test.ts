/** Messages between NULs: cut, matched, routed. */
import { PassThrough } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { cdpSessionOf, OWN_IDS, openPipe, splitter } from '../../../runner/chrome/pipe.ts';

const pipe = suite('runner/chrome/pipe');
const SESSION = '0123456789ABCDEF0123456789ABCDEF';
const SESSION_TAIL = `"sessionId":"${SESSION}"}`;

function ends() {
  const toChrome = new PassThrough();
  const fromChrome = new PassThrough();
  return { toChrome, fromChrome, pipe: openPipe(toChrome, fromChrome) };
}

pipe('messages are whole however the bytes were cut', () => {
  const whole = Buffer.from('{"a":1}\0{}\0{"text":"é"}\0');
  for (let size = 1; size <= whole.length; size += 1) {
    const got: string[] = [];
    const feed = splitter((message) => got.push(message.toString()));
    for (let at = 0; at < whole.length; at += size) feed(whole.subarray(at, at + size));
    assert.equal(got, ['{"a":1}', '{}', '{"text":"é"}'], `pieces of ${size}`);
  }
});

pipe('the session is read from the tail, and from nowhere else', () => {
  const tail = `,"sessionId":"${SESSION}"}`;
  assert.is(cdpSessionOf(Buffer.from(`{"id":1,"result":{}${tail}`)), SESSION);
  assert.is(cdpSessionOf(Buffer.from(`{"method":"x","params":{"a":1${tail}}`)), undefined);
  assert.is(cdpSessionOf(Buffer.from('{"id":1,"result":{}}')), undefined);
});

pipe('an answer settles its call, an error rejects it', async () => {
  const { toChrome, fromChrome, pipe } = ends();
  const sent: string[] = [];
  toChrome.on('data', (bytes) => sent.push(String(bytes)));
  const [good, bad] = [pipe.call('A.a', { x: 1 }), pipe.call('B.b').catch(String)];
  const [one, two] = [OWN_IDS, OWN_IDS + 1];
  fromChrome.write(`{"id":${two},"error":{"message":"no"}}\0{"id":${one},"result":{"y":2}}\0`);
  assert.equal(await good, { y: 2 });
  assert.match(String(await bad), /no/);
  assert.is(sent[0], `{"id":${one},"method":"A.a","params":{"x":1}}\0`);
});

pipe('the end of Chrome rejects who waits and who comes later', async () => {
  const { fromChrome, pipe } = ends();
  const waiting = pipe.call('A.a').catch(String);
  fromChrome.end();
  await pipe.closed;
  assert.match(String(await waiting), /gone/);
  assert.match(String(await pipe.call('A.a').catch(String)), /gone/);
});

pipe('an answer to a number of a client is not taken for ours', async () => {
  const { fromChrome, pipe } = ends();
  const call = pipe.call('A.a');
  const gone = '{"error":{"message":"Session with given id not found."}';
  for (const id of [-1, 0, 1, 2]) fromChrome.write(`${gone},"id":${id}}\0`);
  fromChrome.write(`{"id":${OWN_IDS},"result":{"y":1}}\0`);
  assert.equal(await call, { y: 1 });
});

for (const [what, message] of [
  ['no JSON', 'x\0'],
  ['JSON that is no message', 'null\0'],
  ['a broken message of a session', `{"method",${SESSION_TAIL}\0`],
]) {
  pipe(`a Chrome that writes ${what} is given up, and nothing throws`, async () => {
    const { toChrome, fromChrome, pipe } = ends();
    pipe.claim(SESSION, (raw) => void JSON.parse(raw.toString()));
    const call = pipe.call('A.a').catch(String);
    fromChrome.write(message);
    await pipe.closed;
    assert.match(String(await call), /gone/);
    assert.ok(toChrome.destroyed);
  });
}

pipe('a message without an end is not kept beyond the limit', () => {
  const feed = splitter(() => undefined, 100);
  feed(Buffer.from(`${'x'.repeat(90)}\0${'y'.repeat(90)}`));
  assert.throws(() => feed(Buffer.from('y'.repeat(11))), /more than 100 bytes/);
});

pipe('a session goes to who claimed it, raw; others see nothing', async () => {
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

pipe('reading stops while anyone pauses it', () => {
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
