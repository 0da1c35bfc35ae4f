import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { SessionCreateParams } from '../../../proto/gen/tabern/v1/invocations.pb.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot } from '../boot.ts';

const test = suite('core/functions/invocations');

const session = (params: object) => SessionCreateParams.fromJSON(params);

/** The session params of a new invocation, as its runner receives them. */
async function mergedFor(app: Booted, functionId: string, params: object) {
  const wanted = { functionId, params: {}, sessionCreateParams: session(params) };
  await app.clients.invocations.invokeFunction(wanted, app.asProject);
  const [work] = await app.lease('INVOCATION');
  const item = work?.item?.$case === 'invocation' ? work.item.value : undefined;
  return { timeoutMs: item?.timeoutMs, session: JSON.parse(item?.sessionParamsJson ?? '') };
}

test('an accepted invocation is PENDING, in a session that exists, in us-west-2', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const made = await app.invoke(functionId, { a: [1, null, { b: true }] });
  const { clients, asProject } = app;
  assert.is(made.status, 'PENDING');
  assert.is(made.region, 'us-west-2');
  assert.equal(made.params, { a: [1, null, { b: true }] });
  assert.equal(made.startedAt, made.createdAt);
  assert.is(Number(made.expiresAt) - Number(made.startedAt), 900_000);
  assert.is(made.endedAt, undefined);
  const { invocation } = await clients.invocations.getInvocation({ id: made.id }, asProject);
  assert.equal(invocation, made);
  const found = await clients.sessions.getSession({ id: made.sessionId }, asProject);
  assert.is(found.session?.status, 'PENDING');
});

test('params of 64 KiB pass, larger ones do not', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const params = (bytes: number) => ({ a: 'x'.repeat(bytes - 8) });
  await app.invoke(functionId, params(65_536));
  const fault = await faultOf(app.invoke(functionId, params(65_537)));
  assert.equal([fault.reason, fault.facts['field']], ['INVALID_FIELD', 'params']);
});

test('params are validated by the newest version and receive its defaults', async () => {
  await using app = await boot();
  const schema = { type: 'object', properties: { n: { type: 'number', default: 3 } } };
  await app.publish({ name: 'f' });
  const functionId = await app.publish({ name: 'f', schema: JSON.stringify(schema) });
  assert.equal((await app.invoke(functionId)).params, { n: 3 });
  const fault = await faultOf(app.invoke(functionId, { n: 'x' }));
  assert.is(fault.message, '`params/n` must be number.');
  const { total } = await app.clients.invocations.listInvocations(
    { versionId: (await app.invoke(functionId)).versionId },
    app.asProject,
  );
  assert.is(total, 2, 'the refused one left nothing');
});

test('sessionCreateParams override sessionConfig', async () => {
  await using app = await boot();
  const config = { timeout: 100, browserSettings: { blockAds: true, allowedDomains: ['a'] } };
  const functionId = await app.publish({ name: 'f', config: JSON.stringify(config) });
  const over = { timeout: 60, browserSettings: { blockAds: false } };
  assert.equal(await mergedFor(app, functionId, over), {
    timeoutMs: 60_000,
    session: { timeout: 60, browserSettings: { blockAds: false, allowedDomains: ['a'] } },
  });
  assert.is((await mergedFor(app, functionId, {})).timeoutMs, 100_000);
});

test('the error for invalid sessionCreateParams names the field', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const wrong: [object, string][] = [
    [{ timeout: 59 }, 'sessionCreateParams.timeout'],
    [{ timeout: 901 }, 'sessionCreateParams.timeout'],
    [{ proxies: 'yes' }, 'sessionCreateParams.proxies'],
    [{ userMetadata: { a: 'x'.repeat(600) } }, 'sessionCreateParams.userMetadata'],
  ];
  for (const [params, field] of wrong) {
    const wanted = { functionId, params: {}, sessionCreateParams: session(params) };
    const fault = await faultOf(app.clients.invocations.invokeFunction(wanted, app.asProject));
    assert.is(fault.facts['field'], field);
  }
});

test('a missing context is a 404', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  for (const id of [newId(), 'not-a-uuid']) {
    const sessionCreateParams = session({ browserSettings: { context: { id } } });
    const wanted = { functionId, params: {}, sessionCreateParams };
    const fault = await faultOf(app.clients.invocations.invokeFunction(wanted, app.asProject));
    assert.is(fault.message, 'Context not found.');
  }
});

test('a full queue is QUEUE_FULL', async () => {
  await using app = await boot({ TABERN_QUEUE_MAX: '1' });
  const functionId = await app.publish({ name: 'f' });
  await app.invoke(functionId);
  assert.is((await faultOf(app.invoke(functionId))).reason, 'QUEUE_FULL');
  await app.lease('INVOCATION');
  await app.invoke(functionId);
});

test('unknown ids are not found, malformed ones refused', async () => {
  await using app = await boot();
  const { invocations } = app.clients;
  const get = (id: string) => faultOf(invocations.getInvocation({ id }, app.asProject));
  assert.is((await get(newId())).message, 'Invocation not found.');
  assert.is((await get('x')).message, '`id` must be a UUID.');
  assert.is((await faultOf(app.invoke(newId()))).message, 'Function not found.');
  assert.is((await faultOf(app.invoke('x'))).reason, 'INVALID_FIELD');
  const list = invocations.listInvocations({ versionId: newId() }, app.asProject);
  assert.is((await faultOf(list)).message, 'Version not found.');
  const logs = invocations.listInvocationLogs({ id: newId() }, app.asProject);
  assert.is((await faultOf(logs)).reason, 'RESOURCE_NOT_FOUND');
});

test("a version's invocations are listed newest first, by page and status", async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const made = [];
  for (let i = 0; i < 3; i += 1) made.push(await app.invoke(functionId, { i }));
  const versionId = must(made[0], 'first').versionId;
  const list = (more: object) =>
    app.clients.invocations.listInvocations({ versionId, ...more }, app.asProject);
  const page = await list({ offset: 1, limit: 1 });
  assert.equal([page.results[0]?.id, page.total], [made[1]?.id, 3]);
  await app.lease('INVOCATION');
  assert.is((await list({ status: 'RUNNING' })).results[0]?.id, made[0]?.id);
  assert.equal(await list({ status: 'NONSENSE' }), { results: [], total: 0 });
  for (const limit of [0, 101]) assert.is((await faultOf(list({ limit }))).facts['field'], 'limit');
});

test('a FAILED invocation has its cause', async () => {
  await using app = await boot();
  const { id } = await app.invoke(await app.publish({ name: 'f' }));
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  const cause = { code: 'WORKLOAD_ERROR', message: 'no', name: 'TypeError', stack: 'at x' };
  const outcome = { $case: 'failure', value: cause } as const;
  const { runners, invocations } = app.clients;
  const odd = { $case: 'failure', value: { ...cause, code: 'ODD' } } as const;
  const end = (of: typeof outcome | typeof odd) =>
    runners.completeInvocation(
      { leaseId, outcome: of, sessionStartMs: 0, steps: [] },
      app.asRunner,
    );
  assert.is((await faultOf(end(odd))).reason, 'INVALID_FIELD');
  assert.equal(await end(outcome), { accepted: true });
  const { invocation } = await invocations.getInvocation({ id }, app.asProject);
  assert.is(invocation?.status, 'FAILED');
  assert.equal(invocation?.cause, cause);
});

test.run();
