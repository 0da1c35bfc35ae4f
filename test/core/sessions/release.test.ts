/** Releases, the slots that they free, and where sessions are. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { faultOf } from '../../support/fault.ts';
import { HOLDER } from '../boot.ts';
import { openSessions } from './runs.ts';

const test = suite('core/sessions/release');

type App = Awaited<ReturnType<typeof openSessions>>;

async function releases(app: App, knownLeaseIds: string[] = [], waitMs = 0): Promise<string[]> {
  const request = { ...HOLDER, knownLeaseIds, waitMs };
  return (await app.clients.runners.awaitReleases(request, app.asRunner)).leaseIds;
}

test('a released PENDING session ends at once, and its runner cannot start it', async () => {
  await using app = await openSessions();
  const creating = app.create();
  const { sessionId, leaseId } = await app.take();
  const released = await app.release(sessionId);
  assert.is(released.status, 'COMPLETED');
  assert.ok(released.endedAt);
  assert.is((await creating).status, 'COMPLETED');
  assert.not.ok(await app.begin(leaseId));
  assert.equal(await releases(app), []);
});

test('a released session that still runs has no URLs', async () => {
  await using app = await openSessions();
  const { session, leaseId } = await app.run();
  const { id, connectUrl } = session;
  assert.is((await app.read(id)).connectUrl, connectUrl);
  const released = await app.release(id);
  assert.is(released.status, 'RUNNING');
  for (const { connectUrl, signingKey, seleniumRemoteUrl } of [released, await app.read(id)]) {
    assert.equal([connectUrl, signingKey, seleniumRemoteUrl], [undefined, undefined, undefined]);
  }
  assert.ok(await app.end(leaseId));
  const { session: other } = await app.run();
  assert.ok((await app.read(other.id)).connectUrl);
});

test('the session of a cancelled invocation has no URLs', async () => {
  await using app = await openSessions();
  const { id, sessionId } = await app.invoke(await app.publish({ name: 'f' }));
  await app.lease('INVOCATION');
  assert.ok((await app.read(sessionId)).connectUrl);
  await app.clients.invocations.cancelInvocation({ id }, app.asProject);
  assert.is((await app.read(sessionId)).status, 'RUNNING');
  assert.is((await app.read(sessionId)).connectUrl, undefined);
});

test('a polling runner receives a release until the session has ended', async () => {
  await using app = await openSessions();
  const [one, two] = [await app.run(), await app.run()];
  const listening = releases(app, [], 25_000);
  assert.is((await app.release(one.session.id)).status, 'RUNNING');
  assert.equal(await listening, [one.leaseId]);
  assert.equal(await releases(app), [one.leaseId], 'it is state, no message');
  const later = releases(app, [one.leaseId], 25_000);
  await app.release(two.session.id);
  assert.equal((await later).sort(), [one.leaseId, two.leaseId].sort());
  await app.end(one.leaseId);
  assert.equal(await releases(app), [two.leaseId]);
  assert.is((await app.read(one.session.id)).status, 'COMPLETED');
});

test('a second release, and a release of an ended session, change nothing', async () => {
  await using app = await openSessions();
  const { session, leaseId } = await app.run();
  await app.release(session.id);
  const once = await app.read(session.id);
  app.clock.advance(1_000);
  assert.equal(await app.release(session.id), once);
  await app.end(leaseId);
  const ended = await app.read(session.id);
  app.clock.advance(1_000);
  assert.equal(await app.release(session.id.toUpperCase()), ended);
});

test("only REQUEST_RELEASE of the project's own session is accepted", async () => {
  await using app = await openSessions();
  const { session } = await app.run();
  const { sessions } = app.clients;
  const update = (id: string, status: string, projectId?: string) => {
    const request = { id, status, ...(projectId && { projectId }) };
    return faultOf(sessions.updateSession(request, app.asProject));
  };
  for (const status of ['', 'COMPLETED', 'request_release']) {
    assert.is((await update(session.id, status)).facts['field'], 'status');
  }
  assert.is((await update(newId(), 'REQUEST_RELEASE')).message, 'Session not found.');
  assert.is((await update('x', 'REQUEST_RELEASE')).reason, 'INVALID_FIELD');
  assert.is((await update(session.id, 'REQUEST_RELEASE', newId())).reason, 'PROJECT_MISMATCH');
  assert.equal(await releases(app), []);
});

test('DELETE releases the session', async () => {
  await using app = await openSessions();
  const { session, leaseId } = await app.run();
  const { sessions } = app.clients;
  assert.equal(await sessions.deleteSession({ id: session.id }, app.asProject), {});
  assert.equal(await releases(app), [leaseId]);
  await app.end(leaseId);
  await sessions.deleteSession({ id: session.id }, app.asProject);
  const missing = faultOf(sessions.deleteSession({ id: newId() }, app.asProject));
  assert.is((await missing).reason, 'RESOURCE_NOT_FOUND');
});

test('the session of an invocation cannot be released', async () => {
  await using app = await openSessions();
  const { sessionId } = await app.invoke(await app.publish({ name: 'f' }));
  const fault = await faultOf(app.release(sessionId));
  assert.equal([fault.reason, fault.row.http], ['SESSION_OF_INVOCATION', 409]);
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  assert.is((await faultOf(app.release(sessionId))).reason, 'SESSION_OF_INVOCATION');
  const end = { leaseId, outcome: undefined, sessionStartMs: 0, steps: [] };
  await app.clients.runners.completeInvocation(end, app.asRunner);
  assert.is((await app.release(sessionId)).status, 'COMPLETED');
});

test('the error beyond the limit names limit, count and how to free a slot', async () => {
  await using app = await openSessions({ TABERN_CONCURRENCY: '2' });
  const running = await app.run();
  const waiting = app.create(); // counts, too
  const work = await app.take();
  await app.invoke(await app.publish({ name: 'f' })); // does not
  const fault = await faultOf(app.create());
  assert.equal([fault.reason, fault.row.http], ['CONCURRENCY_LIMIT', 429]);
  assert.match(fault.message, 'exceeded your max concurrent sessions limit (limit 2, currently 2)');
  assert.match(fault.message, 'A slot is free as soon as a session ends or is released');
  assert.equal(fault.facts, { limit: 2, current: 2 });
  const { sessions } = await app.clients.sessions.listSessions({ label: [] }, app.asProject);
  assert.is(sessions.length, 3, 'nothing was made of it');

  await app.release(running.session.id); // its Chrome still closes
  const next = app.create();
  const third = await app.take();
  assert.is((await faultOf(app.create())).facts['current'], 2);
  await app.end(running.leaseId);
  assert.is((await faultOf(app.create())).facts['current'], 2, 'freed once, not twice');
  await app.begin(work.leaseId);
  await app.begin(third.leaseId);
  await Promise.all([waiting, next]);
  await app.end(third.leaseId);
  await app.run();
});

test('a signing key locates the runner of its session', async () => {
  await using app = await openSessions();
  const { runners, sessions } = app.clients;
  const address = 'unix:/run/tabern/sessions.sock';
  await runners.registerRunner({ ...HOLDER, address }, app.asRunner);
  const locate = (signingKey: string) =>
    sessions.locateSession(
      { credential: { $case: 'signingKey', value: signingKey } },
      app.asGateway,
    );
  const creating = app.create();
  const { leaseId, sessionId, signingKey } = await app.take();
  const shown = { expiresAt: undefined, apiKeyId: '', isReadOnly: false, handoffId: '' };
  const found = { sessionId, signingKey, ...shown };
  assert.equal(await locate(signingKey), {
    ...found,
    status: 'PENDING',
    address: '',
    runnerId: '',
  });
  await app.begin(leaseId);
  await creating;
  assert.equal(await locate(signingKey), {
    ...found,
    status: 'RUNNING',
    address,
    runnerId: HOLDER.runnerId,
  });
  await app.release(sessionId);
  assert.is((await faultOf(locate(signingKey))).reason, 'SESSION_ENDED', 'it takes nobody more');
  await app.end(leaseId);
  assert.is((await faultOf(locate(signingKey))).row.http, 410);
  for (const wrong of ['', 'x', signingKey.slice(1), `${signingKey.slice(0, -1)}~`]) {
    assert.is((await faultOf(locate(wrong))).reason, 'SIGNING_KEY_INVALID');
  }
  const { sessionId: id } = await app.invoke(await app.publish({ name: 'f' }));
  await app.lease('INVOCATION');
  const invoked = await app.read(id);
  assert.is((await locate(invoked.signingKey ?? '')).address, address, "an invocation's, too");
});

const MALFORMED = ['', 'unix:', 'unix:run', 'host', 'host:', 'tls:', 'host:port', 'http://h:1/'];
/** In the clear on a network. */
const PLAIN = ['host:1', '10.0.0.1:65535', '[fd00::1]:80', '0.0.0.0:1'];

