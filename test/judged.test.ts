/**
 * The proxy in which responses are judged forwards all bytes unchanged and checks every response.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { errorOf } from './support/fault.ts';
import type { Seen } from './support/judge/judge.ts';
import { openJudged } from './support/judge/judged.ts';
import { overhear } from './support/judge/overheard.ts';
import { freePort } from './support/port.ts';

const test = suite('judged');
const JSON_TYPE = 'content-type: application/json\r\n';
const ERROR = '{"statusCode":404,"error":"Not Found","message":"Route not found."}';

const get = (path: string, method = 'GET') => `${method} ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const sized = (body: string, status = '200 OK') =>
  `HTTP/1.1 ${status}\r\n${JSON_TYPE}content-length: ${body.length}\r\n\r\n${body}`;
const chunked = (...parts: string[]) => {
  const chunks = parts.map((one) => `${one.length.toString(16)};x=y\r\n${one}\r\n`).join('');
  const head = `HTTP/1.1 200 OK\r\n${JSON_TYPE}transfer-encoding: chunked\r\n\r\n`;
  return `${head}${chunks}0\r\na: b\r\n\r\n`;
};

/** The responses that are read from these bytes, with this many at a time. */
function heard(asked: string, answered: string, step: number): Seen[] {
  const seen: Seen[] = [];
  const ear = overhear((one) => seen.push(one));
  for (const [bytes, tell] of [
    [Buffer.from(asked), ear.asked],
    [Buffer.from(answered), ear.answered],
  ] as const) {
    for (let at = 0; at < bytes.length; at += step) tell(bytes.subarray(at, at + step));
  }
  ear.ended();
  return seen;
}

/** Requests, responses, and the result: `method path status text`. */
const CONVERSATIONS: [name: string, asked: string, answered: string, heard: string[]][] = [
  ['a length', get('/a?b=/c'), sized('{"a":1}'), ['GET /a 200 {"a":1}']],
  ['chunks', get('/a'), chunked('{"a"', ':1}'), ['GET /a 200 {"a":1}']],
  ['the end', get('/a'), `HTTP/1.1 200 OK\r\n${JSON_TYPE}\r\n{}`, ['GET /a 200 {}']],
  [
    'one connection, and requests before their answers',
    get('/a') + get('/b') + get('/c'),
    sized('1') + chunked('2') + sized('3'),
    ['GET /a 200 1', 'GET /b 200 2', 'GET /c 200 3'],
  ],
  [
    'bodies of requests',
    `POST /a HTTP/1.1\r\ncontent-length: 20\r\n\r\nGET /x HTTP/1.1\r\n\r\n\nPUT /b HTTP/1.1\r
transfer-encoding: chunked\r\n\r\n2\r\nGE\r\n0\r\n\r\n${get('/c')}`,
    sized('1') + sized('2') + sized('3'),
    ['POST /a 200 1', 'PUT /b 200 2', 'GET /c 200 3'],
  ],
  [
    'answers without a body that declare one',
    get('/a', 'HEAD') + get('/b') + get('/c'),
    `HTTP/1.1 200 OK\r\n${JSON_TYPE}content-length: 9\r\n\r\nHTTP/1.1 304 Not Modified\r\n` +
      `content-length: 9\r\n\r\n${sized('3')}`,
    ['HEAD /a 200 ', 'GET /b 304 ', 'GET /c 200 3'],
  ],
  [
    'a word before the answer',
    get('/a') + get('/b'),
    `HTTP/1.1 100 Continue\r\n\r\n${sized('1')}` +
      `HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n${sized('2')}`,
    ['GET /a 200 1', 'GET /b 200 2'],
  ],
  [
    'an upgrade: what follows is no HTTP',
    `${get('/connect')}${get('/a')}`,
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n${sized('1')}`,
    ['GET /connect 101 '],
  ],
  ['what is no request', 'so what\r\n\r\n', sized('{}', '400 Bad Request'), ['  400 {}']],
  ['a file', get('/a'), 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab', ['GET /a 200 undefined']],
  ['an answer cut off', get('/a'), sized('{"a":1}').slice(0, -1), []],
];

test('each response is paired with its request, at any size of chunks', () => {
  for (const [name, asked, answered, wanted] of CONVERSATIONS) {
    for (const step of [1, 7, 1e6]) {
      const found = heard(asked, answered, step);
      const shown = found.map(
        ({ method, path, status, text: said }) => `${method} ${path} ${status} ${said}`,
      );
      assert.equal(shown, wanted, `${name}, ${step} at a time`);
    }
  }
});

/** A service of raw bytes, and the proxy before it. */
async function openRaw(serve: (socket: Socket) => unknown) {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined); // a test resets it
    void serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy = await openJudged(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return {
    proxy,
    enter: () => connect({ port: Number(new URL(proxy.url).port), allowHalfOpen: true }),
    async [Symbol.asyncDispose]() {
      server.close();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

test('bytes and ends pass unchanged in both directions', async () => {
  const bytes = randomBytes(4 << 20);
  const upgraded = 'HTTP/1.1 101 Switching Protocols\r\n\r\n';
  await using raw = await openRaw(async (socket) => {
    socket.write(upgraded);
    socket.end(await buffer(socket)); // once the client has ended
  });
  const client = raw.enter();
  client.write(get('/connect'));
  client.end(bytes);
  const came = await buffer(client);
  assert.ok(came.equals(Buffer.concat([Buffer.from(upgraded + get('/connect')), bytes])));
});

test('a connection that is reset or refused is reset for the client', async () => {
  await using raw = await openRaw(async (socket) => {
    await once(socket, 'data');
    socket.resetAndDestroy();
  });
  const client = raw.enter();
  client.write(get('/healthz'));
  assert.match(String(await errorOf(text(client))), /ECONNRESET/);

  const gone = Promise.withResolvers<unknown>();
  await using other = await openRaw((socket) => socket.on('error', gone.resolve).resume());
  const leaving = other.enter();
  leaving.write(get('/healthz'), () => setImmediate(() => leaving.resetAndDestroy()));
  assert.match(String(await gone.promise), /ECONNRESET/);

  await using nobody = await openJudged(`http://127.0.0.1:${await freePort()}`);
  const { cause } = (await errorOf(fetch(nobody.url))) as Error;
  assert.match(String(cause), /ECONNRESET|other side closed/);
});

