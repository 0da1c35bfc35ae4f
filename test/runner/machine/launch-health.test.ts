/** The state of Chrome's starts. Chromes are counted, not started. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import { openMetrics, textOf } from '../../../proto/common/metrics.ts';
import type { Chrome } from '../../../runner/browser/launch.ts';
import type { TakeOptions } from '../../../runner/browser/pool.ts';
import { watchLaunches } from '../../../runner/machine/launch-health.ts';
import { errorOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';

const test = suite('runner/machine/launch-health');

const log = openLog({ role: 'runner', level: 'silent' });

function openFake() {
  const state = { isBroken: false, started: 0, closed: 0 };
  const launch = async (_: TakeOptions): Promise<Chrome> => {
    if (state.isBroken) throw new Error('no Chrome');
    state.started += 1;
    const close = async (): Promise<void> => {
      state.closed += 1;
    };
    return { pipe: {}, close } as unknown as Chrome;
  };
  return { state, launch };
}

test('the newest plain start counts; one with a profile may fail by the profile', async () => {
  const { state, launch } = openFake();
  let failures = 0;
  const onFailure = (): void => {
    failures += 1;
  };
  using launches = watchLaunches({ launch, log, onFailure });
  assert.is(launches.failure, undefined);
  await launches.launch({});
  state.isBroken = true;
  await errorOf(launches.launch({ profileDir: '/a/profile' }));
  assert.is(launches.failure, undefined);
  assert.is(failures, 0);
  await errorOf(launches.launch({ engine: 'chromium' }));
  assert.is(failures, 1);
  assert.is(launches.failure, 'no Chrome');
  state.isBroken = false;
  await launches.launch({ profileDir: '/a/profile' });
  assert.is(launches.failure, undefined);
});

test('while starts fail, a start is retried until one works', async () => {
  const { state, launch } = openFake();
  using launches = watchLaunches({ launch, log, retryMs: 5 });
  state.isBroken = true;
  await errorOf(launches.launch({}));
  assert.is(launches.failure, 'no Chrome');
  state.isBroken = false;
  await until(() => launches.failure === undefined);
  await until(() => state.closed === 1);
  assert.is(state.started, 1);
});

test('starts are counted by outcome', async () => {
  const { state, launch } = openFake();
  const metrics = await openMetrics('runner');
  using launches = watchLaunches({ launch, log, metrics });
  await launches.launch({});
  state.isBroken = true;
  await errorOf(launches.launch({}));
  const text = await textOf([await metrics.samples()]);
  assert.match(text, '\ntabern_browser_launches_total{outcome="ok"} 1\n');
  assert.match(text, '\ntabern_browser_launches_total{outcome="failed"} 1\n');
  assert.match(text, '\ntabern_browser_launch_seconds_count 1\n');
});

test.run();
