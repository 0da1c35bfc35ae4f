/** Idempotency keys: one invocation for one key, whatever happens in between. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { openStore } from '../../../core/store/thread.ts';
import { must } from '../../../proto/common/must.ts';
import type { InvokeFunctionRequest } from '../../../proto/gen/tabern/v1/invocations.pb.ts';
import { purgeAt } from '../../support/core/retention.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot } from '../boot.ts';
import { ENGINES, openBench, T0 } from '../store/engines.ts';

const test = suite('core/functions/idempotency');
const CHILD = fileURLToPath(new URL('./idempotency-crash-child.ts', import.meta.url));
const DAY_MS = 86_400_000;

function invoker(app: Booted, functionId: string) {
  return async (idempotencyKey: string, more: Partial<InvokeFunctionRequest> = {}) => {
    const request = { functionId, params: {}, sessionCreateParams: undefined, ...more };
    const answer = await app.clients.invocations.invokeFunction(
      { ...request, idempotencyKey },
      app.asProject,
    );
    return must(answer.invocation, 'invocation');
  };
}

test('same key, same request: the same invocation in its current state', async () => {
  await using app = await boot();
  const invoke = invoker(app, await app.publish({ name: 'f' }));
  const params = { a: 1, b: { c: 2, d: [3] } };
  const [made, twin] = await Promise.all([invoke('k', { params }), invoke('k', { params })]);
  assert.equal(twin, made, 'also at the same moment');
  assert.is((await app.lease('INVOCATION')).length, 1);
  const turned = { b: { d: [3], c: 2 }, a: 1 };
  const again = await invoke('k', { params: turned });
  assert.equal([again.id, again.status], [made.id, 'RUNNING']);
  assert.equal(await app.lease('INVOCATION'), [], 'no second run');
  const { versionId } = made;
  const list = await app.clients.invocations.listInvocations({ versionId }, app.asProject);
  assert.is(list.total, 1);
  assert.is.not((await invoke('K', { params })).id, made.id, 'another key');
});

test('same key, other request: 422, and nothing is created', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const invoke = invoker(app, functionId);
  const { versionId } = await invoke('k', { params: { a: 1 } });
  const others: Partial<InvokeFunctionRequest>[] = [
    { params: { a: 2 } },
    { params: { a: 1 }, versionId },
    { params: { a: 1 }, functionId: await app.publish({ name: 'g' }) },
    { params: { a: 1 }, sessionCreateParams: { timeout: 60 } as never },
  ];
  for (const other of others) {
    const fault = await faultOf(invoke('k', other));
    assert.equal([fault.reason, fault.row.http], ['IDEMPOTENCY_MISMATCH', 422]);
  }
  const list = await app.clients.invocations.listInvocations({ versionId }, app.asProject);
  assert.is(list.total, 1);
});

test('a repeated key returns its invocation despite a full queue or a newer version', async () => {
  await using app = await boot({ TABERN_QUEUE_MAX: '1' });
  const invoke = invoker(app, await app.publish({ name: 'f' }));
  const made = await invoke('k');
  const schema = { type: 'object', required: ['n'], properties: { n: { type: 'number' } } };
  await app.publish({ name: 'f', schema: JSON.stringify(schema) });
  assert.is((await invoke('k')).id, made.id);
  assert.is((await faultOf(invoke('l', { params: { n: 1 } }))).reason, 'QUEUE_FULL');
  assert.is((await faultOf(invoke('m'))).reason, 'INVALID_FIELD');
});

test('a refused request does not use its key', async () => {
  await using app = await boot({ TABERN_QUEUE_MAX: '1' });
  const invoke = invoker(app, await app.publish({ name: 'f' }));
  await invoke('first');
  assert.is((await faultOf(invoke('k', { params: { a: 1 } }))).reason, 'QUEUE_FULL');
  await app.lease('INVOCATION');
  assert.is((await invoke('k', { params: { a: 2 } })).status, 'PENDING');
});

test('a key is valid for 24 hours', async () => {
  await using app = await boot();
  const invoke = invoker(app, await app.publish({ name: 'f' }));
  const { id } = await invoke('k');
  app.clock.advance(DAY_MS - 1);
  assert.is((await invoke('k')).id, id);
  app.clock.advance(1);
  const renewed = await invoke('k', { params: { a: 1 } });
  assert.is.not(renewed.id, id);
  assert.is((await invoke('k', { params: { a: 1 } })).id, renewed.id);
});

test('a key is 1 to 255 printable ASCII characters', async () => {
  await using app = await boot();
  const invoke = invoker(app, await app.publish({ name: 'f' }));
  for (const key of ['k', '"a-quoted one"', 'x'.repeat(255)]) await invoke(key);
  for (const key of ['', 'x'.repeat(256), 'ü', 'a\nb']) {
    assert.is((await faultOf(invoke(key))).facts['field'], 'Idempotency-Key');
  }
});

for (const engine of ENGINES) {
  test(`${engine.name}: keys belong to a project, and old ones are purged`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const made: Record<string, string> = {};
    for (const name of ['a', 'b']) {
      const projectId = await bench.project(name);
      const of = await bench.publish(projectId);
      const key = { key: 'k', requestHash: Buffer.from(name), expiresAt: T0 + DAY_MS };
      made[projectId] = (
        await store.acceptInvocation({ ...row(projectId, of), idempotency: key })
      ).id;
    }
    const [[projectId = '', id] = [], [otherId = '', other] = []] = Object.entries(made);
    const find = (of: string, text: string, at = T0) => {
      const key = { key: 'k', requestHash: Buffer.from(text) };
      return store.findIdempotent({ ...key, projectId: of, at });
    };
    assert.is((await find(projectId, 'a'))?.id, id);
    assert.is((await find(otherId, 'b'))?.id, other);
    assert.is((await faultOf(find(projectId, 'b'))).reason, 'IDEMPOTENCY_MISMATCH');
    assert.is(await find(projectId, 'b', T0 + DAY_MS), undefined, 'it counts no more');

    const clean = (at: number) => purgeAt(at, ['idempotency keys'], { store });
    await clean(T0 + DAY_MS - 1);
    assert.is((await find(projectId, 'a'))?.id, id);
    await clean(T0 + DAY_MS);
    assert.is(await find(projectId, 'a'), undefined);
    assert.is(await store.purgeIdempotencyKeys({ at: T0 + DAY_MS, max: 10 }), 0);
  });
}

function row(projectId: string, of: { functionId: string; versionId: string }) {
  return {
    id: newId(),
    sessionId: newId(),
    projectId,
    ...of,
    params: '{}',
    region: 'us-west-2',
    sessionParams: '{}',
    contextId: null,
    userMetadata: null,
    timeoutMs: 900_000,
    waitUntil: T0 + 3_600_000,
    queueMax: 1_000_000,
    at: T0,
  };
}

for (const point of ['accept-invocation:60', 'before-commit:10', 'after-commit:10']) {
  test(`killed at ${point}: repeated requests with a key create nothing twice`, async () => {
    const [engine] = ENGINES;
    await using bench = await openBench(must(engine, 'engine'));
    const projectId = await bench.project('p', 1_000_000);
    const of = await bench.publish(projectId);
    await bench.store.close();
    const args = [CHILD, bench.dir, projectId, of.functionId, of.versionId, point];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    assert.is((await once(child, 'close'))[1], 'SIGKILL');
    const told = text
      .split('\n')
      .slice(0, -1)
      .map((line) => line.split(' '));

    const store = await openStore({
      dir: bench.dir,
      durability: 'full',
      onFatal: assert.unreachable,
    });
    const ids = new Map<string, string>();
    for (let i = 0; i < told.length + 32; i += 1) {
      const key = { key: `k${i}`, requestHash: Buffer.from('x'), expiresAt: T0 + DAY_MS };
      const accepted = await store.acceptInvocation({ ...row(projectId, of), idempotency: key });
      ids.set(key.key, accepted.id);
    }
    for (const [key = '', id] of told) assert.is(ids.get(key), id, 'what was acknowledged');
    await store.close();
    const db = new Sqlite(`${bench.dir}/tabern.db`, { readonly: true });
    const count = (table: string) =>
      db.prepare<[], number>(`SELECT COUNT(*) FROM ${table}`).pluck().get();
    assert.is(count('invocations'), ids.size);
    assert.is(count('idempotency_keys'), ids.size);
    db.close();
  });
}

test.run();
