/** The links of a live view: access, validity and refusals. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import { must } from '../../../../proto/common/must.ts';
import { faultOf } from '../../../support/fault.ts';
import { type Booted, boot } from '../../boot.ts';

const test = suite('core/sessions/live-view');

/** An invocation's session: accepted, then leased, then ended, up to the given state. */
async function sessionAt(app: Booted, state: 'PENDING' | 'RUNNING' | 'ENDED'): Promise<string> {
  const { sessionId } = await app.invoke(await app.publish({ name: newId() }));
  if (state === 'PENDING') return sessionId;
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  const end = { leaseId, outcome: undefined, sessionStartMs: app.clock.now(), steps: [] };
  if (state === 'ENDED') await app.clients.runners.completeInvocation(end, app.asRunner);
  return sessionId;
}

test('the live view links of a running session have a token in their query', async () => {
  await using app = await boot();
  const id = await sessionAt(app, 'RUNNING');
  const links = await app.clients.sessions.getLiveView({ id }, app.asProject);
  assert.match(links.debuggerUrl, /^\/live\?token=[\w-]{86}$/);
  assert.match(links.debuggerFullscreenUrl, /^\/live\?token=[\w-]{86}&navbar=false$/);
  assert.match(links.wsUrl, /^\/connect\?signingKey=[\w-]{75}$/);
  assert.equal(links.pages, []);
});

test('live view links may be valid for 1 s to 6 h', async () => {
  await using app = await boot();
  const id = await sessionAt(app, 'RUNNING');
  const { sessions } = app.clients;
  for (const expiresIn of [1, 21_600]) await sessions.getLiveView({ id, expiresIn }, app.asProject);
  for (const expiresIn of [0, 21_601]) {
    const fault = await faultOf(sessions.getLiveView({ id, expiresIn }, app.asProject));
    assert.is(fault.reason, 'INVALID_FIELD');
    assert.is(fault.facts['field'], 'expiresIn');
  }
});

test('a session that is pending, ended or unknown has no live view', async () => {
  await using app = await boot();
  const refusal = async (id: string) =>
    (await faultOf(app.clients.sessions.getLiveView({ id }, app.asProject))).reason;
  assert.is(await refusal(await sessionAt(app, 'ENDED')), 'SESSION_ENDED');
  assert.is(await refusal(await sessionAt(app, 'PENDING')), 'SESSION_PENDING');
  assert.is(await refusal(newId()), 'RESOURCE_NOT_FOUND');
  assert.is(await refusal('x'), 'INVALID_FIELD');
});

test.run();