/** The error of a proxy when it closes, after one response with this body to this path. */
async function verdictOf(path: string, answer: string): Promise<string> {
  const raw = await openRaw(async (socket) => {
    await once(socket, 'data');
    socket.end(answer);
  });
  const client = raw.enter();
  client.end(path);
  await text(client);
  return String(await errorOf(raw[Symbol.asyncDispose]().then(() => Promise.reject('nothing'))));
}

test('closing the proxy reports responses that differ from the description', async () => {
  const cases: [string, string, RegExp][] = [
    [get('/healthz'), sized('{"status":"ok"}'), /nothing/],
    [get('/healthz'), sized('{"status":"ok","more":1}'), /GET \/healthz: 200: .*additional prop/s],
    [get('/healthz'), sized('{"status"'), /SyntaxError/],
    [get('/elsewhere'), sized(ERROR, '404 Not Found'), /nothing/],
    [get('/elsewhere'), sized('{}', '404 Not Found'), /required property/],
    [get('/elsewhere'), sized('{}'), /no such route/],
    ['x\r\n\r\n', sized(ERROR.replaceAll('404', '400'), '400 Bad Request'), /nothing/],
    ['x\r\n\r\n', sized('{}', '400 Bad Request'), /required property/],
    ['x\r\n\r\n', sized(ERROR, '404 Not Found'), /no such route/],
    [get('/docs'), 'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<p>', /nothing/],
    [get('/docs'), 'HTTP/1.1 200 OK\r\ncontent-type: text/css\r\n\r\np{}', /css is not described/],
  ];
  for (const [asked, answered, said] of cases) {
    assert.match(await verdictOf(asked, answered), said, asked + answered);
  }
});

test.run();
