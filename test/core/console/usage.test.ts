/** What a project used, by day and by function, and its limits. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot } from '../boot.ts';
import { openLists } from './projects.ts';

const test = suite('core/console/usage');

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

async function usage({ clients, asProject }: Booted, days?: number) {
  return await clients.console.getUsage(days === undefined ? {} : { days }, asProject);
}

async function projectUsage({ clients, asProject }: Booted) {
  const { projects } = await clients.projects.listProjects({}, asProject);
  const { id } = must(projects[0], 'the project');
  return await clients.projects.getProjectUsage({ id }, asProject);
}

/** An invocation that takes `minutes`. */
async function run(app: Booted, functionId: string, minutes: number, isFailed = false) {
  await app.invoke(functionId);
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'an invocation to lease');
  const { runners } = app.clients;
  const outcome = isFailed
    ? ({
        $case: 'failure',
        value: { code: 'TIMED_OUT', message: 'x', name: '', stack: '' },
      } as never)
    : undefined;
  const sessionStartMs = app.clock.now();
  app.clock.advance(minutes * MINUTE_MS);
  await runners.reportRunner(
    { runnerId: 'runner', instanceId: 'first', leaseIds: [leaseId] },
    app.asRunner,
  );
  const end = { leaseId, outcome, sessionStartMs, steps: [] };
  await runners.completeInvocation(end, app.asRunner);
}

test('an ended run counts on the day of its end, for the project and its function', async () => {
  await using app = await boot({ TABERN_LEASE_MS: '300000' });
  const [title, other] = [
    await app.publish({ name: 'title' }),
    await app.publish({ name: 'other' }),
  ];
  await run(app, title, 2);
  await run(app, title, 1, true);
  app.clock.advance(DAY_MS);
  await run(app, other, 1);
  const { days, functions, browserMinutes, proxyBytes } = await usage(app, 3);
  assert.equal(
    days.map(({ sums }) => [sums?.sessions, sums?.browserMinutes, sums?.runs, sums?.failedRuns]),
    [
      [0, 0, 0, 0],
      [2, 3, 2, 1],
      [1, 1, 1, 0],
    ],
  );
  const today = Math.floor(app.clock.now() / DAY_MS) * DAY_MS;
  assert.is(days[2]?.at?.getTime(), today);
  assert.equal(
    functions.map(({ id, name, sums }) => [id, name, sums?.runs, sums?.browserMinutes]),
    [
      [title, 'title', 2, 3],
      [other, 'other', 1, 1],
    ],
  );
  const all = await projectUsage(app);
  assert.equal([browserMinutes, proxyBytes], [all.browserMinutes, all.proxyBytes]);
  assert.is(browserMinutes, 4);
  assert.is((await usage(app)).days.length, 30);
});

test('a running session counts in the sum only, up to now', async () => {
  await using app = await boot({ TABERN_LEASE_MS: '300000' });
  const functionId = await app.publish({ name: 'title' });
  await app.invoke(functionId);
  await app.lease('INVOCATION');
  const { browserMinutes, days } = await usage(app, 1);
  const { sums } = must(days[0], 'a day');
  assert.equal([browserMinutes, sums?.browserMinutes, sums?.runs], [1, 0, 0]);
});

test('a wrong number of days is refused', async () => {
  await using app = await boot();
  for (const days of [0, 91]) {
    assert.is((await faultOf(usage(app, days))).facts['field'], 'days');
  }
});

test('old sums are removed in steps, and another project sees none', async () => {
  await using lists = openLists();
  const { store, db, projectId, rows } = lists;
  for (let day = 0; day < 10; day += 1) {
    db.exec(`INSERT INTO usage_days (project_id, day, runs) VALUES ('${projectId}', ${day}, 1);
      INSERT INTO usage_function_days (project_id, day, function_id, runs)
      VALUES ('${projectId}', ${day}, 'f', 1)`);
  }
  assert.is(await store.purgeUsage({ day: 5, max: 7 }), 7);
  assert.is(await store.purgeUsage({ day: 5, max: 7 }), 3);
  assert.is(await store.purgeUsage({ day: 5, max: 7 }), 0);
  assert.is(rows('SELECT 1 FROM usage_days').length, 5);
  const other = await lists.addProject('other');
  const used = await store.consoleUsage({ projectId: other, fromDay: 0 });
  assert.equal(used, { days: [], functions: [] });
});

test('the settings are the limits that hold, own ones and those of the service', async () => {
  await using app = await boot({ TABERN_EXTENSIONS_MAX: '7', TABERN_RECORDING_DAYS: '3' });
  const { clients, asProject, asOperator } = app;
  const limits = { invocations: 3, contextMib: 5 };
  await clients.operators.setProjectLimits({ project: 'default', limits }, asOperator);
  const settings = await clients.consoleSettings.getSettings({}, asProject);
  const { invocations, contextMib, queue, sessions } = must(settings.limits, 'limits');
  assert.equal([invocations, contextMib, queue, sessions], [3, 5, 1_000, 25]);
  assert.equal([settings.extensionsMax, settings.keysMax], [7, 100]);
  assert.is(settings.retention.find(({ kind }) => kind === 'recording')?.days, 3);
  assert.is(settings.webhooks?.retrySeconds.length, 7);
});

test.run();
