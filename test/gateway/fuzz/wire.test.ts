/** Hostile HTTP, JSON and timing against a listener. */
import { once } from 'node:events';
import { connect } from 'node:net';
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { boot as bootCore, KEY } from '../../core/boot.ts';
import { until } from '../../support/poll.ts';
import { sized } from '../../support/whole.ts';
import { openUploads } from '../routes/files/contexts.ts';
import { ask, openGateway, raw } from '../sessions/runner.ts';
import { openSlow } from './slow.ts';

const test = suite('gateway/fuzz/wire');

const SEED = Number(process.env['TABERN_FUZZ_SEED'] ?? 7);
console.log(`TABERN_FUZZ_SEED=${SEED}`);
const RAW_COUNT = sized(100, 300);
const HOST = `host: x\r\nx-svc-api-key: ${KEY}\r\n`;
const END = 'connection: close\r\n\r\n';
const JSON_TYPE = 'content-type: application/json\r\n';
const CHUNKED = `transfer-encoding: chunked\r\n${JSON_TYPE}`;

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, one]) => one);

/** One request, or bytes like one, and the only allowed status of the response. */
const WIRES: [name: string, bytes: string, status: string][] = [
  ['a NUL in the path', `GET /v1/contexts/%00 HTTP/1.1\r\n${HOST}${END}`, '404'],
  ['dots, encoded', `GET /v1/contexts/%2e%2e%2fprojects HTTP/1.1\r\n${HOST}${END}`, '404'],
  ['dots, bare', `GET /v1/contexts/../projects HTTP/1.1\r\n${HOST}${END}`, '404'],
  ['overlong UTF-8', `GET /v1/contexts/%c0%af HTTP/1.1\r\n${HOST}${END}`, '404'],
  ['half a percent', `GET /v1/contexts/% HTTP/1.1\r\n${HOST}${END}`, '404'],
  ['space before a colon', `GET / HTTP/1.1\r\n${HOST}a : b\r\n${END}`, '400'],
  ['a folded header', `GET / HTTP/1.1\r\n${HOST}a: b\r\n c\r\n${END}`, '400'],
  ['two codings', `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked, x\r\n${END}`, '400'],
  ['a sign in the length', `POST / HTTP/1.1\r\n${HOST}content-length: +1\r\n\r\na`, '400'],
  [
    'a length beyond all',
    `POST / HTTP/1.1\r\n${HOST}content-length: ${'9'.repeat(30)}\r\n\r\n`,
    '400',
  ],
  ['a chunk of no size', `POST /v1/contexts HTTP/1.1\r\n${HOST}${CHUNKED}\r\nx\r\n`, '400'],
  ['another version', `GET / HTTP/3.0\r\n${HOST}${END}`, '400'],
];

test('malformed requests receive one answer', async () => {
  await using app = await openUploads();
  for (const [name, bytes, status] of WIRES) {
    assert.equal(statuses(await raw(app.gateway.url, bytes)), [status], name);
  }
  const smuggled = 'GET /v1/projects HTTP/1.1\r\nhost: x\r\n\r\n';
  const both = `content-length: 4\r\n${CHUNKED}`;
  const bytes = `POST /v1/contexts HTTP/1.1\r\n${HOST}${both}\r\n0\r\n\r\n${smuggled}`;
  assert.equal(statuses(await raw(app.gateway.url, bytes)), ['400'], 'no second request');
});

test('random bytes never end the service, and receive at most one answer per request', async () => {
  await using app = await openUploads();
  const head = 'GET /v1/projects HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nabcde';
  const cut = fc
    .tuple(fc.nat({ max: head.length }), fc.uint8Array({ maxLength: 12 }))
    .map(([at, more]) =>
      Buffer.concat([Buffer.from(head.slice(0, at)), more, Buffer.from(head.slice(at + 1))]),
    );
  const wild = fc.oneof(fc.uint8Array({ minLength: 1, maxLength: 200 }).map(Buffer.from), cut);
  for (const bytes of fc.sample(wild, { seed: SEED, numRuns: RAW_COUNT })) {
    const said = await spoken(app.gateway.url, bytes);
    const answers = statuses(said).filter((one) => one !== '100');
    // One for a request, and one for what follows its body.
    assert.ok(answers.length <= 2, `${bytes.toString('latin1')}\n${said}`);
    for (const one of answers) assert.ok(Number(one) < 500, `${bytes.toString('latin1')}\n${said}`);
  }
  assert.is((await ask(app.gateway.url, 'GET', '/healthz')).status, 200);
});

