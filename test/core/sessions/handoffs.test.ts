/**
 * Handoffs: who may ask, one at a time, how they end, what a runner and webhooks hear of them.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import type { Handoff } from '../../../proto/gen/tabern/v1/handoffs.pb.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { HOLDER } from '../boot.ts';
import { openSessions } from './runs.ts';

const test = suite('core/sessions/handoffs');

async function open() {
  const app = await openSessions({ TABERN_SWEEP_MS: '50' });
  const { handoffs, runners } = app.clients;
  const ask = async (sessionId: string, more: { instructions?: string; timeout?: number } = {}) => {
    const wanted = { sessionId, instructions: 'Log in, please', timeout: undefined, ...more };
    return must((await handoffs.createHandoff(wanted, app.asProject)).handoff, 'a handoff');
  };
  const read = async ({ sessionId, id }: Handoff, wait?: number) => {
    const { handoff } = await handoffs.getHandoff({ sessionId, id, wait }, app.asProject);
    return must(handoff, 'a handoff');
  };
  const held = async (knownIds: string[] = [], waitMs = 0) =>
    await runners.awaitHandoffs({ ...HOLDER, knownIds, waitMs }, app.asRunner);
  return { ...app, handoffs, ask, read, held };
}

test('a handoff has a link without a key, and ends once', async () => {
  await using app = await open();
  const { session } = await app.run();
  const asked = await app.ask(session.id);
  assert.is(asked.status, 'PENDING');
  assert.match(asked.url ?? '', /^\/live\?token=[\w-]{107}$/);
  assert.is(asked.expiresAt?.getTime(), app.clock.now() + 600_000);
  const { complete, cancel } = {
    complete: await app.handoffs.completeHandoff(asked, app.asProject),
    cancel: await app.handoffs.cancelHandoff(asked, app.asProject),
  };
  for (const { handoff } of [complete, cancel]) {
    assert.equal([handoff?.status, handoff?.url], ['COMPLETED', undefined]);
  }
  const other = await app.ask(session.id);
  const withdrawn = await app.handoffs.cancelHandoff(other, app.asProject);
  assert.is(withdrawn.handoff?.status, 'CANCELLED');
  const wanted = { sessionId: session.id };
  const { handoffs } = await app.handoffs.listHandoffs(wanted, app.asProject);
  assert.equal(
    handoffs.map(({ id }) => id),
    [other.id, asked.id],
  );
});

test('wrong requests name what is wrong', async () => {
  await using app = await open();
  const { session } = await app.run();
  const wrong: [object, string][] = [
    [{ instructions: ' ' }, 'instructions'],
    [{ instructions: 'x'.repeat(2_001) }, 'instructions'],
    [{ timeout: 9 }, 'timeout'],
    [{ timeout: 21_601 }, 'timeout'],
  ];
  for (const [more, field] of wrong) {
    const fault = await faultOf(app.ask(session.id, more));
    assert.equal([fault.reason, fault.facts['field']], ['INVALID_FIELD', field]);
  }
  assert.is((await faultOf(app.ask(newId()))).reason, 'RESOURCE_NOT_FOUND');
  const asked = await app.ask(session.id);
  const again = await faultOf(app.ask(session.id));
  assert.equal([again.reason, again.facts['handoffId']], ['HANDOFF_PENDING', asked.id]);
  await app.clients.operators.createProject({ name: 'other', limits: undefined }, app.asOperator);
  const named = { project: 'other', name: '' };
  const made = await app.clients.operators.createApiKey(named, app.asOperator);
  const stranger = { metadata: { 'x-svc-api-key': made.key } };
  const seen = await faultOf(app.handoffs.getHandoff({ ...asked, wait: 0 }, stranger));
  assert.is(seen.reason, 'RESOURCE_NOT_FOUND');
  const theirs = await faultOf(app.handoffs.completeHandoff(asked, stranger));
  assert.is(theirs.reason, 'RESOURCE_NOT_FOUND');
  assert.is((await app.read(asked)).status, 'PENDING');
  await app.release(session.id);
  assert.is((await faultOf(app.ask(session.id))).reason, 'SESSION_ENDED');
});

test('a handoff expires with its time, or with its session', async () => {
  await using app = await open();
  const first = await app.run();
  const timed = await app.ask(first.session.id, { timeout: 10 });
  const waiting = app.read(timed, 30);
  app.clock.advance(10_000);
  assert.is((await waiting).status, 'EXPIRED');
  const second = await app.run();
  const ended = await app.ask(second.session.id, { timeout: 21_600 });
  assert.equal(ended.expiresAt, second.session.expiresAt, 'not longer than the session');
  await app.end(second.leaseId);
  assert.is((await app.read(ended)).status, 'EXPIRED');
  assert.is((await faultOf(app.ask(second.session.id))).reason, 'SESSION_ENDED');
});

test('its runner hears of a handoff and of its end, and may ask and finish itself', async () => {
  await using app = await open();
  const { session, leaseId } = await app.run();
  assert.equal((await app.held()).handoffs, []);
  const waiting = app.held([], 20_000);
  const asked = await app.ask(session.id);
  assert.equal((await waiting).handoffs, [
    { leaseId, id: asked.id, instructions: asked.instructions },
  ]);
  const ending = app.held([asked.id], 20_000);
  await app.clients.runners.finishHandoff({ leaseId, id: asked.id }, app.asRunner);
  const { handoffs, ended } = await ending;
  assert.equal([handoffs, ended], [[], [{ id: asked.id, status: 'COMPLETED' }]]);
  const wanted = { leaseId, instructions: 'again', timeout: undefined, keyId: '' };
  const made = await app.clients.runners.requestHandoff(wanted, app.asRunner);
  await until(async () => (await app.held()).handoffs[0]?.id === made.id);
  const lost = { ...wanted, leaseId: newId() };
  const fault = await faultOf(app.clients.runners.requestHandoff(lost, app.asRunner));
  assert.is(fault.reason, 'LEASE_LOST');
  await app.clients.runners.registerRunner({ ...HOLDER, instanceId: 'second' }, app.asRunner);
  assert.is((await faultOf(app.held())).reason, 'LEASE_LOST');
});

test.run();
