/** Waiting for a session's Chrome: by one call of a gateway, answered when there is something. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { locator } from '../../../gateway/sessions/runner-client.ts';
import { faultOf } from '../../support/fault.ts';
import { HOLDER } from '../boot.ts';
import { openSessions } from './runs.ts';

const test = suite('core/sessions/locate');
const ADDRESS = 'unix:/run/tabern/runner.sock';
const LONG_MS = 25_000;

/** A session that waits for its Chrome, and a gateway that requests its address. */
async function openPending() {
  const app = await openSessions();
  const { runners, sessions } = app.clients;
  await runners.registerRunner({ ...HOLDER, address: ADDRESS }, app.asRunner);
  const creating = app.create();
  const { leaseId, sessionId, signingKey } = await app.take();
  const credential = { $case: 'signingKey', value: signingKey } as const;
  let calls = 0;
  const counted: typeof sessions = {
    ...sessions,
    locateSession(...args) {
      calls += 1;
      return sessions.locateSession(...args);
    },
  };
  const gatewayToken = app.asGateway.metadata?.['authorization']?.slice('Bearer '.length) ?? '';
  const locate = locator({ clients: { sessions: counted }, gatewayToken });
  return {
    app,
    creating,
    leaseId,
    sessionId,
    credential,
    calls: () => calls,
    locate: (signal = new AbortController().signal) => locate(credential, signal),
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  };
}

test('a waiting LocateSession returns when Chrome runs', async () => {
  await using pending = await openPending();
  const { app, leaseId } = pending;
  const located = pending.locate();
  const other = app.create();
  const taken = await app.take();
  await app.begin(taken.leaseId); // another's start is none of its own
  await other;
  await app.begin(leaseId);
  assert.is((await located).address, ADDRESS);
  assert.is(pending.calls(), 1);
  await pending.creating;
});

test('a waiting LocateSession fails when the session is released', async () => {
  await using pending = await openPending();
  const located = faultOf(pending.locate());
  await pending.app.release(pending.sessionId);
  assert.is((await located).reason, 'SESSION_ENDED');
  await pending.creating;
});

test('a wait ends in time; without a wait the answer is immediate', async () => {
  await using pending = await openPending();
  const { app, credential } = pending;
  const { sessions } = app.clients;
  for (const waitMs of [undefined, 0, 1]) {
    const found = await sessions.locateSession({ credential, waitMs }, app.asGateway);
    assert.equal([found.status, found.address], ['PENDING', '']);
  }
  const short = { ...app.asGateway, timeoutMs: 600 }; // ends before the call's own deadline
  const found = await sessions.locateSession({ credential, waitMs: LONG_MS }, short);
  assert.is(found.status, 'PENDING');
  await app.release(pending.sessionId);
  await pending.creating;
});

test('a client that disconnects ends the wait', async () => {
  await using pending = await openPending();
  const leaving = new AbortController();
  const located = pending.locate(leaving.signal);
  leaving.abort(new Error('the client has left'));
  assert.ok(await located.catch((error: unknown) => error));
  await pending.app.release(pending.sessionId);
  await pending.creating;
});

test.run();
