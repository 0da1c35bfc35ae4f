/** Two cores on one database: a report of a runner to one of them counts for both. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openSealer } from '../../../core/common/sealer.ts';
import { type Core, startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { CreateSessionRequest } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { urlOf } from '../../support/engine.ts';
import { until } from '../../support/poll.ts';
import { hasPostgres } from '../../support/postgres.ts';
import { tempDirectory } from '../../support/temp.ts';
import { configOn, KEY } from '../boot.ts';

const test = suite('core/runners/several-cores');
const TOKENS = ['RUNNER', 'GATEWAY', 'OPERATOR'] as const;
const settings = Object.fromEntries(
  TOKENS.map((role) => [
    `TABERN_${role}_TOKEN`,
    `${role.toLowerCase()}-token-of-several-cores-on-one-database`,
  ]),
);
const as = (role: (typeof TOKENS)[number]) => ({
  metadata: { authorization: `Bearer ${settings[`TABERN_${role}_TOKEN`]}` },
});
const asProject = { metadata: { 'x-svc-api-key': KEY } };
const log = openLog({ role: 'core', level: 'silent' });
const RUNNER = { runnerId: 'r1', instanceId: 'first' };
const FACTS = {
  version: '1.2.3',
  sessions: 5,
  invocations: 4,
  builds: 1,
  labels: [{ name: 'region', value: 'eu' }],
};

/** On one directory, so that both have the same master key. */
async function startCores(opened: AsyncDisposableStack): Promise<[Core, Core]> {
  const temp = opened.use(tempDirectory());
  const env = { ...settings, TABERN_API_KEY: KEY, TABERN_DATABASE_URL: await urlOf(temp.path) };
  const start = async () => opened.use(await startCore(configOn(temp.path, env), log));
  return [await start(), await start()];
}

async function faults({ clients }: Core): Promise<string[]> {
  const { checks } = await clients.health.checkHealth({}, as('GATEWAY'));
  return checks.filter(({ fault }) => fault !== '').map(({ fault }) => fault);
}

const listed = async ({ clients }: Core) =>
  (await clients.operatorConsole.listRunners({}, as('OPERATOR'))).runners;

/** Waits until the other core has the messages that the first one has sent: they stay in order. */
async function messagesReach(from: Core, to: Core): Promise<void> {
  const runner = { runnerId: crypto.randomUUID(), instanceId: 'first' };
  await from.clients.runners.registerRunner(runner, as('RUNNER'));
  await until(async () => (await listed(to)).some(({ id }) => id === runner.runnerId));
}

