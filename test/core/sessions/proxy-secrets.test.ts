/** Passwords of proxies: encrypted on disk, plain for the runner. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { isStored, rowsOf } from '../../support/core/database.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { openSessions } from './runs.ts';

const test = suite('core/sessions/proxy-secrets');
const PASSWORD = 'correct-horse-battery';
const PROXIES = [
  { type: 'external', server: 'http://h:1', username: 'u', password: PASSWORD },
  { type: 'external', server: `socks5://u:${PASSWORD}@h:2`, domainPattern: 'a' },
  { type: 'none' },
];

test("proxy passwords are encrypted on disk, and the session's runner receives them", async () => {
  await using app = await openSessions();
  const { work } = await app.run({ proxies: PROXIES, userMetadata: { of: 'no secret' } });
  assert.equal(JSON.parse(work.sessionParamsJson).proxies, PROXIES);
  assert.not(await isStored(app.dir, PASSWORD));
  assert.ok(await isStored(app.dir, 'no secret'), 'what is no secret is found');
});

test("proxy passwords of an invocation's session are encrypted, too", async () => {
  await using app = await openSessions();
  const functionId = await app.publish({ name: 'f' });
  const sessionCreateParams = { proxies: PROXIES, browserSettings: undefined };
  const request = { functionId, params: {}, sessionCreateParams } as never;
  await app.clients.invocations.invokeFunction(request, app.asProject);
  assert.not(await isStored(app.dir, PASSWORD));
  const { item } = must((await app.lease('INVOCATION'))[0], 'work');
  if (item?.$case !== 'invocation') throw new Error('no invocation');
  assert.equal(JSON.parse(item.value.sessionParamsJson).proxies, PROXIES);
});

test('proxies encrypted for another session end that session alone, with a reason', async () => {
  await using app = await openSessions();
  const creating = faultOf(app.create({ proxies: PROXIES }));
  await waitingParams(app.dir, 1); // its pattern is checked first, by a thread
  const other = app.create({ proxies: [{ type: 'none' }] });
  const [one, two] = await waitingParams(app.dir, 2);
  const params = must(two, 'a session').params;
  const { id } = must(one, 'a session');
  await rowsOf(app.dir, 'UPDATE sessions SET params = ? WHERE id = ?', params, id);
  const work = await app.take();
  assert.equal(JSON.parse(work.sessionParamsJson).proxies, [{ type: 'none' }]);
  await app.begin(work.leaseId);
  assert.is((await other).status, 'RUNNING');
  const message = 'The session did not start: the proxies of the session could not be read.';
  assert.is((await creating).message, message);
});

type Waiting = { id: string; params: string };

/** The sessions that wait for a runner, oldest first, as soon as there are `count`. */
function waitingParams(dir: string, count: number): Promise<Waiting[]> {
  return until(async () => {
    const rows = await rowsOf<Waiting>(dir, 'SELECT id, params FROM sessions ORDER BY id');
    return rows.length === count && rows;
  });
}

test.run();
