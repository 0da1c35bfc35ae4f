/** Starting a session with the settings of another one. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { faultOf } from '../../support/fault.ts';
import { openSessions } from './runs.ts';

const test = suite('core/sessions/copy');

test('a copy has the settings of its session, its sealed proxies included', async () => {
  await using app = await openSessions();
  const body = {
    keepAlive: true,
    timeout: 120,
    region: 'eu-central-1',
    userMetadata: { team: { name: 'checkout' } },
    proxies: [{ type: 'external', server: 'http://proxy.test:1', password: 'secret' }],
    browserSettings: { viewport: { width: 800, height: 600 }, recordSession: false },
  } as object;
  const { session, work } = await app.run(body);
  const copying = app.clients.sessions.copySession({ id: session.id }, app.asProject);
  const copied = await app.take();
  await app.begin(copied.leaseId);
  const { id } = await copying;
  assert.is.not(id, session.id);
  assert.is(copied.sessionId, id);
  assert.equal(JSON.parse(copied.sessionParamsJson), JSON.parse(work.sessionParamsJson));
  assert.match(copied.sessionParamsJson, /"password":"secret"/);
  const [before, after] = [await app.read(session.id), await app.read(id)];
  for (const name of ['keepAlive', 'region', 'userMetadata'] as const) {
    assert.equal(after[name], before[name], name);
  }
  const lengthOf = ({ startedAt, expiresAt }: typeof after) =>
    must(expiresAt, 'end').getTime() - must(startedAt, 'start').getTime();
  assert.is(lengthOf(after), 120_000);
});

test('a copy has the current labels of its session', async () => {
  await using app = await openSessions();
  const { clients, asProject } = app;
  const { session, work } = await app.run({ labels: ['old', 'gone', 'kept'] });
  assert.is(JSON.parse(work.sessionParamsJson).labels, undefined, 'they are not for runners');
  const { data } = await clients.labels.listLabels({}, asProject);
  const idOf = (name: string) => must(data.find((one) => one.name === name)?.id, name);
  await clients.labels.updateLabel({ id: idOf('old'), name: 'new' }, asProject);
  await clients.labels.deleteLabel({ id: idOf('gone') }, asProject);
  const copying = clients.sessions.copySession({ id: session.id }, asProject);
  await app.begin((await app.take()).leaseId);
  assert.equal((await app.read((await copying).id)).labels, ['kept', 'new']);
});

test('a copy of an unknown or another project’s session is refused and starts none', async () => {
  await using app = await openSessions();
  const { clients, asProject, asOperator } = app;
  const { session } = await app.run();
  const count = async () =>
    (await clients.sessions.listSessions({ label: [] }, asProject)).sessions.length;
  const unknown = clients.sessions.copySession({ id: newId() }, asProject);
  assert.is((await faultOf(unknown)).reason, 'RESOURCE_NOT_FOUND');
  const malformed = clients.sessions.copySession({ id: 'x' }, asProject);
  assert.is((await faultOf(malformed)).reason, 'INVALID_FIELD');
  await clients.operators.createProject({ name: 'other', limits: undefined }, asOperator);
  const made = await clients.operators.createApiKey({ project: 'other', name: '' }, asOperator);
  const theirs = { metadata: { 'x-svc-api-key': made.key } };
  const foreign = clients.sessions.copySession({ id: session.id }, theirs);
  assert.is((await faultOf(foreign)).reason, 'RESOURCE_NOT_FOUND');
  assert.is(await count(), 1);
  assert.equal((await clients.sessions.listSessions({ label: [] }, theirs)).sessions, []);
});

test.run();
