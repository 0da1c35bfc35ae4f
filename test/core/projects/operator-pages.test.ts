/** What the operator pages read: sessions of all projects, queues, runners, notices, diagnosis. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openDiagnosis } from '../../../core/maintenance/diagnosis.ts';
import { openNotices } from '../../../core/maintenance/notices.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { faultOf, reasonsOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { type Booted, boot, HOLDER } from '../boot.ts';

const test = suite('core/projects/operator-pages');

const SESSION = {
  browserSettings: undefined,
  proxies: [],
  userMetadata: undefined,
  proxySettings: undefined,
  labels: [],
};
const FACTS = {
  version: '1.2.3',
  sandbox: 'bwrap',
  sessions: 4,
  invocations: 3,
  builds: 2,
  labels: [{ name: 'region', value: 'eu' }],
};
const BROWSER = { product: 'Chrome/1', buildMs: 0, spares: 1, startedAgoMs: 0 };

/** Accepts a session; the call itself would wait for its browser. */
async function begin({ clients, asOperator }: Booted, caller: CallOptions): Promise<void> {
  const count = async () => {
    const { sessions } = await clients.operatorConsole.listAllSessions({}, asOperator);
    return sessions.length;
  };
  const before = await count();
  clients.sessions.createSession(SESSION, caller).catch(() => undefined);
  await until(async () => (await count()) > before);
}

test('sessions of all projects are listed newest first, open ones alone, by cursor', async () => {
  await using app = await boot();
  const { clients, asOperator, asProject } = app;
  await clients.operators.createProject({ name: 'other', limits: {} }, asOperator);
  const made = await clients.operators.createApiKey({ project: 'other', name: '' }, asOperator);
  const asOther = { metadata: { 'x-svc-api-key': made.key } };
  for (const caller of [asProject, asOther, asProject]) {
    await begin(app, caller);
    app.clock.advance(1_000);
  }
  const { sessions } = await clients.operatorConsole.listAllSessions({}, asOperator);
  assert.equal(
    sessions.map(({ projectName, status }) => [projectName, status]),
    [
      ['default', 'PENDING'],
      ['other', 'PENDING'],
      ['default', 'PENDING'],
    ],
  );
  const id = must(sessions[0], 'a session').id;
  await clients.sessions.updateSession({ id, status: 'REQUEST_RELEASE' }, asProject);
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = { isOpen: true, limit: 1, cursor };
    const found = await clients.operatorConsole.listAllSessions(page, asOperator);
    seen.push(...found.sessions.map((one) => one.id));
    cursor = found.nextCursor;
  } while (cursor !== undefined);
  assert.equal(
    seen,
    sessions.slice(1).map((one) => one.id),
  );
  const bad = clients.operatorConsole.listAllSessions({ limit: 201 }, asOperator);
  assert.is((await faultOf(bad)).message, '`limit` must be 1 to 200.');
  const wrong = clients.operatorConsole.listAllSessions({ cursor: 'x' }, asOperator);
  assert.is((await faultOf(wrong)).reason, 'INVALID_CURSOR');
});

test('queues with work are listed with their fairness key', async () => {
  await using app = await boot();
  const { clients, asOperator } = app;
  assert.equal((await clients.operatorConsole.listQueues({}, asOperator)).queues, []);
  await begin(app, app.asProject);
  await begin(app, app.asProject);
  await app.lease('SESSION');
  const { queues } = await clients.operatorConsole.listQueues({}, asOperator);
  const shown = queues.map(({ projectName, kind, waiting, running, vtime }) => {
    return { projectName, kind, waiting, running, vtime };
  });
  assert.equal(shown, [
    { projectName: 'default', kind: 'session', waiting: 1, running: 1, vtime: 1 },
  ]);
  assert.ok(must(queues[0], 'a queue').limit >= 1);
});