/** Sends only these bytes; returns the whole response. */
async function spoken(url: string, bytes: Buffer): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk;
  });
  socket.on('error', () => undefined); // it may be cut while we speak
  socket.end(bytes);
  await once(socket, 'close');
  return text;
}

/** Text of a JSON body, and the response. */
const JSONS: [name: string, text: string, status: number][] = [
  ['200,000 levels', `${'['.repeat(200_000)}${']'.repeat(200_000)}`, 400],
  ['__proto__', '{"params":{"__proto__":{"a":1}}}', 400],
  ['a number beyond all', '{"params":{"a":1e400}}', 400],
  ['half a surrogate pair', '{"params":{"a":"\\ud800"}}', 400],
  ['a NUL byte', '{"params":{"a":"\u0000"}}', 400],
  ['a byte order mark', '\ufeff{"params":{}}', 202],
  ['text after the end', '{"params":{}} x', 400],
  ['1 MiB of text', `{"params":{"a":"${'x'.repeat(1 << 20)}"}}`, 413],
  ['NaN', '{"params":{"a":NaN}}', 400],
];

test('a JSON body is stored and returned unchanged, or refused', async () => {
  await using app = await bootCore();
  const functionId = await app.publish({ name: 'f' });
  await using gateway = await openGateway(app.core.handlers);
  const headers = { 'content-type': 'application/json', 'x-svc-api-key': KEY };
  const path = `/v1/functions/${functionId}/invoke`;
  for (const [name, body, status] of JSONS) {
    assert.is((await ask(gateway.url, 'POST', path, { headers, body })).status, status, name);
  }
  const kept = {
    constructor: 1,
    toString: null,
    a: ['\u0000', '🙂', '\u2028', ''],
    b: -0.5,
    c: 1e21,
    nested: { '': { ' ': [[[]]] } },
    big: 2 ** 53,
  };
  const sent = { headers, body: JSON.stringify({ params: kept }) };
  assert.is((await ask(gateway.url, 'POST', path, sent)).status, 202);
  const works = await Promise.all(Array.from({ length: 8 }, () => app.lease('INVOCATION')));
  const params = works.flat().flatMap(({ item }) => {
    return item?.$case === 'invocation' ? [JSON.parse(item.value.paramsJson)] : [];
  });
  assert.ok(params.some((one) => JSON.stringify(one) === JSON.stringify(sorted(kept, one))));
});

/** With the members in the order of the other one: a Struct has none. */
function sorted(value: unknown, like: unknown): unknown {
  if (Array.isArray(value)) return value.map((one, at) => sorted(one, (like as unknown[])[at]));
  if (typeof value !== 'object' || value === null) return value;
  const members = new Map(Object.entries(value));
  const keys = Object.keys((like ?? {}) as object);
  if (keys.length !== members.size) return value;
  return Object.fromEntries(
    keys.map((key) => [key, sorted(members.get(key), Reflect.get(like as object, key))]),
  );
}

const SLOW = 60;
/** Enough for a loaded machine; a service without time limits would wait two minutes. */
const CLOSED_MS = 60_000;

test('a stalled client is disconnected, and delays no other', async () => {
  const times = { headersMs: 500, idleMs: 700, checkMs: 50 };
  await using gateway = await openGateway({}, undefined, { times });
  await using headers = await openSlow(gateway.url, { kind: 'headers', count: SLOW, dripMs: 100 });
  await using bodies = await openSlow(gateway.url, { kind: 'bodies', count: SLOW });
  await using readers = await openSlow(gateway.url, { kind: 'readers', count: SLOW, dripMs: 100 });
  assert.is((await ask(gateway.url, 'GET', '/openapi.json')).status, 200);
  for (const { closed } of [headers, bodies, readers]) {
    await until(() => closed.length === SLOW, CLOSED_MS);
  }
  assert.is((await ask(gateway.url, 'GET', '/openapi.json')).status, 200);
});

test.run();