if (hasPostgres()) {
  test('a runner that reports to one core is present, with its facts, in the other', async () => {
    await using opened = new AsyncDisposableStack();
    const [one, other] = await startCores(opened);
    const report = { ...RUNNER, facts: { ...FACTS, sandbox: 'bwrap' } };
    await one.clients.runners.registerRunner({ ...report, address: 'tls:r1:7448' }, as('RUNNER'));
    assert.equal(await faults(one), []);
    await until(async () => (await faults(other)).length === 0);
    const [runner] = await listed(other);
    assert.equal([runner?.id, runner?.isPresent], ['r1', true]);
    assert.equal(runner?.facts, (await listed(one))[0]?.facts);
    assert.is(runner?.facts?.labels[0]?.value, 'eu');
    const draining = { ...RUNNER, leaseIds: [], draining: true };
    await other.clients.runners.reportRunner(draining, as('RUNNER'));
    const said = 'Each runner drains: no new work starts.';
    for (const core of [one, other]) {
      await until(async () => (await faults(core)).join() === said);
    }
    assert.is((await listed(one))[0]?.facts?.version, '1.2.3', 'what is not reported stays');
  });

  test('facts of any size are known to the other core, labels up to some 4 KiB', async () => {
    await using opened = new AsyncDisposableStack();
    const [one, other] = await startCores(opened);
    for (const [index, filler] of ['\u{fffd}', '"'].entries()) {
      const runner = { runnerId: `r${index}`, instanceId: 'first' };
      const text = (n: number) => String(n).padStart(63, filler);
      for (const count of [14, 20]) {
        const labels = Array.from({ length: count }, (_, n) => ({ name: text(n), value: text(n) }));
        const facts = { ...FACTS, sessions: count, sandbox: 'bwrap', labels };
        await one.clients.runners.registerRunner({ ...runner, facts }, as('RUNNER'));
        const isKnown = ({ id, facts: found }: Awaited<ReturnType<typeof listed>>[number]) =>
          id === runner.runnerId && found?.sessions === count && found.labels.length === 0;
        await until(async () => (await listed(other)).some(isKnown));
      }
    }
    const kept = (await listed(one)).map(({ facts }) => facts?.labels.length);
    assert.equal(kept, [20, 20]);
  });

  test('a log that is read at one core is named to a runner of the other', async () => {
    await using opened = new AsyncDisposableStack();
    const [one, other] = await startCores(opened);
    const asRunner = as('RUNNER');
    await other.clients.runners.registerRunner(RUNNER, asRunner);
    const creating = one.clients.sessions.createSession(
      CreateSessionRequest.fromPartial({}),
      asProject,
    );
    const wanted = { ...RUNNER, kind: 'SESSION', max: 1, waitMs: 60_000 } as const;
    const [work] = (await other.clients.runners.leaseWork(wanted, asRunner)).work;
    const leaseId = work?.leaseId ?? '';
    const leaseIds = [leaseId];
    await other.clients.runners.reportRunner({ ...RUNNER, leaseIds }, asRunner);
    await other.clients.runners.startSession({ leaseId, startMs: 0 }, asRunner);
    const id = (await creating).session?.id ?? '';
    const readIds = async () =>
      (await other.clients.runners.reportRunner({ ...RUNNER, leaseIds: [] }, asRunner)).readIds;
    assert.equal(await readIds(), []);
    await one.clients.sessions.listSessionLogs({ id }, asProject);
    await until(async () => (await readIds()).includes(id));
  });

  test('of two cores with different master keys that start at once, one is refused', async () => {
    await using opened = new AsyncDisposableStack();
    const [first, second] = [opened.use(tempDirectory()), opened.use(tempDirectory())];
    const url = await urlOf(first.path);
    const start = async ({ path }: { path: string }) => {
      mkdirSync(join(path, 'keys'));
      openSealer(join(path, 'keys', 'master.key'), null); // makes the file
      const env = { ...settings, TABERN_API_KEY: KEY, TABERN_DATABASE_URL: url };
      return opened.use(await startCore(configOn(path, env), log));
    };
    const started = await Promise.allSettled([start(first), start(second)]);
    const refused = started.filter((one) => one.status === 'rejected');
    assert.is(refused.length, 1);
    const message = String(refused[0]?.reason);
    assert.ok(message.includes('master.key is not the key of this database'), message);
  });

  test('a link of the console that one core made is valid once, at any core', async () => {
    await using opened = new AsyncDisposableStack();
    const [one, other] = await startCores(opened);
    const wanted = { project: 'default' };
    const { code } = await one.clients.operators.createConsoleCode(wanted, as('OPERATOR'));
    const login = async ({ clients }: Core) => {
      const request = { credential: { $case: 'code', value: code }, client: '::1' } as const;
      const made = clients.consoleLogins.createConsoleLogin(request, as('GATEWAY'));
      return await made.then(
        () => 'logged in',
        ({ reason }: { reason: string }) => reason,
      );
    };
    await messagesReach(one, other);
    assert.is(await login(other), 'logged in');
    assert.is(await login(other), 'API_KEY_INVALID');
    await messagesReach(other, one);
    assert.is(await login(one), 'API_KEY_INVALID');
  });
}

test('a core alone has no other core to tell', async () => {
  await using opened = new AsyncDisposableStack();
  const temp = opened.use(tempDirectory());
  const config = configOn(temp.path, { ...settings, TABERN_API_KEY: KEY });
  const core = opened.use(await startCore(config, log));
  await core.clients.runners.registerRunner(RUNNER, as('RUNNER'));
  assert.equal(await faults(core), []);
});

test.run();