test('a runner without a session server is unreachable; a wrong address is refused', async () => {
  await using app = await openSessions();
  const { runners, sessions } = app.clients;
  const { work } = await app.run();
  const credential = { $case: 'signingKey', value: work.signingKey } as const;
  const fault = await faultOf(sessions.locateSession({ credential }, app.asGateway));
  assert.is(fault.reason, 'BROWSER_FAILED');
  for (const address of [...MALFORMED, ...PLAIN]) {
    const refused = faultOf(runners.registerRunner({ ...HOLDER, address }, app.asRunner));
    assert.is((await refused).facts['field'], 'address', address);
  }
  for (const address of [
    'unix:/a b',
    'tls:host:1',
    'tls:10.0.0.1:65535',
    '127.0.0.2:1',
    '[::1]:80',
  ]) {
    await runners.registerRunner({ ...HOLDER, address }, app.asRunner);
  }
});

test('only gateways may locate sessions, and only with a credential', async () => {
  await using app = await openSessions();
  const { locateSession } = app.clients.sessions;
  const credential = { $case: 'signingKey', value: 'x' } as const;
  for (const options of [app.asProject, app.asRunner]) {
    assert.is((await faultOf(locateSession({ credential }, options))).reason, 'TOKEN_REQUIRED');
  }
  const none = faultOf(locateSession({ credential: undefined }, app.asGateway));
  assert.is((await none).facts['field'], 'credential');
});

test.run();
