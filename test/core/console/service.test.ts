/** What the overview tells of the service: facts from runners' reports, and no project's work. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot, HOLDER } from '../boot.ts';

const test = suite('core/console/service');

const BUILT = Date.UTC(2026, 0, 1);
const BROWSER = {
  product: 'HeadlessChrome/156.0.8078.79',
  buildMs: BUILT,
  spares: 2,
  startedAgoMs: 12_000,
};

async function serviceOf({ clients, asProject }: Booted) {
  return (await clients.console.getOverview({}, asProject)).service;
}

test('the newest report of each runner counts, for as long as its lease', async () => {
  await using app = await boot();
  const { clients, clock } = app;
  const first = await serviceOf(app);
  assert.equal([first?.hasRunner, first?.browsers, first?.spares], [true, [], 0]);
  assert.is(first?.browserStartedAt, undefined);
  assert.ok((first?.diskFreeBytes ?? 0) > 0);
  const second = { runnerId: 'second', instanceId: 'its' };
  await clients.runners.registerRunner(second, app.asRunner);
  const renew = (runner: typeof second, browser?: typeof BROWSER, browserFailed?: boolean) =>
    clients.runners.reportRunner(
      {
        ...runner,
        leaseIds: [],
        ...(browser && { browser }),
        ...(browserFailed && { browserFailed }),
      },
      app.asRunner,
    );
  await renew(HOLDER, BROWSER);
  await renew(second, { ...BROWSER, buildMs: 0, spares: 1, startedAgoMs: 3_000 });
  await renew(HOLDER); // reports nothing new
  const both = await serviceOf(app);
  assert.is(both?.spares, 3);
  assert.is(both?.browserStartedAt?.getTime(), clock.now() - 3_000);
  assert.equal(
    both?.browsers.map(({ product, builtAt }) => [product, builtAt]),
    [[BROWSER.product, undefined]],
  );
  clock.advance(10_000);
  await renew(HOLDER, BROWSER, true);
  clock.advance(10_000); // the second has not reported for a lease
  const one = await serviceOf(app);
  assert.equal([one?.spares, one?.browserFailing], [2, true]);
  assert.is(one?.browsers[0]?.builtAt?.getTime(), BUILT);
  clock.advance(60_000);
  assert.equal((await serviceOf(app))?.hasRunner, false);
});

test('a report that is no report is refused, and its field named', async () => {
  await using app = await boot();
  for (const [field, wrong] of [
    ['browser.product', { product: 'x'.repeat(129) }],
    ['browser.buildMs', { buildMs: -1 }],
    ['browser.startedAgoMs', { startedAgoMs: Number.NaN }],
  ] as const) {
    const request = { ...HOLDER, leaseIds: [], browser: { ...BROWSER, ...wrong } };
    const fault = await faultOf(app.clients.runners.reportRunner(request, app.asRunner));
    assert.is(fault.facts['field'], field);
  }
});

test.run();
