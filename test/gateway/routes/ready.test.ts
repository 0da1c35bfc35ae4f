import { Ajv } from 'ajv';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HEALTH_PATHS } from '../../../gateway/routes/health.ts';
import type { HealthCheck } from '../../../proto/gen/tabern/v1/health.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { until } from '../../support/poll.ts';
import { ask, assertBody, openGateway } from '../sessions/runner.ts';

const test = suite('gateway/routes/ready');

const NO_KEY = { headers: { 'x-svc-api-key': [] as string[] } };

/** A core with these checks, which may change; counts its calls. `logged`: of the gateway. */
async function openChecked() {
  const logged: string[] = [];
  const write = (line: string) => logged.push((JSON.parse(line) as { msg: string }).msg);
  const state = {
    checks: [{ name: 'core', fault: '', warning: '' }] as HealthCheck[],
    asked: 0,
    isGone: false,
  };
  const health = {
    async checkHealth() {
      state.asked += 1;
      if (state.isGone) throw new Fault('CORE_UNAVAILABLE', 'connect ECONNREFUSED /a/path');
      return { checks: state.checks };
    },
  };
  const log = pino({ level: 'info' }, { write });
  const gateway = await openGateway({ health }, undefined, { log });
  const look = () => ask(gateway.url, 'GET', '/readyz', NO_KEY);
  return { ...gateway, state, look, logged };
}

test('/readyz needs no key and lists the checks; concurrent requests share one call', async () => {
  await using gateway = await openChecked();
  const answers = await Promise.all([gateway.look(), gateway.look(), gateway.look()]);
  assert.is(gateway.state.asked, 1);
  for (const { status, json } of answers) {
    assert.is(status, 200);
    assert.equal(json, { status: 'ready', checks: { core: 'ok' } });
  }
});

test('a failed check or an unreachable core is a 503 with its reason', async () => {
  await using gateway = await openChecked();
  const is = (message: string) =>
    until(async () => {
      const answer = await gateway.look();
      return (answer.json as { message?: string }).message === message && answer;
    });
  gateway.state.checks = [
    { name: 'core', fault: '', warning: '' },
    { name: 'disk', fault: 'The disk is almost full.', warning: '' },
    { name: 'runner', fault: 'No runner is registered.', warning: '' },
  ];
  const said = 'Not ready: The disk is almost full. No runner is registered.';
  const down = await is(said);
  assertBody(down, 'Service Unavailable', said);
  assert.ok(Number(down.headers['retry-after']) > 0);
  gateway.state.isGone = true;
  await is('Not ready: core does not answer.');
  gateway.state.isGone = false;
  gateway.state.checks = [{ name: 'core', fault: '', warning: '' }];
  assert.is(await until(async () => (await gateway.look()).status === 200), true);
});

test('the log has once that core does not answer, and once that it answers again', async () => {
  await using gateway = await openChecked();
  const isAsked = async (isUp: boolean, times: number): Promise<void> => {
    gateway.state.isGone = !isUp;
    const before = gateway.state.asked;
    await until(async () => {
      const { status } = await gateway.look();
      return gateway.state.asked >= before + times && status === (isUp ? 200 : 503);
    });
  };
  await isAsked(true, 1);
  await isAsked(false, 2);
  await isAsked(true, 2);
  await isAsked(false, 1);
  const gone = 'core does not answer';
  const ofCore = gateway.logged.filter((line) => line.startsWith('core '));
  assert.equal(ofCore, [gone, 'core answers again', gone]);
});

test('a warning is degraded, and still 200', async () => {
  await using gateway = await openChecked();
  const warning = 'Writes wait 350 ms for the disk (95th percentile).';
  gateway.state.checks = [
    { name: 'core', fault: '', warning: '' },
    { name: 'disk', fault: '', warning },
  ];
  const { status, json } = await gateway.look();
  assert.is(status, 200);
  assert.equal(json, { status: 'degraded', checks: { core: 'ok', disk: warning } });
});

test('the API description has each answer', () => {
  type Described = { content: { 'application/json': { schema: object } } };
  const { get } = HEALTH_PATHS['/readyz'];
  const { responses } = get as unknown as { responses: Record<string, Described> };
  const isDescribed = new Ajv().compile(responses['200']?.content['application/json'].schema ?? {});
  assert.ok(isDescribed({ status: 'ready', checks: { core: 'ok' } }));
  assert.ok(isDescribed({ status: 'degraded', checks: { disk: 'Writes wait.' } }));
  assert.not.ok(isDescribed({ status: 'other', checks: {} }));
});

test.run();
