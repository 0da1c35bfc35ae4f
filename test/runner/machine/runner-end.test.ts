/** Whether a runner accepts work, as GET /readyz answers. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import { openRunnerEnd } from '../../../runner/machine/runner-end.ts';

const test = suite('runner/machine/runner-end');
const log = openLog({ role: 'runner', level: 'silent' });

test('a runner is ready when it leases, and while its browser starts', () => {
  const end = openRunnerEnd(600, log);
  let failure: string | undefined;
  assert.is(end.unready(), 'The runner is starting.');
  end.leases(() => failure);
  assert.is(end.unready(), undefined);
  failure = 'Chrome did not start: spawn ENOENT';
  assert.is(end.unready(), 'No browser starts: Chrome did not start: spawn ENOENT');
  failure = undefined;
  assert.is(end.unready(), undefined);
  end.drain(600, 'a test');
  assert.is(end.unready(), 'The runner drains: it leases no more work.');
});

test.run();
