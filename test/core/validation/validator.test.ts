/** Checks of tenants' params by tenants' schemas: failures affect their project only. */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openValidator } from '../../../core/validation/validator.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';

const test = suite('core/validation/validator');

let versions = 0;
const versionOf = (projectId: string, schema: object | null) => ({
  id: `v${versions++}`,
  projectId,
  paramsSchema: schema && JSON.stringify(schema),
});
const PLAIN = { properties: { n: { type: 'integer', default: 3 } }, required: ['n'] };
/** Doubles its time with each letter. */
const HOSTILE = { properties: { a: { type: 'string', pattern: '^(a+)+$' } } };
const ENDLESS = { a: `${'a'.repeat(60)}!` };

test('params receive defaults; without a schema they stay unchanged', async () => {
  await using checks = openValidator();
  assert.equal(await checks.params(versionOf('p', PLAIN), { m: 1 }), { m: 1, n: 3 });
  const params = { any: [1] };
  assert.is(await checks.params(versionOf('p', null), params), params);
});

test('the error for invalid params names the field', async () => {
  await using checks = openValidator();
  const fault = await faultOf(checks.params(versionOf('p', PLAIN), { n: 'x' }));
  assert.is(fault.reason, 'INVALID_FIELD');
  assert.is(fault.facts['field'], 'params/n');
});

/** Of checks that must end in time, on a machine that is busy. */
const LONG_MS = 2_000;

test('an endless pattern is ended, and the main thread is not blocked', async () => {
  await using checks = openValidator({ checkMaxMs: LONG_MS });
  const hostile = versionOf('bad', HOSTILE);
  const ended = faultOf(checks.params(hostile, ENDLESS));
  let turns = 0;
  const other = checks.params(versionOf('good', PLAIN), {});
  const ticking = setInterval(() => (turns += 1), 5);
  const fault = await ended;
  clearInterval(ticking);
  assert.is(fault.reason, 'INVALID_FIELD');
  assert.match(fault.message, /too long/);
  assert.ok(turns > 5, `${turns} turns of the loop in two seconds`);
  assert.equal(await other, { n: 3 }, 'the neighbour is served by the next thread');
});

/** How many letters keep HOSTILE's pattern busy for about so long, alone on this machine. */
function lettersTaking(cpuMs: number): number {
  for (let letters = 16; ; letters += 1) {
    const before = process.threadCpuUsage();
    /^(a+)+$/.test(`${'a'.repeat(letters)}!`);
    if (process.threadCpuUsage(before).user / 1_000 > cpuMs / 2) return letters + 1;
  }
}

/** Processes that leave others a small share of each core. */
function busyChildren(count: number): Disposable {
  const children = Array.from({ length: count }, () =>
    spawn(process.execPath, ['-e', 'for(;;);'], { stdio: 'ignore' }),
  );
  return { [Symbol.dispose]: () => children.forEach((child) => void child.kill('SIGKILL')) };
}

test('the limit is CPU time: a busy machine refuses no valid params', async () => {
  await using checks = openValidator({ checkMaxMs: LONG_MS });
  const slow = versionOf('p', HOSTILE);
  assert.equal(await checks.params(slow, { a: 'a' }), { a: 'a' }); // the thread runs
  const letters = lettersTaking(LONG_MS / 5);
  using _load = busyChildren(6 * availableParallelism());
  const fault = await faultOf(checks.params(slow, { a: `${'a'.repeat(letters)}!` }));
  assert.match(fault.message, /must match pattern/);
});

test('a project whose check was ended pauses, and no other project does', async () => {
  await using checks = openValidator({ checkMaxMs: LONG_MS, pauseMs: 600_000 });
  const hostile = versionOf('bad', HOSTILE);
  const all = [1, 2, 3].map(() => faultOf(checks.params(hostile, ENDLESS)));
  // the second and the third are not tried: each would wait longer than this file may
  for (const fault of await Promise.all(all)) assert.match(fault.message, /too long/);
  assert.match((await faultOf(checks.params(hostile, { a: 'a' }))).message, /too long/);
  assert.equal(await checks.params(versionOf('good', PLAIN), {}), { n: 3 });
});

test('checks of a project run again after its pause', async () => {
  await using checks = openValidator({ checkMaxMs: 100, pauseMs: 1 });
  const hostile = versionOf('bad', HOSTILE);
  await faultOf(checks.params(hostile, ENDLESS));
  const heard = () => checks.params(hostile, { a: 'aa' }).catch(() => undefined);
  assert.equal(await until(heard), { a: 'aa' });
});

test('projects use a free thread in turn', async () => {
  await using checks = openValidator({ checkMaxMs: 60_000 });
  const busy = faultOf(checks.params(versionOf('bad', HOSTILE), ENDLESS));
  const [a, b] = [versionOf('a', PLAIN), versionOf('b', PLAIN)];
  const order: string[] = [];
  const ask = (version: typeof a) =>
    checks.params(version, {}).then(() => order.push(version.projectId));
  await Promise.all([ask(a), ask(a), ask(a), ask(a), ask(b)]);
  // a's first check started at once, and its second waited before b's
  assert.ok(order.indexOf('b') <= 2, order.join());
  await checks[Symbol.asyncDispose]();
  await busy;
});

test('two projects run their checks at the same time, on a thread each', async () => {
  await using checks = openValidator({ checkMaxMs: 10_000 });
  let isOver = false;
  const hostile = faultOf(checks.params(versionOf('bad', HOSTILE), ENDLESS)).then(() => {
    isOver = true;
  });
  const more = faultOf(checks.params(versionOf('bad', HOSTILE), ENDLESS));
  for (let check = 0; check < 20; check += 1) {
    assert.equal(await checks.params(versionOf('good', PLAIN), {}), { n: 3 });
  }
  assert.is(isOver, false, 'the checks of one project waited for the check of another');
  await checks[Symbol.asyncDispose]();
  await Promise.all([hostile, more]);
});

test('a schema that refers to itself endlessly is INVALID_FIELD', async () => {
  await using checks = openValidator();
  const endless = { $defs: { a: { allOf: [{ $ref: '#/$defs/a' }] } }, $ref: '#/$defs/a' };
  const fault = await faultOf(checks.params(versionOf('p', endless), {}));
  assert.is(fault.reason, 'INVALID_FIELD');
});

test('manifests are checked in the thread, too', async () => {
  await using checks = openValidator();
  const found = [{ name: 'f', sessionConfigJson: '', paramsSchemaJson: '{"type":"nothing"}' }];
  const checked = await checks.manifests('p', found);
  assert.is(checked.kind === 'bad' && checked.cause.code, 'BUILD_ERROR');
  assert.is((await checks.manifests('p', [])).kind, 'bad');
});

test('closing the validator ends waiting calls', async () => {
  const checks = openValidator();
  const waiting = faultOf(checks.params(versionOf('p', HOSTILE), ENDLESS));
  await checks[Symbol.asyncDispose]();
  assert.is((await waiting).reason, 'DRAINING');
  assert.is((await faultOf(checks.params(versionOf('p', PLAIN), {}))).reason, 'DRAINING');
});

test.run();
