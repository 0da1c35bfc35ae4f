/** The lifetime of a session with a real Chrome and clients over the server. */
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket } from 'ws';
import { callSessionServer } from '../../../gateway/sessions/runner-client.ts';
import type { CompleteSessionRequest } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { runSession } from '../../../runner/sessions/run-session.ts';
import { openSessionServer, type Target } from '../../../runner/sessions/server/session-server.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { BROWSERS } from '../../support/runner/browsers.ts';
import { testLease, testRunner } from '../../support/runner/lease.ts';
import { tempDirectory } from '../../support/temp.ts';
import { launchOne, log } from '../browser/lab.ts';

const test = suite('runner/sessions/lifetime-browser');
const LONG_MS = 1_000_000;
const TIMES = { connectMs: LONG_MS, idleMs: LONG_MS, graceMs: LONG_MS, returnMs: 0, resumeMs: 0 };

type Wanted = {
  keepAlive?: boolean;
  timeoutMs?: number;
  idleMs?: number;
  graceMs?: number;
  returnMs?: number;
};

const QUIET = { browserSettings: { logSession: false, recordSession: false } };
const WORK = {
  sessionId: 's',
  projectId: 'p',
  signingKey: 'key',
  sessionParamsJson: JSON.stringify(QUIET),
  context: undefined,
  extension: undefined,
  moreExtensions: [],
  caCertificates: [],
};

/** A core that takes every report. */
function core() {
  const told: CompleteSessionRequest[] = [];
  const started = Promise.withResolvers<void>();
  const runners = {
    async startSession() {
      started.resolve();
      return { accepted: true };
    },
    async completeSession(request: CompleteSessionRequest) {
      told.push(request);
      return { accepted: true };
    },
  } as unknown as Clients['runners'];
  return { told, started: started.promise, runners };
}

async function open({ keepAlive = false, timeoutMs = LONG_MS, ...times }: Wanted) {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const socketPath = join(dir.path, 'server.sock');
  const server = cleanup.use(await openSessionServer({ where: socketPath, log }));
  const chrome = await launchOne({ runDir: dir.path, allow: [] });
  const { told, started, runners } = core();
  const released = new AbortController();
  const work = { ...WORK, timeoutMs, keepAlive };
  const runner = testRunner({ clients: { runners }, runDir: dir.path, log });
  const lease = testLease('lease', { released: released.signal }, runner);
  const ran = runSession(work, lease, {
    runner,
    ...BROWSERS,
    chromes: { take: async () => chrome },
    sessionServer: server,
    times: { ...TIMES, ...times },
  });
  await started;
  const kept = cleanup.move();
  return {
    chrome,
    server,
    socketPath,
    release: () => released.abort(),
    connect: () => connect(`ws+unix:${socketPath}:/connect?signingKey=key`),
    /** How it ended, with everything gone. */
    async ended(): Promise<CompleteSessionRequest | undefined> {
      await ran;
      await chrome.exited;
      return told[0];
    },
    async [Symbol.asyncDispose]() {
      released.abort();
      await ran;
      await kept.disposeAsync();
    },
  };
}

async function connect(url: string): Promise<WebSocket> {
  const client = new WebSocket(url);
  await once(client, 'open');
  return client;
}

/** The answer to one command. */
async function ask(client: WebSocket, method: string): Promise<Record<string, unknown>> {
  client.send(JSON.stringify({ id: 1, method }));
  const [bytes] = await once(client, 'message');
  return JSON.parse(String(bytes)).result;
}

async function closing(client: WebSocket): Promise<string> {
  const [code, reason] = await once(client, 'close');
  return `${code} ${reason}`;
}

/** The HTTP status of an upgrade that is refused. */
async function refusal(url: string): Promise<number> {
  const [, response] = await once(
    new WebSocket(url).on('error', () => {}),
    'unexpected-response',
  );
  return response.statusCode;
}

test('a session ends with the last of two clients, and its server stops', async () => {
  await using scene = await open({ graceMs: 20 });
  const [one, other] = [await scene.connect(), await scene.connect()];
  one.close();
  await once(one, 'close');
  assert.ok((await ask(other, 'Browser.getVersion'))['product']);
  other.close();
  const { end, reason } = (await scene.ended()) ?? {};
  assert.is(`${end}: ${reason}`, 'COMPLETED: its last client has left');
  assert.is(await refusal(`ws+unix:${scene.socketPath}:/connect?signingKey=key`), 410);
});

