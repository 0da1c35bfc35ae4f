/** Schedules: what a user may choose, and what starts at their times. The clock is the test's. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { startSchedules } from '../../../core/functions/schedules/run-due.ts';
import { type Core, startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type {
  CreateScheduleRequest,
  Invocation,
  Schedule,
  UpdateScheduleRequest,
} from '../../../proto/gen/tabern/v1/invocations.pb.ts';
import { invalidField } from '../../../proto/rpc/errors.ts';
import { envOn } from '../../support/engine.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { type Booted, boot, configOn } from '../boot.ts';
import { ENGINES, openBench, T0 } from '../store/engines.ts';

const test = suite('core/functions/schedules');
const CHILD = fileURLToPath(new URL('./schedules-crash-child.ts', import.meta.url));
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** The test clock starts at 03:04:05.678. */
const DAY = '2026-01-02';
const silent = openLog({ role: 'test', level: 'silent' });

type Clients = Core['clients'];
type Using = Pick<Booted, 'asProject'> & { clients: Clients };

async function create(
  { clients, asProject }: Using,
  functionId: string,
  more: Partial<CreateScheduleRequest> = {},
): Promise<Schedule> {
  const request = { functionId, cron: '0 * * * *', params: {}, ...more };
  const { schedule } = await clients.schedules.createSchedule(request, asProject);
  return must(schedule, 'schedule');
}

async function change(
  { clients, asProject }: Using,
  id: string,
  to: Partial<UpdateScheduleRequest>,
): Promise<Schedule> {
  const { schedule } = await clients.schedules.updateSchedule(
    { id, params: undefined, ...to },
    asProject,
  );
  return must(schedule, 'schedule');
}

async function read({ clients, asProject }: Using, id: string): Promise<Schedule> {
  const { schedule } = await clients.schedules.getSchedule({ id }, asProject);
  return must(schedule, 'schedule');
}

/** The schedule after its time was handled. */
function handled(app: Using, id: string, time: string): Promise<Schedule> {
  return until(async () => {
    const schedule = await read(app, id);
    return schedule.lastOutcome?.scheduledFor?.toISOString() === `${DAY}T${time}:00.000Z`
      ? schedule
      : undefined;
  });
}

async function invocation({ clients, asProject }: Using, id: string): Promise<Invocation> {
  const answer = await clients.invocations.getInvocation({ id }, asProject);
  return must(answer.invocation, 'invocation');
}

/** All of the function's newest version, newest first. */
async function runsOf({ clients, asProject }: Using, functionId: string): Promise<Invocation[]> {
  const { results: versions } = await clients.functions.listVersions({ functionId }, asProject);
  const lists = await Promise.all(
    versions.map(({ id: versionId }) =>
      clients.invocations.listInvocations({ versionId }, asProject),
    ),
  );
  return lists.flatMap(({ results }) => results);
}

const iso = (date: Date | undefined) => date?.toISOString();
const timeOf = (time: string) => Date.parse(`${DAY}T${time}:00Z`);

test('a schedule runs once at its time, and the invocation shows it', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const made = await create(app, functionId, { cron: ' 30  3 * * * ', params: { a: [1] } });
  assert.equal(
    [made.cron, made.timeZone, made.overlap, made.catchUp, made.enabled, made.params],
    ['30 3 * * *', 'UTC', 'skip', 'none', true, { a: [1] }],
  );
  assert.is(iso(made.nextRunAt), `${DAY}T03:30:00.000Z`);
  assert.equal(
    [made.lastRunAt, made.lastInvocationId, made.lastOutcome],
    [undefined, undefined, undefined],
  );
  app.clock.set(timeOf('03:30') + 1_000);
  const ran = await handled(app, made.id, '03:30');
  assert.equal([ran.lastOutcome?.status, ran.lastOutcome?.reason], ['started', undefined]);
  assert.equal(
    [iso(ran.nextRunAt), iso(ran.lastRunAt)],
    ['2026-01-03T03:30:00.000Z', `${DAY}T03:30:01.000Z`],
  );
  const [run, ...others] = await runsOf(app, functionId);
  assert.equal(others, []);
  const { trigger, params, status, id } = await invocation(app, must(run, 'run').id);
  assert.is(id, ran.lastInvocationId);
  assert.equal([params, status], [{ a: [1] }, 'PENDING']);
  assert.equal(trigger, {
    type: 'schedule',
    scheduleId: made.id,
    scheduledFor: new Date(timeOf('03:30')),
  });
  assert.equal(run?.trigger, trigger, 'in a list too');
  const asked = await app.invoke(functionId);
  assert.is(asked.trigger, undefined);
});

