/** Sessions that users start from contexts: loaded, saved back, and held while they run. */
import { rmSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { faultOf } from '../../support/fault.ts';
import { HOLDER } from '../boot.ts';
import { openContext, type Run, textOf } from '../contexts/runs.ts';

const test = suite('core/sessions/context');

type App = Awaited<ReturnType<typeof openContext>>;

/** A session that runs from the context. */
async function run(app: App, persist = true): Promise<Run> {
  const { sessions, runners } = app.clients;
  const browserSettings = { context: { id: app.created.id, persist } } as never;
  const body = {
    browserSettings,
    proxies: undefined,
    userMetadata: undefined,
    proxySettings: undefined,
    labels: [],
  };
  const creating = sessions.createSession(body, app.asProject);
  const { leaseId, item } = must((await app.lease('SESSION', 25_000))[0], 'work');
  if (item?.$case !== 'session') throw new Error('no session');
  await runners.startSession({ leaseId, startMs: 0 }, app.asRunner);
  const { session } = await creating;
  assert.is(session?.contextId, app.created.id);
  const { sessionId, context } = item.value;
  return { leaseId, sessionId, invocationId: '', ...(context && { context }) };
}

const end = (app: App, leaseId: string) => {
  const over = { leaseId, end: 'COMPLETED', reason: '', proxyBytes: 0 } as const;
  return app.clients.runners.completeSession(over, app.asRunner);
};

test('a session starts from the last saved content', async () => {
  await using app = await openContext();
  const first = await run(app);
  assert.equal([first.context?.persist, first.context?.blobId], [true, undefined]);
  const { saved, replaced } = await app.save(first.leaseId, 'one');
  assert.equal([saved, replaced], [true, false]);
  await end(app, first.leaseId);
  assert.is(await textOf(app, await run(app)), 'one');
  assert.is(await textOf(app, await app.start()), 'one', 'an invocation, too');
});

test('only a live session with persist may save', async () => {
  await using app = await openContext();
  const reader = await run(app, false);
  assert.is(reader.context?.persist, false);
  assert.is((await faultOf(app.save(reader.leaseId, 'x'))).facts['field'], 'blobId');
  const writer = await run(app);
  const blobId = await app.write(writer.leaseId, 'late');
  await end(app, writer.leaseId);
  const late = { leaseId: writer.leaseId, blobId };
  const fault = await faultOf(app.clients.runners.saveContext(late, app.asRunner));
  assert.is(fault.reason, 'LEASE_LOST');
});

test('content is kept while a session that loaded it runs, despite later saves', async () => {
  await using app = await openContext();
  const first = await run(app);
  await app.save(first.leaseId, 'one');
  await end(app, first.leaseId);
  const [reader, writer] = [await run(app), await run(app)];
  const two = await app.save(writer.leaseId, 'two');
  assert.is(two.replaced, false);
  assert.is(await textOf(app, reader), 'one', 'still there');
  assert.is((await app.save(reader.leaseId, 'three')).replaced, true, 'the last one wins');
  assert.is(await textOf(app, await run(app)), 'three');
});

test('an unreadable context ends its session, and the runner keeps its other work', async () => {
  await using app = await openContext();
  const first = await run(app);
  const { blobId } = await app.save(first.leaseId, 'one');
  await end(app, first.leaseId);
  rmSync(`${app.dir}/blobs/${blobId}`);
  const { sessions, runners } = app.clients;
  const browserSettings = { context: { id: app.created.id, persist: true } } as never;
  const body = {
    browserSettings,
    proxies: undefined,
    userMetadata: undefined,
    proxySettings: undefined,
    labels: [],
  };
  const creating = faultOf(sessions.createSession(body, app.asProject));
  const wanted = { ...HOLDER, kind: 'SESSION' as const, max: 1, waitMs: 25_000 };
  const leaving = new AbortController();
  const leasing = runners.leaseWork(wanted, { ...app.asRunner, signal: leaving.signal });
  const message = 'The session did not start: the context of the session could not be read.';
  assert.is((await creating).message, message);
  leaving.abort();
  assert.is((await faultOf(leasing)).reason, 'CANCELLED', 'it was given nothing');
});

test.run();
