/** Labels: names, limits, the sessions that have them, and what other projects see of them. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { CreateSessionRequest } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { faultOf, reasonsOf } from '../../support/fault.ts';
import { openSessions } from './runs.ts';

const test = suite('core/sessions/labels');

type App = Awaited<ReturnType<typeof openSessions>>;

const namesOf = async ({ clients, asProject }: App) =>
  (await clients.labels.listLabels({ limit: 100 }, asProject)).data.map(({ name }) => name);
const idsBy = async ({ clients, asProject }: App, ...label: string[]) =>
  (await clients.sessions.listSessions({ label }, asProject)).sessions.map(({ id }) => id);

test('a session has its labels, each once, and missing ones are created', async () => {
  await using app = await openSessions();
  const { session } = await app.run({ labels: [' Straße ', 'b', 'STRASSE', 'B'] });
  assert.equal(session.labels, ['B', 'STRASSE']);
  assert.equal(await namesOf(app), ['B', 'STRASSE']);
  const { session: other } = await app.run({ labels: ['strasse'] });
  assert.equal(other.labels, ['STRASSE'], 'the name that the label has');
  const { session: none } = await app.run();
  assert.equal(none.labels, []);
});

test('sessions are found by one label and by all of several, in any case', async () => {
  await using app = await openSessions();
  const { clients, asProject } = app;
  const a = (await app.run({ labels: ['x'], userMetadata: { n: '1' } })).session.id;
  const b = (await app.run({ labels: ['x', 'y'] })).session.id;
  assert.equal(await idsBy(app, 'X'), [b, a]);
  assert.equal(await idsBy(app, 'x', ' Y '), [b]);
  assert.equal(await idsBy(app, 'y', 'x'), [b]);
  assert.equal(await idsBy(app, 'x', 'unknown'), []);
  const q = `user_metadata['n']:'1'`;
  const found = await clients.sessions.listSessions({ label: ['x'], q }, asProject);
  assert.equal(
    found.sessions.map(({ id }) => id),
    [a],
  );
  const status = 'COMPLETED' as const;
  const ended = await clients.sessions.listSessions({ label: ['x'], status }, asProject);
  assert.equal(ended.sessions, []);
});

test('the labels of a session are replaced, also after its end', async () => {
  await using app = await openSessions();
  const { clients, asProject, clock } = app;
  const { session } = await app.run({ labels: ['a', 'b'] });
  await clients.sessions.deleteSession({ id: session.id }, asProject);
  clock.advance(5);
  const set = async (labels: string[]) =>
    (await clients.sessions.setSessionLabels({ id: session.id, labels }, asProject)).session;
  const changed = must(await set(['b', 'c']), 'a session');
  assert.equal(changed.labels, ['b', 'c']);
  assert.is(changed.updatedAt?.getTime(), clock.now());
  assert.equal(await idsBy(app, 'a'), []);
  assert.equal(await idsBy(app, 'c'), [session.id]);
  assert.equal((await set([]))?.labels, []);
  assert.equal(await namesOf(app), ['c', 'b', 'a'], 'the catalogue keeps them');
});

test('a label is renamed everywhere, and deleted from all sessions', async () => {
  await using app = await openSessions();
  const { clients, asProject } = app;
  const { session } = await app.run({ labels: ['a', 'b'] });
  const { data } = await clients.labels.listLabels({}, asProject);
  const [b, a] = data.map(({ id }) => id);
  assert.ok(a && b);
  await clients.labels.updateLabel({ id: a, name: 'A' }, asProject);
  assert.equal((await app.read(session.id)).labels, ['A', 'b'], 'its own name in another case');
  const taken = await faultOf(clients.labels.updateLabel({ id: a, name: 'B' }, asProject));
  assert.is(taken.reason, 'LABEL_NAME_TAKEN');
  await clients.labels.deleteLabel({ id: b }, asProject);
  assert.equal((await app.read(session.id)).labels, ['A']);
  assert.equal(await idsBy(app, 'b'), []);
  const again = [
    clients.labels.deleteLabel({ id: b }, asProject),
    clients.labels.updateLabel({ id: b, name: 'c' }, asProject),
  ];
  for (const reason of await reasonsOf(again)) assert.is(reason, 'RESOURCE_NOT_FOUND');
  const { label } = await clients.labels.createLabel({ name: 'b' }, asProject);
  assert.is.not(label?.id, b, 'its name is free');
  assert.equal(await idsBy(app, 'b'), []);
});

test('wrong names and too many labels are refused, and nothing is stored', async () => {
  await using app = await openSessions();
  const { clients, asProject } = app;
  const create = (labels: string[]) =>
    clients.sessions.createSession(CreateSessionRequest.fromPartial({ labels }), asProject);
  const many = Array.from({ length: 51 }, (_, n) => `l${n}`);
  const rows: [string[], string][] = [
    [['  '], 'labels[0]'],
    [['a', 'x'.repeat(129)], 'labels[1]'],
    [['\ud800'], 'labels[0]'],
    [many, 'labels'],
  ];
  for (const [labels, field] of rows) {
    assert.is((await faultOf(create(labels))).facts['field'], field);
  }
  assert.is((await faultOf(idsBy(app, ...many.slice(0, 11)))).facts['field'], 'label');
  assert.equal(await idsBy(app, ...many.slice(0, 10)), []);
  assert.is((await faultOf(idsBy(app, ' '))).facts['field'], 'label[0]');
  assert.equal(await namesOf(app), []);
  const names = Array.from({ length: 999 }, (_, n) => `n${n}`);
  for (let from = 0; from < names.length; from += 50) {
    const some = names.slice(from, from + 50);
    await Promise.all(some.map((name) => clients.labels.createLabel({ name }, asProject)));
  }
  const full = await faultOf(create(['a', 'b']));
  assert.equal([full.reason, full.facts], ['TOO_MANY_LABELS', { limit: 1_000 }]);
  assert.equal((await clients.sessions.listSessions({ label: [] }, asProject)).sessions, []);
  await clients.labels.createLabel({ name: 'a' }, asProject);
  const more = clients.labels.createLabel({ name: 'b' }, asProject);
  assert.is((await faultOf(more)).reason, 'TOO_MANY_LABELS');
  const { session } = await app.run({ labels: ['a', 'N5'] });
  assert.equal(session.labels, ['a', 'n5'], 'labels that exist need no room');
  const set = clients.sessions.setSessionLabels({ id: session.id, labels: ['b'] }, asProject);
  assert.is((await faultOf(set)).reason, 'TOO_MANY_LABELS');
  assert.equal((await app.read(session.id)).labels, ['a', 'n5'], 'as they were');
});

test('another project sees no label, and has the same names for itself', async () => {
  await using app = await openSessions();
  const { clients, asProject, asOperator } = app;
  await clients.operators.createProject({ name: 'other', limits: undefined }, asOperator);
  const made = await clients.operators.createApiKey({ project: 'other', name: '' }, asOperator);
  const theirs = { metadata: { 'x-svc-api-key': made.key } };
  const { session } = await app.run({ labels: ['a'] });
  const id = must((await clients.labels.listLabels({}, asProject)).data[0]?.id, 'a label');
  const foreign = [
    clients.labels.deleteLabel({ id }, theirs),
    clients.labels.updateLabel({ id, name: 'b' }, theirs),
    clients.sessions.setSessionLabels({ id: session.id, labels: ['b'] }, theirs),
  ];
  for (const reason of await reasonsOf(foreign)) assert.is(reason, 'RESOURCE_NOT_FOUND');
  await clients.labels.createLabel({ name: 'a' }, theirs);
  assert.equal((await clients.sessions.listSessions({ label: ['a'] }, theirs)).sessions, []);
  assert.equal(await idsBy(app, 'a'), [session.id]);
  assert.equal(await namesOf(app), ['a']);
});

test.run();