test('a time is skipped until the last invocation has ended', async () => {
  await using app = await boot({ TABERN_LEASE_MS: '300000' });
  const functionId = await app.publish({ name: 'f' });
  const { id } = await create(app, functionId, { cron: '* * * * *' });
  app.clock.set(timeOf('03:05'));
  const first = await handled(app, id, '03:05');
  app.clock.set(timeOf('03:06'));
  const skipped = await handled(app, id, '03:06');
  assert.equal(skipped.lastOutcome, {
    status: 'skipped',
    reason: 'overlap',
    message: 'The last invocation of the schedule had not ended.',
    scheduledFor: new Date(timeOf('03:06')),
  });
  assert.equal(
    [skipped.lastInvocationId, iso(skipped.lastRunAt), iso(skipped.nextRunAt)],
    [first.lastInvocationId, iso(first.lastRunAt), `${DAY}T03:07:00.000Z`],
  );
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  app.clock.set(timeOf('03:07'));
  assert.is((await handled(app, id, '03:07')).lastOutcome?.reason, 'overlap', 'RUNNING too');
  const outcome = { $case: 'resultsJson', value: '1' } as const;
  const end = { leaseId, outcome, sessionStartMs: 0, steps: [] };
  await app.clients.runners.completeInvocation(end, app.asRunner);
  app.clock.set(timeOf('03:08'));
  assert.is((await handled(app, id, '03:08')).lastOutcome?.status, 'started');
  assert.is((await runsOf(app, functionId)).length, 2);
});

test('with overlap allow each time starts one', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const { id } = await create(app, functionId, { overlap: 'allow' });
  for (const time of ['04:00', '05:00']) {
    app.clock.set(timeOf(time));
    assert.is((await handled(app, id, time)).lastOutcome?.status, 'started');
  }
  assert.is((await runsOf(app, functionId)).length, 2);
});

test('after a restart catchUp none starts nothing, and last starts the newest time', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const none = await create(app, functionId, { cron: '0,30 * * * *' });
  const last = await create(app, functionId, { cron: '0,30 * * * *', catchUp: 'last' });
  await app.core.close();
  app.clock.set(timeOf('09:45'));
  await using core = await startCore(configOn(app.dir), silent, { now: app.clock.now });
  const using = { clients: core.clients, asProject: app.asProject };
  const missed = await handled(using, none.id, '03:30');
  assert.equal(
    [missed.lastOutcome?.reason, missed.lastOutcome?.message, iso(missed.nextRunAt)],
    ['missed', 'The service did not run at that time.', `${DAY}T10:00:00.000Z`],
  );
  const caught = await handled(using, last.id, '09:30');
  assert.equal(
    [caught.lastOutcome?.status, iso(caught.nextRunAt)],
    ['started', `${DAY}T10:00:00.000Z`],
  );
  const runs = await runsOf(using, functionId);
  assert.equal(
    runs.map(({ trigger }) => [trigger?.scheduleId, iso(trigger?.scheduledFor)]),
    [[last.id, `${DAY}T09:30:00.000Z`]],
  );
});

test('a crash while a run is accepted starts it exactly once', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const { id } = await create(app, functionId);
  await app.core.close();
  app.clock.set(timeOf('04:00') + 1);
  const child = spawn(process.execPath, [CHILD, app.dir, String(app.clock.now())], {
    stdio: 'inherit',
    env: envOn(app.dir),
  });
  const [, signal] = await once(child, 'exit');
  assert.is(signal, 'SIGKILL');
  await using core = await startCore(configOn(app.dir), silent, { now: app.clock.now });
  const using = { clients: core.clients, asProject: app.asProject };
  const ran = await handled(using, id, '04:00');
  assert.is(ran.lastOutcome?.status, 'started');
  const runs = await runsOf(using, functionId);
  assert.equal(
    runs.map((run) => run.id),
    [ran.lastInvocationId],
  );
});

test('a full queue is recorded as skipped, and not tried again before the next time', async () => {
  await using app = await boot({ TABERN_QUEUE_MAX: '1' });
  const functionId = await app.publish({ name: 'f' });
  const waiting = await app.invoke(functionId);
  const { id } = await create(app, functionId);
  app.clock.set(timeOf('04:00'));
  const { lastOutcome, nextRunAt } = await handled(app, id, '04:00');
  assert.equal([lastOutcome?.status, lastOutcome?.reason], ['skipped', 'limit']);
  assert.match(lastOutcome?.message ?? '', /^Too many invocations wait in this project/);
  assert.is(iso(nextRunAt), `${DAY}T05:00:00.000Z`);
  await app.clients.invocations.cancelInvocation({ id: waiting.id }, app.asProject);
  app.clock.set(timeOf('05:00'));
  assert.is((await handled(app, id, '05:00')).lastOutcome?.status, 'started');
});

