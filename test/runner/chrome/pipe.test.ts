/** Messages between NULs: cut, matched, routed. */
import { PassThrough } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { cdpSessionOf, openPipe, splitter } from '../../../runner/chrome/pipe.ts';

const pipe = suite('runner/chrome/pipe');
const SESSION = '0123456789ABCDEF0123456789ABCDEF';

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
  fromChrome.write('{"id":2,"error":{"code":-1,"message":"no"}}\0{"id":1,"result":{"y":2}}\0');
  assert.equal(await good, { y: 2 });
  assert.match(String(await bad), /no/);
  assert.is(sent[0], '{"id":1,"method":"A.a","params":{"x":1}}\0');
});

pipe('the end of Chrome rejects who waits and who comes later', async () => {
  const { fromChrome, pipe } = ends();
  const waiting = pipe.call('A.a').catch(String);
  fromChrome.end();
  await pipe.closed;
  assert.match(String(await waiting), /gone/);
  assert.match(String(await pipe.call('A.a').catch(String)), /gone/);
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
