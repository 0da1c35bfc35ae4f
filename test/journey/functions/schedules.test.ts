/**
 * Schedules by the CLI and REST with a real service and runner, whose clock is ten minutes ahead
 * after a restart: no test waits for a minute.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ended, type Invocation, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { tabern } from '../../support/service/command.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/functions/schedules');
const PRELOAD = fileURLToPath(new URL('../../support/service/clock-preload.ts', import.meta.url));
const AHEAD_MS = 600_000;

type Schedule = {
  id: string;
  cron: string;
  timeZone: string;
  enabled: boolean;
  params: object;
  nextRunAt?: string;
  lastInvocationId?: string;
  lastOutcome?: { status: string; reason?: string; scheduledFor: string };
};
type Triggered = Invocation & {
  trigger?: { type: string; scheduleId: string; scheduledFor: string };
};

journey('a schedule of the CLI runs its function after a downtime, and shows it', async () => {
  await using dir = tempDirectory();
  const file = join(dir.path, 'clock');
  writeFileSync(file, '0');
  await using stack = await boot({
    preload: PRELOAD,
    env: { TABERN_TEST_CLOCK: file },
  });
  await publish(stack);
  const { run, read } = clientOf(stack);
  const rules = ['trivial', '* * * * *', '--time-zone', 'Europe/Berlin'];
  const caught = await run(
    ...['create', ...rules, '--catch-up', 'last', '--params', '{"a":1}', '--overlap', 'allow'],
  );
  const missed = await run('create', ...rules, '--disabled');
  // Due once, while the service is down: neither before its end nor after its start.
  const once = `${(new Date().getUTCMinutes() + AHEAD_MS / 120_000) % 60} * * * *`;
  await run('update', missed, '--cron', once);
  await run('enable', missed);
  const listed = JSON.parse(await run('list', 'trivial', '--json')) as Schedule[];
  assert.equal(
    listed.map(({ id, cron, timeZone, enabled }) => [id, cron, timeZone, enabled]),
    [
      [missed, once, 'Europe/Berlin', true],
      [caught, '* * * * *', 'Europe/Berlin', true],
    ],
  );
  assert.match(await run('list', 'trivial'), /\d \* \* \* \*.*Europe\/Berlin/);

  await stack.kill('SIGTERM');
  writeFileSync(file, String(AHEAD_MS));
  await stack.stored.setClock(AHEAD_MS);
  await stack.restart();
  const after = Date.now() + AHEAD_MS;
  const ran = await until(async () => {
    const one = await read(caught);
    return Date.parse(one.lastOutcome?.scheduledFor ?? '') > after - 120_000 && one;
  });
  assert.is(ran.lastOutcome?.status, 'started');
  const skipped = await until(async () => {
    const one = await read(missed);
    return one.lastOutcome?.reason === 'missed' && one;
  });
  assert.is(skipped.lastInvocationId, undefined);

  const done: Triggered = await ended(stack, String(ran.lastInvocationId));
  const { status, results, trigger } = done;
  assert.is(status, 'COMPLETED');
  assert.equal((results as { params: object }).params, { a: 1 });
  assert.equal([trigger?.type, trigger?.scheduleId], ['schedule', caught]);
  assert.is(Date.parse(trigger?.scheduledFor ?? '') % 60_000, 0);

  await run('disable', caught);
  assert.equal((await read(caught)).nextRunAt, undefined);
  assert.is(await run('delete', missed), missed);
  assert.is((await stack.fetch(`/v1/functions/schedules/${missed}`)).status, 404);
  assert.match(await run('create', 'trivial', '61 * * * *'), /cron.*minute: 61/);
});

journey.run();

function clientOf(stack: Stack) {
  const env = { TABERN_BASE_URL: stack.url, TABERN_API_KEY: stack.apiKey };
  return {
    /** What `tabern schedules` prints, or its error. */
    async run(...argv: string[]): Promise<string> {
      const { code, out, err } = await tabern(['schedules', ...argv], env).ended;
      return code === 0 ? out.trim() : err;
    },
    read: (id: string) => stack.call<Schedule>(`/v1/functions/schedules/${id}`),
  };
}