test('params are checked by the newest version, at creation and at the time', async () => {
  await using app = await boot();
  const schema = (type: string) =>
    JSON.stringify({ type: 'object', required: ['n'], properties: { n: { type } } });
  const functionId = await app.publish({ name: 'f', schema: schema('number') });
  const refused = await faultOf(create(app, functionId, { params: { n: 'x' } }));
  assert.equal([refused.reason, refused.message], ['INVALID_FIELD', '`params/n` must be number.']);
  const { id } = await create(app, functionId, { params: { n: 1 } });
  const changed = await faultOf(change(app, id, { params: { n: 'x' } }));
  assert.is(changed.message, '`params/n` must be number.');
  await app.publish({ name: 'f', schema: schema('string') });
  app.clock.set(timeOf('04:00'));
  const { lastOutcome } = await handled(app, id, '04:00');
  assert.equal(
    [lastOutcome?.reason, lastOutcome?.message],
    ['invalidParams', '`params/n` must be string.'],
  );
  assert.equal(await runsOf(app, functionId), []);
});

test('a low disk starts no invocation', async () => {
  const most = Number.MAX_SAFE_INTEGER;
  const disk = { reserveBytes: 0, lowBytes: most, highBytes: most, periodMs: 1_000 };
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const { id } = await create(app, functionId);
  await app.core.close();
  app.clock.set(timeOf('04:00'));
  const options = { now: app.clock.now, disk };
  await using core = await startCore(configOn(app.dir), silent, options);
  const using = { clients: core.clients, asProject: app.asProject };
  assert.is((await handled(using, id, '04:00')).lastOutcome?.reason, 'limit');
  assert.equal(await runsOf(using, functionId), []);
});

test('a paused schedule keeps its row, and catches nothing up when it is enabled', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const { id } = await create(app, functionId, { catchUp: 'last' });
  const other = await create(app, functionId, { cron: '0 5 * * *' });
  const paused = await change(app, id, { enabled: false });
  assert.equal([paused.enabled, paused.nextRunAt], [false, undefined]);
  app.clock.set(timeOf('05:00'));
  await handled(app, other.id, '05:00');
  const enabled = await change(app, id, { enabled: true });
  assert.equal([iso(enabled.nextRunAt), enabled.lastOutcome], [`${DAY}T06:00:00.000Z`, undefined]);
  assert.is((await runsOf(app, functionId)).length, 1);
});

test('a change of the text or the zone moves the next time, and no other change does', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const { id } = await create(app, functionId);
  assert.is(iso((await change(app, id, { cron: '0 9 * * *' })).nextRunAt), `${DAY}T09:00:00.000Z`);
  const moved = await change(app, id, { timeZone: 'Europe/Berlin' });
  assert.is(iso(moved.nextRunAt), `${DAY}T08:00:00.000Z`);
  app.clock.advance(MINUTE_MS);
  const same = await change(app, id, { paramsJson: '{"a":1}', overlap: 'allow', catchUp: 'last' });
  assert.equal(
    [iso(same.nextRunAt), same.params, same.overlap, same.catchUp, same.cron],
    [`${DAY}T08:00:00.000Z`, { a: 1 }, 'allow', 'last', '0 9 * * *'],
  );
  assert.is(same.updatedAt?.getTime(), app.clock.now());
});

for (const [what, first, second] of [
  ['spring', '2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z'],
  ['autumn', '2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z'],
] as const) {
  test(`at half past two in Berlin a day in ${what} has one run`, async () => {
    await using app = await boot();
    const functionId = await app.publish({ name: 'f' });
    app.clock.set(Date.parse(first) - 12 * HOUR_MS);
    const rules = { cron: '30 2 * * *', timeZone: 'Europe/Berlin', overlap: 'allow' };
    const { id, nextRunAt } = await create(app, functionId, rules);
    assert.is(iso(nextRunAt), first);
    app.clock.set(Date.parse(first));
    const ran = await until(async () => {
      const schedule = await read(app, id);
      return schedule.lastOutcome && schedule;
    });
    assert.equal([ran.lastOutcome?.status, iso(ran.nextRunAt)], ['started', second]);
    assert.is((await runsOf(app, functionId)).length, 1);
  });
}

