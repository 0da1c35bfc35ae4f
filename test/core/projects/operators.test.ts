/** Projects and keys, created and revoked by the operator over the operator's client. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import type { ProjectLimits } from '../../../proto/gen/tabern/v1/operators.pb.ts';
import { isStored } from '../../support/core/database.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot } from '../boot.ts';

const test = suite('core/projects/operators');

const keyed = (key: string) => ({ metadata: { 'x-svc-api-key': key } });

async function newProject({ clients, asOperator }: Booted, name: string, limits = {}) {
  const { project } = await clients.operators.createProject({ name, limits }, asOperator);
  return must(project, 'project');
}

async function newKey({ clients, asOperator }: Booted, project: string, name = '') {
  return await clients.operators.createApiKey({ project, name }, asOperator);
}

test('a new project has its own key and no access to other projects', async () => {
  await using app = await boot();
  const { clients } = app;
  const made = await newProject(app, 'shop');
  const { key } = await newKey(app, 'shop');
  const { projects } = await clients.projects.listProjects({}, keyed(key));
  assert.equal(
    projects.map(({ id, name }) => ({ id, name })),
    [{ id: made.project?.id, name: 'shop' }],
  );
  const { id } = await clients.contexts.createContext({ name: 'login' }, app.asProject);
  const foreign = await faultOf(clients.contexts.getContext({ id }, keyed(key)));
  assert.is(foreign.reason, 'RESOURCE_NOT_FOUND');
});

test('a project name is unique, trimmed and validated', async () => {
  await using app = await boot();
  await newProject(app, ' shop ');
  assert.is((await faultOf(newProject(app, 'shop'))).reason, 'PROJECT_NAME_TAKEN');
  for (const name of ['', '  ', 'x'.repeat(129), 'a\nb']) {
    assert.is((await faultOf(newProject(app, name))).reason, 'INVALID_FIELD', name);
  }
  const { projects } = await app.clients.operators.listAllProjects({}, app.asOperator);
  assert.equal(
    projects.map((one) => one.project?.name),
    ['default', 'shop'],
  );
});

test('a key is returned once, stored as its hash, and listed without its text', async () => {
  await using app = await boot();
  const { key, apiKey } = await newKey(app, 'default', 'ci');
  const { apiKeys } = await app.clients.operators.listApiKeys({ project: '' }, app.asOperator);
  assert.equal(
    apiKeys.map(({ name, revokedAt }) => [name, revokedAt]),
    [
      ['preset', undefined],
      ['ci', undefined],
    ],
  );
  assert.is(apiKeys[1]?.id, apiKey?.id);
  assert.not.ok(JSON.stringify(apiKeys).includes(key));
  assert.not.ok(await isStored(app.dir, key.slice(14)));
});

test('a revoked key is refused at once, other keys are not', async () => {
  await using app = await boot();
  const { clients, asOperator } = app;
  const { key, apiKey } = await newKey(app, 'default');
  await clients.projects.listProjects({}, keyed(key));
  const id = must(apiKey, 'key').id;
  const revoked = await clients.operators.revokeApiKey({ id }, asOperator);
  assert.is(revoked.apiKey?.revokedAt?.getTime(), app.clock.now());
  const fault = await faultOf(clients.projects.listProjects({}, keyed(key)));
  assert.is(fault.reason, 'API_KEY_INVALID');
  await clients.projects.listProjects({}, app.asProject);
  app.clock.advance(5_000);
  const again = await clients.operators.revokeApiKey({ id }, asOperator);
  assert.equal(again.apiKey, revoked.apiKey);
  const none = await faultOf(clients.operators.revokeApiKey({ id: 'zzzzzzzz' }, asOperator));
  assert.is(none.reason, 'RESOURCE_NOT_FOUND');
});

test('the last use of a key is listed to the minute', async () => {
  await using app = await boot();
  const { clients, asOperator } = app;
  const { key, apiKey } = await newKey(app, 'default');
  const used = async () => {
    const { apiKeys } = await clients.operators.listApiKeys({ project: 'default' }, asOperator);
    return apiKeys.find(({ id }) => id === apiKey?.id)?.lastUsedAt?.getTime();
  };
  assert.is(await used(), undefined);
  await clients.projects.listProjects({}, keyed(key));
  const at = app.clock.now();
  assert.is(await used(), at - (at % 60_000));
});

/** Without quotas, which quotas.test.ts is about. */
function ofWork({ sessions, invocations, queue }: ProjectLimits = {}) {
  return { sessions, invocations, queue };
}

test('limits of sessions and of the queue apply to their project only', async () => {
  await using app = await boot();
  const { clients, asOperator } = app;
  const limits = { sessions: 1, invocations: 1, queue: 1 };
  const set = await clients.operators.setProjectLimits({ project: 'default', limits }, asOperator);
  assert.equal(ofWork(set.project?.limits), limits);
  const functionId = await app.publish({ name: 'title' });
  await app.invoke(functionId);
  const full = await faultOf(app.invoke(functionId));
  assert.is(full.reason, 'QUEUE_FULL');
  assert.match(full.message, /limit 1/);
  assert.is((await app.lease('INVOCATION')).length, 1);
  await app.invoke(functionId);
  assert.is((await app.lease('INVOCATION')).length, 0, 'one runs at once');
  const more = { sessions: undefined, invocations: 2, queue: undefined };
  await clients.operators.setProjectLimits({ project: 'default', limits: more }, asOperator);
  assert.is((await app.lease('INVOCATION')).length, 1);

  const { projects } = await clients.operators.listAllProjects({}, asOperator);
  assert.is(projects[0]?.invocations, 2);
  assert.equal(ofWork(projects[0]?.limits), { sessions: 1, invocations: 2, queue: 1 });
  const other = await newProject(app, 'other');
  assert.equal(ofWork(other.limits), { sessions: 25, invocations: 25, queue: 1_000 });
});

test('wrong limits and unknown projects are refused', async () => {
  await using app = await boot();
  const { clients, asOperator } = app;
  const set = (project: string, limits: object) =>
    faultOf(clients.operators.setProjectLimits({ project, limits }, asOperator));
  for (const name of ['sessions', 'invocations', 'queue']) {
    assert.is((await set('default', { [name]: 0 })).facts['field'], name);
    assert.is((await set('default', { [name]: 1_000_001 })).facts['field'], name);
  }
  assert.is((await set('none', { queue: 1 })).reason, 'RESOURCE_NOT_FOUND');
  assert.is((await faultOf(newKey(app, 'none'))).reason, 'RESOURCE_NOT_FOUND');
});

test("only the operator's token is accepted", async () => {
  await using app = await boot();
  for (const who of [app.asProject, app.asRunner, app.asGateway]) {
    const fault = await faultOf(app.clients.operators.listAllProjects({}, who));
    assert.is(fault.reason, 'TOKEN_REQUIRED');
  }
  const none = await faultOf(app.clients.operators.listAllProjects({}));
  assert.is(none.reason, 'API_KEY_MISSING');
  const project = await faultOf(app.clients.projects.listProjects({}, app.asOperator));
  assert.is(project.reason, 'API_KEY_MISSING');
});

test.run();
