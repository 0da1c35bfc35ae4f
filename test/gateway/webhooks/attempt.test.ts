/** One attempt against a real TLS receiver on loopback: proto/spec/webhooks.md 5. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { retryAfterOf } from '../../../gateway/webhooks/attempt.ts';
import { bootSend, PATIENT, SHORT } from '../../support/core/send.ts';
import { until } from '../../support/poll.ts';
import type { Answer } from '../../support/servers/receiver.ts';

const sending = suite('gateway/webhooks/attempt');
/** Above Node's own patience with one of several addresses, 250 ms. */
const BUSY_MS = 400;

sending("the endpoint receives one POST with the claim's headers and bytes only", async () => {
  await using app = await bootSend();
  const result = await app.post(`${app.receiver.url}/a%20b?x=1`);
  assert.is(result.outcome, 'OK');
  assert.is(result.status, 200);
  assert.is(result.error, '');
  const [got] = app.receiver.requests;
  assert.is(app.receiver.requests.length, 1);
  assert.is(got?.method, 'POST');
  assert.is(got?.path, '/a%20b?x=1');
  assert.is(got?.body.toString(), '{"id":"e1","text":"ü"}');
  const names = Object.keys(got?.headers ?? {}).sort();
  const own = ['content-type', 'user-agent', 'webhook-id'];
  assert.equal(names, [...own, 'connection', 'content-length', 'host'].sort());
});

for (const status of [200, 201, 204, 299]) {
  sending(`${status} is success`, async () => {
    await using app = await bootSend();
    app.receiver.script(status);
    assert.is((await app.post()).outcome, 'OK');
  });
}

for (const status of [300, 301, 302, 303, 307, 308, 400, 404, 410, 429, 500, 503]) {
  const what = status < 400 ? 'redirect-is-failure: ' : '';
  sending(`${what}${status} is failure, and the redirect is not followed`, async () => {
    await using app = await bootSend();
    app.receiver.script((response) =>
      response.writeHead(status, { location: `${app.receiver.url}/next` }).end('no'),
    );
    const result = await app.post();
    assert.is(result.outcome, 'HTTP');
    assert.is(result.status, status);
    assert.match(result.error, new RegExp(`answered ${status}`));
    assert.is(result.response.toString(), 'no');
    assert.is(app.receiver.requests.length, 1);
  });
}

for (const [status, header, wanted] of [
  [500, 'abort-message', true],
  [400, 'abort-message', true],
  [500, 'later', false],
  [204, 'abort-message', false],
] as const) {
  sending(
    `${status} with webhook-delivery: ${header} ${wanted ? 'ends' : 'does not end'} it`,
    async () => {
      await using app = await bootSend();
      app.receiver.script((response) =>
        response.writeHead(status, { 'webhook-delivery': header }).end(),
      );
      assert.is((await app.post()).abortMessage, wanted);
    },
  );
}

const silent: Answer = () => {};
const drip: Answer = (response) => {
  response.writeHead(200);
  const timer = setInterval(() => response.write('x'), 20);
  response.once('close', () => clearInterval(timer));
};
const endless: Answer = (response) => {
  response.writeHead(200);
  const chunk = Buffer.alloc(16_384, 'x');
  const more = () => {
    while (response.write(chunk));
    response.once('drain', more);
  };
  more();
};

sending('no answer within the budget is a timeout', async () => {
  await using app = await bootSend({ budget: SHORT });
  app.receiver.script(silent);
  const result = await app.post();
  assert.is(result.outcome, 'TIMEOUT');
  assert.is(result.error, 'no answer within 0.3 s');
  assert.is(result.status, 0);
});

sending('a late answer within the budget is success', async () => {
  await using app = await bootSend();
  app.receiver.script((response) => void setTimeout(() => response.writeHead(204).end(), 400));
  assert.is((await app.post()).outcome, 'OK');
});

