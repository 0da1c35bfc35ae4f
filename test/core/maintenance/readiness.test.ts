/** Core's health: each component reports only its current state. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot, HOLDER } from '../boot.ts';

const test = suite('core/maintenance/readiness');

async function faults(app: Booted): Promise<Record<string, string>> {
  const { checks } = await app.clients.health.checkHealth({}, app.asGateway);
  const bad = checks.filter(({ fault }) => fault !== '');
  return Object.fromEntries(bad.map(({ name, fault }) => [name, fault]));
}

test("a runner is present for a lease after its report, with its browser's state", async () => {
  await using app = await boot();
  const renew = (browserFailed?: boolean) => {
    const said = browserFailed === undefined ? {} : { browserFailed };
    return app.clients.runners.renewLeases({ ...HOLDER, leaseIds: [], ...said }, app.asRunner);
  };
  assert.equal(await faults(app), {});
  app.clock.advance(15_001);
  assert.equal(await faults(app), { runner: 'No runner is registered.' });
  await renew(true);
  assert.equal(Object.keys(await faults(app)), ['browser']);
  await renew();
  assert.equal(Object.keys(await faults(app)), ['browser'], 'it said nothing new');
  await renew(false);
  assert.equal(await faults(app), {});
});

test('one runner with a browser is enough; projects and runners may not call it', async () => {
  await using app = await boot();
  const second = { runnerId: 'second', instanceId: 'its' };
  await app.clients.runners.registerRunner(second, app.asRunner);
  const failed = { ...second, leaseIds: [], browserFailed: true };
  await app.clients.runners.renewLeases(failed, app.asRunner);
  assert.equal(await faults(app), {});
  for (const caller of [app.asProject, app.asRunner]) {
    const { reason } = await faultOf(app.clients.health.checkHealth({}, caller));
    assert.is(reason, 'TOKEN_REQUIRED');
  }
});

test.run();