test('a clock that is set back computes the next time again, and starts nothing', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  app.clock.set(timeOf('09:10'));
  const { id, nextRunAt } = await create(app, functionId);
  assert.is(iso(nextRunAt), `${DAY}T10:00:00.000Z`);
  await app.core.close();
  const [engine] = ENGINES;
  const store = await must(engine, 'engine').open(app.dir);
  await store.moveTimes({ from: timeOf('09:10'), to: timeOf('04:10') });
  await store.close();
  app.clock.set(timeOf('04:10'));
  await using core = await startCore(configOn(app.dir), silent, { now: app.clock.now });
  const using = { clients: core.clients, asProject: app.asProject };
  const again = await until(async () => {
    const schedule = await read(using, id);
    return schedule.nextRunAt && schedule;
  });
  assert.equal([iso(again.nextRunAt), again.lastOutcome], [`${DAY}T05:00:00.000Z`, undefined]);
  assert.equal(await runsOf(using, functionId), []);
});

test('a function has no schedules after its deletion', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const { id } = await create(app, functionId);
  await app.clients.functions.deleteFunction({ id: functionId }, app.asProject);
  assert.is((await faultOf(read(app, id))).message, 'Schedule not found.');
  const list = app.clients.schedules.listSchedules({ functionId }, app.asProject);
  assert.is((await faultOf(list)).message, 'Function not found.');
  assert.is((await faultOf(create(app, functionId))).message, 'Function not found.');
});

test('a deleted schedule is gone, and its invocations stay', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const { id } = await create(app, functionId);
  app.clock.set(timeOf('04:00'));
  await handled(app, id, '04:00');
  await app.clients.schedules.deleteSchedule({ id }, app.asProject);
  const again = app.clients.schedules.deleteSchedule({ id }, app.asProject);
  assert.is((await faultOf(again)).message, 'Schedule not found.');
  assert.is((await runsOf(app, functionId))[0]?.trigger?.scheduleId, id);
});

test('a project has at most 100 schedules, and lists them newest first', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const ids: string[] = [];
  for (let n = 0; n < 100; n += 1) ids.unshift((await create(app, functionId)).id);
  const fault = await faultOf(create(app, functionId));
  assert.equal(
    [fault.reason, fault.row.http, fault.message],
    ['TOO_MANY_SCHEDULES', 409, 'A project has at most 100 schedules.'],
  );
  const page = { functionId, offset: 2, limit: 3 };
  const { data, total } = await app.clients.schedules.listSchedules(page, app.asProject);
  assert.equal([data.map(({ id }) => id), total], [ids.slice(2, 5), 100]);
});

test('bad input is refused at creation and change, also of a paused schedule', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const { id } = await create(app, functionId);
  const inputs: [Partial<CreateScheduleRequest>, string][] = [
    [{ cron: '0 0 30 2 *' }, '`cron` must have a time: no such date'],
    [{ cron: '* * * *' }, '`cron` must have five fields'],
    [{ timeZone: 'Mars/Base' }, '`timeZone` must be an IANA name'],
    [{ overlap: 'wait' }, '`overlap` must be one of skip, allow.'],
    [{ catchUp: 'all' }, '`catchUp` must be one of none, last.'],
    [{ paramsJson: '[1]', params: undefined }, '`params` must be an object.'],
    [{ params: { a: 'x'.repeat(65_536) } }, '`params` must be at most 65536 bytes'],
  ];
  for (const [input, message] of inputs) {
    const made = await faultOf(create(app, functionId, { ...input, enabled: false }));
    const changed = await faultOf(change(app, id, input));
    for (const fault of [made, changed]) {
      assert.is(fault.reason, 'INVALID_FIELD');
      assert.ok(fault.message.startsWith(message), fault.message);
    }
  }
  const { total } = await app.clients.schedules.listSchedules({ functionId }, app.asProject);
  assert.is(total, 1);
});

test('a change without a field, and an unknown schedule, are refused', async () => {
  await using app = await boot();
  const { id } = await create(app, await app.publish({ name: 'f' }));
  assert.is((await faultOf(change(app, id, {}))).message, '`cron` or another field must be given.');
  assert.is(
    (await faultOf(change(app, newId(), { enabled: true }))).message,
    'Schedule not found.',
  );
  assert.is((await faultOf(read(app, 'x'))).reason, 'INVALID_FIELD');
});

