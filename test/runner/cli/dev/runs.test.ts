/** The runs that `tabern dev` keeps for its page. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { openDevRuns } from '../../../../runner/cli/dev/runs.ts';

const test = suite('runner/cli/dev/runs');
const STEPS = [{ name: 'handler', startMs: 1, endMs: 2, failed: false }];
const LINE = { message: 'a line', timestamp: 1, level: 'log' };

test('a run has its params and lines while it runs, then its result and steps', () => {
  let now = 1_000;
  const runs = openDevRuns(() => now);
  const record = runs.begin('title', { url: 'x' });
  record.add([LINE]);
  const run = must(runs.get(record.id), 'a run');
  assert.is(run.status, 'RUNNING');
  assert.equal([run.params, run.logs, run.endedAt], [{ url: 'x' }, [LINE], undefined]);
  now = 2_000;
  record.end({ json: '{"a":[1]}' }, STEPS);
  assert.is(run.status, 'COMPLETED');
  assert.equal([run.results, run.steps], [{ a: [1] }, STEPS]);
  assert.is(run.endedAt, new Date(2_000).toISOString());
});

test('a failed run has its cause with the stack, and no result', () => {
  const runs = openDevRuns(() => 0);
  const record = runs.begin('fails', {});
  const stackTrace = ['RangeError: no', '    at index.ts:1'];
  record.end({ failure: { type: 'RangeError', message: 'no', stackTrace } }, []);
  const { status, cause, results } = must(runs.get(record.id), 'a run');
  assert.is(status, 'FAILED');
  const stack = stackTrace.join('\n');
  assert.equal(cause, { code: 'WORKLOAD_ERROR', name: 'RangeError', message: 'no', stack });
  assert.is(results, undefined);
});

test('the newest 50 runs are kept, newest first', () => {
  const runs = openDevRuns(() => 0);
  const ids = Array.from({ length: 51 }, () => runs.begin('a', {}).id);
  assert.equal(
    runs.list().map(({ id }) => id),
    ids.slice(1).reverse(),
  );
  assert.is(runs.get(must(ids[0], 'the first')), undefined);
});

test('lines and results have limits, and the run says what is left out', () => {
  const runs = openDevRuns(() => 0);
  const record = runs.begin('prints', {});
  record.add(Array.from({ length: 2_003 }, () => ({ ...LINE, message: 'x'.repeat(9_000) })));
  record.end({ json: JSON.stringify('x'.repeat(1 << 20)) }, []);
  const run = must(runs.get(record.id), 'a run');
  assert.equal([run.logs.length, run.logsLeftOut], [2_000, 3]);
  assert.is(run.logs[0]?.message.length, 8_000);
  assert.equal([run.results, run.isResultLeftOut], [undefined, true]);
});

test.run();