sending(
  'the status line decides: a body that never ends is success, and the socket closes',
  async () => {
    await using app = await bootSend();
    let isClosed = false;
    app.receiver.script((response, request) => {
      response.once('close', () => {
        isClosed = true;
      });
      (drip as (r: typeof response, q: typeof request) => void)(response, request);
    });
    const result = await app.post();
    assert.is(result.outcome, 'OK');
    assert.match(result.response.toString(), /^x+$/);
    await until(() => isClosed);
  },
);

sending('4 KiB of a flood is stored and little more is read', async () => {
  await using app = await bootSend({ budget: { ...PATIENT, bodyMs: 60_000 } });
  app.receiver.script(endless);
  const result = await app.post();
  assert.is(result.outcome, 'OK');
  assert.is(result.response.length, 4_096);
});

sending('a connection cut before the status line is a reset; a later cut is not', async () => {
  await using app = await bootSend();
  app.receiver.script(
    (response) => response.destroy(),
    (response) => {
      response.writeHead(200, { 'content-length': '100' }).write('x');
      setTimeout(() => response.destroy(), 50);
    },
  );
  const cut = await app.post();
  assert.is(cut.outcome, 'RESET');
  assert.is((await app.post()).outcome, 'OK');
});

for (const [what, bytes] of [
  ['garbage', 'this is not HTTP\r\n\r\n'],
  ['an upgrade', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx'],
  ['headers of 20 KiB', `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_480)}\r\n\r\n`],
] as const) {
  sending(`${what} is not valid HTTP`, async () => {
    await using app = await bootSend();
    app.receiver.script((response) => response.socket?.end(bytes));
    const result = await app.post();
    assert.is(result.outcome, 'PROTOCOL');
    assert.is(result.status, 0);
  });
}

sending('informational responses are ignored', async () => {
  await using app = await bootSend();
  app.receiver.script((response) => {
    response.writeEarlyHints({ link: '</x>; rel=preload' });
    response.writeHead(503, { 'retry-after': '120' }).end();
  });
  const result = await app.post();
  assert.is(result.status, 503);
  assert.is(result.retryAfterSeconds, 120);
});

sending(
  'a kept connection that the endpoint has just closed is not a failure: the request is repeated',
  async () => {
    await using app = await bootSend();
    await app.post();
    app.receiver.script((response) => response.socket?.destroy());
    assert.is((await app.post()).outcome, 'OK');
    assert.is(app.receiver.requests.length, 3);
  },
);

sending('a stopping sender releases unsent claims, and ends attempts in flight', async () => {
  await using app = await bootSend();
  assert.is((await app.post(app.receiver.url, AbortSignal.abort())).outcome, 'UNSENT');
  assert.equal(app.receiver.requests, []);
  const stopping = new AbortController();
  app.receiver.script(silent);
  const sent = app.post(app.receiver.url, stopping.signal);
  await app.receiver.received(() => true);
  stopping.abort();
  assert.is((await sent).outcome, 'RESET');
});

sending('a busy process waits for one of several addresses', async () => {
  const work = (): void => {
    const until = performance.now() + BUSY_MS;
    while (performance.now() < until);
  };
  const resolve = async (): Promise<string[]> => {
    setImmediate(work); // when the first address has been dialled
    return ['127.0.0.1', '::1'];
  };
  await using app = await bootSend({ allow: ['127.0.0.0/8', '::1/128'], resolve });
  const { port } = new URL(app.receiver.url);
  const { outcome, error } = await app.post(`https://hook.example.com:${port}/`);
  assert.is(outcome, 'OK', error);
});

const NOW = Date.parse('Fri, 02 Jan 2026 03:04:05 GMT');
for (const [text, wanted] of [
  ['0', 0],
  ['120', 120],
  ['Fri, 02 Jan 2026 03:05:05 GMT', 60],
  ['Fri, 02 Jan 2026 03:00:00 GMT', 0],
  ['9999999999', 604_800],
  ['-1', undefined],
  ['1.5', undefined],
  ['soon', undefined],
  [undefined, undefined],
] as const) {
  sending(`a Retry-After of ${text} is ${wanted}`, () => {
    assert.is(retryAfterOf(text, NOW), wanted);
  });
}

sending.run();
