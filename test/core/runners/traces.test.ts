/** Work continues the trace of its request, which core stores until the lease. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { CreateSessionRequest } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { rowsOf } from '../../support/core/database.ts';
import { until } from '../../support/poll.ts';
import { boot, HOLDER } from '../boot.ts';

const test = suite('core/runners/traces');

const CAME = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

/** The options of a project's call within a trace. */
function within(traceparent: string, { metadata }: CallOptions): CallOptions {
  return { metadata: { ...metadata, traceparent } };
}

test('invocations, builds and sessions are leased with the trace of their request', async () => {
  await using app = await boot();
  const { functions, invocations, sessions } = app.clients;
  const as = within(CAME, app.asProject);
  const functionId = await app.publish({ name: 'f' });
  const params = { params: {}, sessionCreateParams: undefined };
  await invocations.invokeFunction({ functionId, ...params }, as);
  assert.is((await app.lease('INVOCATION'))[0]?.traceparent, CAME);
  const archiveBlobId = await app.upload('archive');
  await functions.createBuild({ entrypoint: './index.ts', archiveBlobId }, as);
  assert.is((await app.lease('BUILD'))[0]?.traceparent, CAME);
  const leaving = new AbortController();
  const creating = sessions.createSession(CreateSessionRequest.create(), {
    ...as,
    signal: leaving.signal,
  });
  assert.is((await app.lease('SESSION', 5_000))[0]?.traceparent, CAME);
  leaving.abort();
  await creating.catch(() => undefined);
});

test('an absent or invalid traceparent is not stored', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const wanted = { functionId, params: {}, sessionCreateParams: undefined };
  await app.invoke(functionId);
  const { invocations } = app.clients;
  for (const wrong of ['', '00-x', `${CAME}-more`, CAME.toUpperCase(), 'x'.repeat(4_000)]) {
    await invocations.invokeFunction(wanted, within(wrong, app.asProject));
  }
  for (let count = 0; count < 6; count += 1) {
    const [work] = await app.lease('INVOCATION');
    assert.ok(work);
    assert.is(work.traceparent, undefined);
  }
});

test('a repeated offer has the same trace, and the trace is removed with the work', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const wanted = { functionId, params: {}, sessionCreateParams: undefined };
  await app.clients.invocations.invokeFunction(wanted, within(CAME, app.asProject));
  const ask = { ...HOLDER, kind: 'INVOCATION', max: 1, waitMs: 0 } as const;
  const { work: first } = await app.clients.runners.leaseWork(ask, app.asRunner);
  assert.is(first[0]?.traceparent, CAME);
  app.clock.advance(60_000);
  const [again] = await until(async () => {
    const work = await app.lease('INVOCATION');
    return work.length > 0 && work;
  });
  assert.is(again?.traceparent, CAME);
  const { leaseId = '' } = again ?? {};
  const end = { leaseId, outcome: undefined, sessionStartMs: 0, steps: [] };
  await app.clients.runners.completeInvocation(end, app.asRunner);
  assert.equal(await rowsOf(app.dir, 'SELECT id FROM jobs'), []);
});

test.run();