test('with keepAlive a later client gets the same browser', async () => {
  await using scene = await open({ keepAlive: true, graceMs: 0 });
  const first = await scene.connect();
  const made = await ask(first, 'Target.createBrowserContext');
  await ask(first, 'Browser.close');
  if (first.readyState !== WebSocket.CLOSED) await once(first, 'close');
  const again = await scene.connect();
  const { browserContextIds } = await ask(again, 'Target.getBrowserContexts');
  assert.equal(browserContextIds, [made['browserContextId']]);
  scene.release();
  assert.is(await closing(again), '1000 the session was released');
  assert.is((await scene.ended())?.end, 'COMPLETED');
});

test('a client whose connection broke gets the same browser again, and then leaves', async () => {
  await using scene = await open({ graceMs: 0, returnMs: LONG_MS });
  const first = await scene.connect();
  const made = await ask(first, 'Target.createBrowserContext');
  first.terminate(); // no close frame, as of a client that was killed
  const again = await scene.connect();
  const { browserContextIds } = await ask(again, 'Target.getBrowserContexts');
  assert.equal(browserContextIds, [made['browserContextId']]);
  again.close();
  assert.is((await scene.ended())?.reason, 'its last client has left');
});

test('on a timeout or a lost Chrome every client gets a code and a reason', async () => {
  await using late = await open({ timeoutMs: 6_000 }); // to connect in, on a busy machine
  const said = closing(await late.connect());
  assert.is(await said, '1001 session timed out');
  assert.is((await late.ended())?.end, 'TIMED_OUT');

  await using crashed = await open({ keepAlive: true });
  const heard = closing(await crashed.connect());
  crashed.chrome.kill();
  assert.is(await heard, '1011 the browser was lost');
  assert.is((await crashed.ended())?.end, 'ERROR');
});

test('a silent connection is closed; with keepAlive the session continues', async () => {
  await using kept = await open({ keepAlive: true, idleMs: 2_000 });
  assert.is(await closing(await kept.connect()), '1008 no CDP traffic for 2 s');
  assert.ok((await ask(await kept.connect(), 'Browser.getVersion'))['product']);

  await using left = await open({ idleMs: 2_000, graceMs: 0 });
  assert.is(await closing(await left.connect()), '1008 no CDP traffic for 2 s');
  assert.is((await left.ended())?.reason, 'its last client has left');
});

test('the server lists the open pages and the active one', async () => {
  await using scene = await open({ keepAlive: true });
  const client = await scene.connect();
  const place = { address: `unix:${scene.socketPath}`, signingKey: 'key' };
  const signal = AbortSignal.timeout(30_000);
  const ask = () => callSessionServer(place, { method: 'GET', path: '/targets', signal });
  assert.is(((await ask()) as Target[]).length, 1);
  const params = { url: 'data:text/html,<title>second</title>' };
  client.send(JSON.stringify({ id: 2, method: 'Target.createTarget', params }));
  await once(client, 'message');
  const tabs = await until(async () => {
    const all = (await ask()) as Target[];
    return all.some(({ title }) => title === 'second') && all;
  });
  assert.equal(
    tabs.map(({ url, active }) => [url, active]),
    [
      ['about:blank', false],
      [params.url, true],
    ],
  );
  const wrong = { ...place, signingKey: 'other' };
  const fault = await faultOf(
    callSessionServer(wrong, { method: 'GET', path: '/targets', signal }),
  );
  assert.is(fault.reason, 'SESSION_ENDED');
});

test("the server's socket is private, and other keys and paths are refused", async () => {
  await using scene = await open({ keepAlive: true });
  const { socketPath } = scene;
  assert.is(statSync(socketPath).mode & 0o777, 0o600);
  for (const path of ['/connect', '/connect?signingKey=', '/?signingKey=kex', '/view']) {
    assert.is(await refusal(`ws+unix:${socketPath}:${path}`), 410, path);
  }
  assert.is(await refusal(`ws+unix:${socketPath}:/other?signingKey=key`), 404);
  const client = await scene.connect();
  assert.ok((await ask(client, 'Browser.getVersion'))['product']);
});

test.run();
