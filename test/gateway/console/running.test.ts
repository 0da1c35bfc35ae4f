/** Pictures and states of running sessions: who may have them, and what there is without one. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../support/poll.ts';
import { messageOf, openConsole } from './console.ts';

const test = suite('gateway/console/running');

const NOBODY = '01900000-0000-7000-8000-000000000000';
const thumbnail = (id: string) => `/console/api/v1/sessions/${id}/thumbnail`;
const states = (ids: string) => `/console/api/v1/sessions/live?ids=${ids}`;

test('a session without a picture is a sentence, a foreign one is not found', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  const { clients, asProject, asOperator } = console.app;
  // it answers when the browser is ready, or the session has ended
  const created = clients.sessions.createSession({ labels: [] } as never, asProject);
  const id = await until(async () => {
    const { sessions } = await clients.sessions.listSessions({ label: [] }, asProject);
    return sessions[0]?.id;
  });
  const waiting = await console.browse('GET', thumbnail(id), { cookie });
  assert.is(waiting.status, 404);
  assert.match(messageOf(waiting), 'The session has no browser yet. There is no picture of it.');
  await clients.sessions.updateSession({ id, status: 'REQUEST_RELEASE' } as never, asProject);
  await created;
  const ended = await console.browse('GET', thumbnail(id), { cookie });
  assert.is(ended.status, 404);
  assert.match(messageOf(ended), 'The session has ended. There is no picture of it.');
  const none = await console.browse('GET', thumbnail(NOBODY), { cookie });
  assert.equal([none.status, messageOf(none)], [404, 'Session not found.']);

  await clients.operators.createProject({ name: 'other' } as never, asOperator);
  const { key } = await console.key('other');
  const foreign = await console.logIn(key);
  const theirs = await console.browse('GET', thumbnail(id), { cookie: foreign });
  assert.equal([theirs.status, messageOf(theirs)], [404, 'Session not found.']);
  const list = await console.browse('GET', states(id), { cookie: foreign });
  assert.equal([list.status, list.json], [200, { sessions: [] }]);
});

test('a wrong request names its field, and without a login there is neither', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  const many = Array.from({ length: 101 }, () => NOBODY).join();
  for (const path of [states(''), states('x'), states(many), '/console/api/v1/sessions/live']) {
    const answer = await console.browse('GET', path, { cookie });
    assert.is(answer.status, 400, path.slice(0, 60));
    assert.match(messageOf(answer), '`ids`');
  }
  assert.is((await console.browse('GET', thumbnail('x'), { cookie })).status, 400);
  for (const path of [thumbnail(NOBODY), states(NOBODY)]) {
    assert.is((await console.browse('GET', path)).status, 401);
    const headers = { cookie, 'sec-fetch-site': 'cross-site' };
    assert.is((await console.send('GET', path, { headers })).status, 403);
  }
});

test.run();
