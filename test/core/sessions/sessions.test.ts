import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot } from '../boot.ts';

const test = suite('core/sessions/sessions');

/** The session of a leased invocation, ended by default. */
async function sessionOf(app: Booted, config?: object, isEnded = true): Promise<string> {
  const manifest = { name: newId(), ...(config && { config: JSON.stringify(config) }) };
  const { sessionId } = await app.invoke(await app.publish(manifest));
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  const end = { leaseId, outcome: undefined, sessionStartMs: app.clock.now(), steps: [] };
  if (isEnded) await app.clients.runners.completeInvocation(end, app.asRunner);
  return sessionId;
}

test('sessions are read and listed newest first, by status', async () => {
  await using app = await boot();
  const { sessions } = app.clients;
  const ended = await sessionOf(app);
  const running = await sessionOf(app, { userMetadata: { a: 'b' } }, false);
  const all = await sessions.listSessions({ label: [] }, app.asProject);
  assert.equal(
    all.sessions.map(({ id, status }) => [id, status]),
    [
      [running, 'RUNNING'],
      [ended, 'COMPLETED'],
    ],
  );
  const some = await sessions.listSessions({ status: 'RUNNING', label: [] }, app.asProject);
  assert.equal(
    some.sessions.map(({ id }) => id),
    [running],
  );
  const { session } = await sessions.getSession({ id: running }, app.asProject);
  assert.equal(session?.userMetadata, { a: 'b' });
  assert.is(session?.endedAt, undefined);
  assert.is(session?.connectUrl, `/connect?signingKey=${session?.signingKey}`);
});

test('sessions are found by metadata, and a malformed query is refused', async () => {
  await using app = await boot();
  const { sessions } = app.clients;
  const id = await sessionOf(app, { userMetadata: { stagehand: 'true', n: { m: "it's" } } });
  const find = async (q: string, more: { status?: 'RUNNING' } = {}) => {
    const found = await sessions.listSessions({ q, label: [], ...more }, app.asProject);
    return found.sessions.map((session) => session.id);
  };
  assert.equal(await find("user_metadata['stagehand']:'true'"), [id]);
  assert.equal(await find(String.raw`user_metadata['n']['m']:'it\'s'`), [id]);
  assert.equal(await find("user_metadata['stagehand']:'true'", { status: 'RUNNING' }), []);
  assert.equal(await find("user_metadata['stagehand']:'false'"), []);
  assert.is((await faultOf(find('stagehand:true'))).facts['field'], 'q');
});

test('the protocol log of a silent session is empty, that of an unknown one is a 404', async () => {
  await using app = await boot();
  const { sessions } = app.clients;
  const id = await sessionOf(app);
  assert.equal((await sessions.listSessionLogs({ id }, app.asProject)).logs, []);
  const missing = sessions.listSessionLogs({ id: newId() }, app.asProject);
  assert.is((await faultOf(missing)).message, 'Session not found.');
});

test('a project reads itself and the usage of its sessions', async () => {
  await using app = await boot();
  const { projects } = app.clients;
  await sessionOf(app);
  await sessionOf(app, undefined, false);
  app.clock.advance(90_000);
  const [one] = (await projects.listProjects({}, app.asProject)).projects;
  const id = one?.id ?? '';
  assert.equal((await projects.getProject({ id }, app.asProject)).project, one);
  const { storage: _, ...used } = await projects.getProjectUsage({ id }, app.asProject);
  assert.equal(used, { browserMinutes: 1 + 2, proxyBytes: 0 });
  for (const other of [newId(), 'x']) {
    const fault = await faultOf(projects.getProject({ id: other }, app.asProject));
    assert.is(fault.message, 'Project not found.');
  }
});

test.run();
