/** A session's life over core's own services: created, started, released, ended. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { sealerOf } from '../../../core/common/sealer.ts';
import { sessionSecrets } from '../../../core/sessions/proxy-secrets.ts';
import { sessionService } from '../../../core/sessions/sessions.ts';
import { signingKeys } from '../../../core/sessions/signing-keys.ts';
import { openValidator } from '../../../core/validation/validator.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { CreateSessionRequest } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { HOLDER } from '../boot.ts';
import { ENGINES, openBench, T0 } from '../store/engines.ts';
import { openSessions } from './runs.ts';

const test = suite('core/sessions/lifetime');

test('createSession responds when Chrome runs, with URLs and signing key', async () => {
  await using app = await openSessions();
  const creating = app.create({ timeout: 120, keepAlive: true, userMetadata: { a: 'b' } });
  const { leaseId, signingKey: ofDoor, ...work } = await app.take();
  const { sessionId } = work;
  assert.is((await app.read(sessionId)).status, 'PENDING', 'a renewal alone does not start it');
  app.clock.advance(2_000);
  const startMs = app.clock.now();
  app.clock.advance(500);
  assert.ok(await app.begin(leaseId, startMs));
  assert.ok(await app.begin(leaseId, startMs + 100), 'repeating it changes nothing');
  const session = await creating;
  const { projectId, ...rest } = work;
  assert.equal(rest, {
    sessionId: session.id,
    timeoutMs: 120_000,
    keepAlive: true,
    sessionParamsJson: '{"timeout":120,"keepAlive":true,"userMetadata":{"a":"b"}}',
    context: undefined,
    extension: undefined,
    moreExtensions: [],
    caCertificates: [],
  });
  const { createdAt, updatedAt, signingKey, ...shown } = session;
  assert.is.not(signingKey, ofDoor, 'it ends with its API key');
  assert.is(createdAt?.getTime(), startMs - 2_000);
  assert.is(updatedAt?.getTime(), startMs + 500);
  assert.equal(shown, {
    id: sessionId,
    projectId,
    status: 'RUNNING',
    keepAlive: true,
    proxyBytes: 0,
    startedAt: new Date(startMs),
    expiresAt: new Date(startMs + 120_000),
    endedAt: undefined,
    contextId: undefined,
    region: 'us-west-2',
    userMetadata: { a: 'b' },
    connectUrl: `/connect?signingKey=${signingKey}`,
    seleniumRemoteUrl: '/webdriver',
    endReason: undefined,
    labels: [],
  });
  assert.equal(await app.read(sessionId), session, 'the same key each time');
});

test('absent params mean the defaults of the project', async () => {
  await using app = await openSessions();
  const { session, work } = await app.run();
  assert.is(work.timeoutMs, 900_000);
  assert.is(work.sessionParamsJson, '{}');
  assert.is(session.expiresAt?.getTime(), app.clock.now() + 900_000);
  assert.equal([session.keepAlive, session.region], [false, 'us-west-2']);
  assert.is((await app.run({ region: 'eu-central-1' })).session.region, 'eu-central-1');
});

test("a runner's clock cannot date a start before the creation or after now", async () => {
  await using app = await openSessions();
  for (const awry of [-3_600_000, 3_600_000]) {
    const creating = app.create();
    const { leaseId } = await app.take();
    await app.begin(leaseId, app.clock.now() + awry);
    assert.is((await creating).startedAt?.getTime(), app.clock.now());
  }
});

test('without a free place the answer is the PENDING session', async () => {
  await using bench = await openBench(must(ENGINES[0], 'engine'));
  const projectId = await bench.project('p');
  const sealer = sealerOf(Buffer.alloc(32));
  await using validator = openValidator();
  const service = sessionService({
    store: bench.store,
    log: openLog({ role: 'test', level: 'silent', people: false }),
    now: () => T0,
    closing: new AbortController().signal,
    draining: new AbortController().signal,
    signingKeys: signingKeys(sealer),
    secrets: sessionSecrets(sealer),
    validator,
  });
  const call = {
    signal: new AbortController().signal,
    deadline: performance.now() + 600,
    metadata: {},
  };
  const request = CreateSessionRequest.fromPartial({});
  const { session } = await service.createSession(request, { projectId, call });
  assert.is(session?.status, 'PENDING');
  assert.ok(session?.connectUrl);
  assert.is((await bench.offer('session'))[0]?.id, session?.id);
});

test('a service that drains refuses the session that no runner starts', async () => {
  await using app = await openSessions();
  const listed = async () => {
    const { sessions } = await app.clients.sessions.listSessions({ label: [] }, app.asProject);
    return sessions.map(({ status }) => status).sort();
  };
  const started = app.create();
  const { leaseId } = await app.take();
  const waiting = app.create();
  await until(async () => (await listed()).length === 2);
  app.core.drain();
  await app.begin(leaseId, app.clock.now());
  assert.is((await started).status, 'RUNNING', 'its browser was starting');
  const fault = await faultOf(waiting);
  assert.is(fault.reason, 'DRAINING');
  assert.match(fault.message, /the session did not start\. Try again/);
  assert.equal(await listed(), ['COMPLETED', 'RUNNING']);
});

for (const [end, reason] of [
  ['COMPLETED', 'the last client has left'],
  ['TIMED_OUT', 'its time was over'],
  ['ERROR', 'Chrome was lost'],
] as const) {
  test(`${end} as its runner reports, once`, async () => {
    await using app = await openSessions();
    const { session, leaseId } = await app.run();
    app.clock.advance(1_000);
    const { runners } = app.clients;
    const request = { leaseId, end, reason, proxyBytes: 5.4 };
    assert.ok((await runners.completeSession(request, app.asRunner)).accepted);
    const ended = await app.read(session.id);
    app.clock.advance(1_000);
    assert.ok(await app.end(leaseId, 'ERROR', 'again'), 'repeating it is taken');
    assert.equal(await app.read(session.id), ended, 'and changes nothing');
    assert.equal([ended.status, ended.endReason], [end, reason]);
    assert.is(ended.endedAt?.getTime(), app.clock.now() - 1_000);
    assert.is(ended.proxyBytes, 5);
    assert.equal(
      [ended.connectUrl, ended.seleniumRemoteUrl, ended.signingKey],
      [undefined, undefined, undefined],
    );
    assert.not.ok(await app.begin(leaseId), 'what has ended does not start');
    const renewal = { ...HOLDER, leaseIds: [leaseId] };
    assert.equal((await runners.reportRunner(renewal, app.asRunner)).leaseIds, []);
  });
}

test('an invalid end is refused', async () => {
  await using app = await openSessions();
  const { leaseId } = await app.run();
  assert.is((await faultOf(app.end(leaseId, 'END_UNSPECIFIED'))).facts['field'], 'end');
  const { runners } = app.clients;
  for (const proxyBytes of [-1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 63, 1e300]) {
    const request = { leaseId, end: 'COMPLETED', reason: '', proxyBytes } as const;
    const fault = await faultOf(runners.completeSession(request, app.asRunner));
    assert.is(fault.facts['field'], 'proxyBytes', String(proxyBytes));
  }
  assert.not.ok(await app.end(newId()), 'a lease that never was');
});

test('a session without a Chrome is a 502 with the reason and holds no slot', async () => {
  await using app = await openSessions({ TABERN_CONCURRENCY: '1' });
  const creating = faultOf(app.create());
  const { leaseId, sessionId } = await app.take();
  await app.end(leaseId, 'ERROR', 'the browser could not be started');
  const { reason, message } = await creating;
  assert.is(reason, 'BROWSER_FAILED');
  assert.is(message, 'The session did not start: the browser could not be started.');
  assert.is((await app.read(sessionId)).status, 'ERROR');
  assert.is((await app.run()).session.status, 'RUNNING');
});

test('losing the lease requeues a session before its start, and ends it afterwards', async () => {
  await using app = await openSessions({ TABERN_SWEEP_MS: '50' });
  const creating = app.create();
  const first = await app.take();
  app.clock.advance(15_001);
  const second = await app.take();
  assert.is(second.sessionId, first.sessionId);
  assert.is(second.signingKey, first.signingKey);
  assert.not.ok(await app.begin(first.leaseId));
  assert.ok(await app.begin(second.leaseId));
  const { id } = await creating;
  app.clock.advance(300_001);
  await until(async () => (await app.read(id)).status === 'ERROR');
  assert.not.ok(await app.end(second.leaseId));
});

test('a new instance of a runner loses the sessions of its former instance', async () => {
  await using app = await openSessions();
  const { session } = await app.run();
  const waiting = app.create({}, { timeoutMs: 20_000 });
  await app.take();
  const next = { ...HOLDER, instanceId: 'second' };
  await app.clients.runners.registerRunner(next, app.asRunner);
  assert.is((await app.read(session.id)).status, 'ERROR');
  assert.is((await faultOf(app.lease('SESSION'))).reason, 'LEASE_LOST');
  const releases = { ...HOLDER, knownLeaseIds: [], waitMs: 0 };
  const fault = await faultOf(app.clients.runners.awaitReleases(releases, app.asRunner));
  assert.is(fault.reason, 'LEASE_LOST');
  const wanted = { ...next, kind: 'SESSION' as const, max: 9, waitMs: 0 };
  const { work } = await app.clients.runners.leaseWork(wanted, app.asRunner);
  await app.begin(work[0]?.leaseId ?? '');
  assert.is((await waiting).status, 'RUNNING', 'what waited goes to the new one');
});

test("core ends a session after its timeout and the runner's grace", async () => {
  await using app = await openSessions({ TABERN_SWEEP_MS: '50', TABERN_LEASE_MS: '300000' });
  const { session, leaseId } = await app.run({ timeout: 60 });
  app.clock.advance(60_000 + 119_999);
  assert.is((await app.read(session.id)).status, 'RUNNING');
  app.clock.advance(2);
  await until(async () => (await app.read(session.id)).status === 'TIMED_OUT');
  assert.not.ok(await app.end(leaseId));
});

test('a session that no runner acquires fails after a minute, with its waiting call', async () => {
  await using app = await openSessions({ TABERN_SWEEP_MS: '50' });
  const waiting = faultOf(app.create());
  const { sessions } = app.clients;
  const read = async () => (await sessions.listSessions({ label: [] }, app.asProject)).sessions[0];
  const { id } = await until(read);
  app.clock.advance(60_001);
  assert.is((await waiting).message, 'The session did not start: no runner was free in time.');
  assert.is((await app.read(id)).status, 'ERROR');
});

test('a session is released when its creator disconnects before the response', async () => {
  await using app = await openSessions();
  const leaving = new AbortController();
  const left = faultOf(app.create({}, { signal: leaving.signal }));
  const { sessionId, leaseId } = await app.take();
  leaving.abort();
  assert.is((await left).reason, 'CANCELLED');
  await until(async () => (await app.read(sessionId)).status === 'COMPLETED');
  assert.not.ok(await app.begin(leaseId));
});

test('closing core ends calls that wait for a Chrome', async () => {
  const app = await openSessions();
  const waiting = app.create();
  await app.take();
  await app[Symbol.asyncDispose]();
  await waiting.catch(() => undefined);
});

test.run();