for (const engine of ENGINES) {
  test(`${engine.name}: due schedules of two projects take turns`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const due = async (name: string, count: number, nextRunAt: number) => {
      const projectId = await bench.project(name);
      const { functionId } = await bench.publish(projectId);
      const rules = { cron: '* * * * *', timeZone: 'UTC', params: '{}' };
      const rest = { overlap: 'skip', catchUp: 'none', enabled: true } as const;
      for (let n = 0; n < count; n += 1) {
        const own = { id: newId(), projectId, functionId, nextRunAt, at: T0 };
        await store.createSchedule({ ...own, ...rules, ...rest }, 100);
      }
      return projectId;
    };
    const many = await due('many', 100, T0);
    const few = await due('few', 2, T0 + 1);
    const later = await due('later', 1, T0 + 2);
    const rows = await store.dueSchedules({ at: T0 + 1, max: 50 });
    assert.equal(
      rows.slice(0, 5).map(({ projectId }) => projectId),
      [many, few, many, few, many],
    );
    assert.is(rows.length, 50);
    assert.ok(rows.every(({ projectId }) => projectId !== later));
  });
}

test('a project with many due schedules has a turn of two, and then others are read', async () => {
  const row = (id: string, projectId: string) => {
    const times = { cron: '* * * * *', timeZone: 'UTC', catchUp: 'none', params: '{}' };
    return { id, projectId, functionId: 'f', version: 1, nextRunAt: T0, isPlanned: 0, ...times };
  };
  const due = ['a', 'b', 'c', 'd', 'e'].map((id) => row(id, 'many'));
  const done: string[] = [];
  const over = Promise.withResolvers<void>();
  const deps = {
    store: {
      isLeader: () => true,
      async dueSchedules() {
        done.push('read');
        if (done.length === 4) due.unshift(row('z', 'few')); // due since the first turn
        return [...due];
      },
      async skipScheduled({ seen }: { seen: { id: string } }) {
        due.splice(
          due.findIndex(({ id }) => id === seen.id),
          1,
        );
        done.push(seen.id);
        if (due.length === 0) over.resolve();
      },
    },
    validator: { nextTime: async () => T0 + MINUTE_MS },
    now: () => T0,
    log: silent,
  };
  await using _loop = startSchedules(deps as unknown as Parameters<typeof startSchedules>[0]);
  await over.promise;
  assert.equal(done.slice(0, 4), ['read', 'a', 'b', 'read']);
  assert.equal(done.slice(4, 7).sort(), ['c', 'd', 'z']);
  assert.equal(done.slice(7, 9), ['read', 'e']);
});

test('only the leader of several cores reads what is due', async () => {
  let isLeader = false;
  const asked = { asLeader: 0, reads: 0 };
  const [waited, read] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const store = {
    isLeader() {
      if (isLeader) asked.asLeader += 1;
      else waited.resolve();
      return isLeader;
    },
    async dueSchedules() {
      asked.reads += 1;
      read.resolve();
      return [];
    },
  };
  const deps = { store, now: () => T0, log: silent };
  await using _loop = startSchedules(deps as unknown as Parameters<typeof startSchedules>[0]);
  await waited.promise;
  assert.is(asked.reads, 0);
  isLeader = true;
  await read.promise;
  assert.is(asked.reads, asked.asLeader);
});

/** What is stored for a due schedule when the validator fails with that error. */
async function storedAfter(error: Error) {
  const row = { id: 'a', projectId: 'p', functionId: 'f', version: 1, nextRunAt: T0, isPlanned: 1 };
  const due = [{ ...row, cron: '* * * * *', timeZone: 'UTC', catchUp: 'none', params: '{}' }];
  const skipped = Promise.withResolvers<Record<string, unknown>>();
  const fail = async () => {
    throw error;
  };
  const deps = {
    store: {
      isLeader: () => true,
      dueSchedules: async () => due.splice(0),
      skipScheduled: skipped.resolve,
    },
    validator: { nextTime: fail, lastTime: fail },
    now: () => T0,
    log: silent,
  };
  await using _loop = startSchedules(deps as unknown as Parameters<typeof startSchedules>[0]);
  const { nextRunAt, isPlanned } = await skipped.promise;
  return { nextRunAt, isPlanned };
}

test('a failure of ours ends no schedule: its next time is computed again', async () => {
  for (const error of [new Error('no thread'), invalidField('params', 'took too long.')]) {
    assert.equal(await storedAfter(error), { nextRunAt: T0 + MINUTE_MS, isPlanned: 0 });
  }
  const ended = { nextRunAt: null, isPlanned: undefined };
  assert.equal(await storedAfter(invalidField('timeZone', 'is unknown.')), ended);
});

test.run();