test('runners are listed with the facts of their last report', async () => {
  await using app = await boot();
  const { clients, asOperator, asRunner } = app;
  await begin(app, app.asProject);
  await app.lease('SESSION');
  const renew = (facts: typeof FACTS) =>
    clients.runners.reportRunner({ ...HOLDER, leaseIds: [], browserFailed: true, facts }, asRunner);
  await renew(FACTS);
  await clients.runners.reportRunner({ ...HOLDER, leaseIds: [] }, asRunner);
  const list = async () => (await clients.operatorConsole.listRunners({}, asOperator)).runners;
  const [runner] = await list();
  assert.equal(runner?.facts, FACTS, 'a report without facts changes none');
  assert.equal(
    [runner?.id, runner?.isPresent, runner?.isBrowserFailing, runner?.running],
    [HOLDER.runnerId, true, true, 1],
  );
  assert.is(runner?.isDraining, false);
  await clients.runners.reportRunner({ ...HOLDER, leaseIds: [], draining: true }, asRunner);
  assert.is((await list())[0]?.isDraining, true);
  assert.is(runner?.browser, undefined);
  const wrong: [Partial<typeof FACTS>, string][] = [
    [{ version: 'x'.repeat(129) }, '`version` must be 0 to 128 characters.'],
    [
      { labels: [{ name: 'region', value: 'x'.repeat(64) }] },
      '`labels` must be 0 to 63 characters.',
    ],
    [{ labels: labelsOf(21) }, '`labels` must be 0 to 20 labels.'],
  ];
  for (const [facts, message] of wrong) {
    assert.is((await faultOf(renew({ ...FACTS, ...facts }))).message, message);
  }
  const next = { ...HOLDER, instanceId: 'next', facts: { ...FACTS, labels: labelsOf(20) } };
  await clients.runners.registerRunner({ ...next, browser: BROWSER }, asRunner);
  const [registered] = await list();
  assert.equal(registered?.facts?.labels, labelsOf(20), 'a registration reports them, too');
  assert.equal(registered?.browser, BROWSER);
});

function labelsOf(count: number) {
  return Array.from({ length: count }, (_, n) => ({ name: `label-${n}`, value: 'x' }));
}

test('warnings and errors of the log are kept, newest first, without their facts', () => {
  let at = 0;
  const written: unknown[][] = [];
  const plain = Object.assign(openLog({ role: 'core', level: 'silent' }), {
    error: (...given: unknown[]) => void written.push(given),
  });
  const { log, list } = openNotices(plain, () => (at += 1));
  log.info('not kept');
  log.warn({ secret: 'not kept' }, 'slow');
  log.error({ err: new Error('not kept') }, 'failed');
  assert.equal(list(), [
    { number: 2, at: 2, level: 'error', message: 'failed' },
    { number: 1, at: 1, level: 'warn', message: 'slow' },
  ]);
  assert.is(written.length, 1, 'the log has it too');
  for (let n = 0; n < 300; n += 1) log.warn(`${n}`);
  assert.equal([list().length, list()[0]?.message], [200, '299']);
});

test('the diagnosis checks the service and the data, in another process', async () => {
  await using app = await boot();
  const { clients, asOperator } = app;
  const [one, two] = await Promise.all([
    clients.operatorConsole.getDiagnosis({}, { ...asOperator, timeoutMs: 120_000 }),
    clients.operatorConsole.getDiagnosis({}, { ...asOperator, timeoutMs: 120_000 }),
  ]);
  const checks = one.findings.map(({ check }) => check);
  for (const name of ['service: core', 'service: runner', 'fsync', 'database', 'files', 'clock']) {
    assert.ok(checks.includes(name), name);
  }
  assert.equal(
    one.findings.filter(({ level }) => level === 'fail'),
    [],
  );
  const fsync = (found: typeof one) => found.findings.find(({ check }) => check === 'fsync')?.says;
  assert.is(fsync(one), fsync(two), 'both callers share one check');
});

test('a diagnosis that takes too long or outlives core ends, with a sentence', async () => {
  await using app = await boot();
  const closing = new AbortController();
  const stored = { dataDir: app.dir, bucket: undefined, database: undefined };
  const own = { ...stored, databaseCaFile: undefined, closing: closing.signal };
  const late = openDiagnosis({ ...own, timeoutMs: 1 });
  const fault = await faultOf(late());
  assert.is(fault.message, 'The checks took too long. Run `tabern doctor`.');
  const closed = openDiagnosis(own)();
  closing.abort();
  assert.is((await faultOf(closed)).reason, 'DRAINING');
});

test('only the operator reads these', async () => {
  await using app = await boot();
  const { operatorConsole } = app.clients;
  for (const caller of [app.asProject, app.asRunner, app.asGateway]) {
    const calls = [
      operatorConsole.listAllSessions({}, caller),
      operatorConsole.listQueues({}, caller),
      operatorConsole.listRunners({}, caller),
      operatorConsole.listNotices({}, caller),
      operatorConsole.getDiagnosis({}, caller),
    ];
    for (const reason of await reasonsOf(calls)) assert.is(reason, 'TOKEN_REQUIRED');
  }
});

test.run();
