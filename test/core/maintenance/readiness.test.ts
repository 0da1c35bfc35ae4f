/** Core's health: each component reports only its current state. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Disk } from '../../../core/files/disk-space.ts';
import { openOwnProblem, type Readiness } from '../../../core/maintenance/readiness.ts';
import { databaseProblem } from '../../../core/store/server.ts';
import { openLog } from '../../../proto/common/log.ts';
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
    return app.clients.runners.reportRunner({ ...HOLDER, leaseIds: [], ...said }, app.asRunner);
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
  await app.clients.runners.reportRunner(failed, app.asRunner);
  assert.equal(await faults(app), {});
  for (const caller of [app.asProject, app.asRunner]) {
    const { reason } = await faultOf(app.clients.health.checkHealth({}, caller));
    assert.is(reason, 'TOKEN_REQUIRED');
  }
});

test('a service all of whose runners drain is not ready, and says why', async () => {
  await using app = await boot();
  const { runners } = app.clients;
  const second = { runnerId: 'second', instanceId: 'its' };
  await runners.registerRunner(second, app.asRunner);
  await runners.reportRunner({ ...HOLDER, leaseIds: [], draining: true }, app.asRunner);
  assert.equal(await faults(app), {}, 'another runner leases work');
  await runners.reportRunner({ ...second, leaseIds: [], draining: true }, app.asRunner);
  assert.equal(await faults(app), { runner: 'Each runner drains: no new work starts.' });
  await runners.registerRunner({ ...second, instanceId: 'next' }, app.asRunner);
  assert.equal(await faults(app), {}, 'its next instance leases work');
});

test('a database that does not answer is a fault in time, with its sentence', async () => {
  const { promise: never } = Promise.withResolvers<number>();
  const parts = {
    store: { lastTime: () => never, syncP95Ms: () => undefined, lineLostMs: () => 0 },
    disk: { isLow: false } as Disk,
    bucket: undefined,
    readiness: { runners: () => ({ present: 0, able: 0, draining: 0 }) } as Readiness,
    now: Date.now,
    wall: Date.now,
    isHeld: () => false,
    log: openLog({ role: 'core', level: 'silent' }),
  };
  const file = openOwnProblem({ ...parts, server: undefined });
  const server = { problemOf: databaseProblem, offMs: () => 0, lineSetting: 'THE_URL' };
  const shared = openOwnProblem({ ...parts, server });
  const late = { ...server, offMs: () => -5_001 };
  const behind = openOwnProblem({ ...parts, server: late });
  const [one, two, three] = await Promise.all([file(), shared(), behind()]);
  assert.is(one, 'The database does not answer.');
  const sentence = 'TABERN_DATABASE_URL names a server that does not answer: start it, or set its';
  assert.is(two, `${sentence} address (ETIMEDOUT).`);
  assert.match(
    three ?? '',
    /This machine’s clock is 5 s behind the database’s: set both by NTP\.$/,
  );
  const without = (lostMs: number) => {
    const store = { ...parts.store, lastTime: async () => 0, lineLostMs: () => lostMs };
    return openOwnProblem({ ...parts, store, server })();
  };
  const lost = 'The connection of THE_URL has been lost for 12 s: start its server, or set its';
  assert.is(await without(12_345), `${lost} address.`);
  assert.is(await without(10_000), undefined, 'it connects again');
});

test.run();
