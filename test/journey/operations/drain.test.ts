/**
 * Drains: a runner, and a whole service, end after their work, lose none of it and take no more. A
 * second signal and the end of the time end sessions at once.
 */
import { once } from 'node:events';
import { join } from 'node:path';
import Browserbase from '@browserbasehq/sdk';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { addedRunner } from '../../support/service/added-runner.ts';
import { type Run, tabern } from '../../support/service/command.ts';
import { isRunning } from '../../support/service/processes.ts';
import { NOTHING_IN_ADVANCE } from '../../support/service/serve.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/operations/drain');
const DRAIN = { TABERN_DRAIN_S: '600' };
const LIMIT_MS = 60_000;

type Session = { id: string; status: string; connectUrl: string };

const read = (stack: Stack, { id }: { id: string }) => stack.call<Session>(`/v1/sessions/${id}`);

const statusIs = (stack: Stack, session: { id: string }, wanted: string) =>
  until(async () => (await read(stack, session)).status === wanted, LIMIT_MS);

async function create(stack: Stack, json: object = {}): Promise<Session> {
  const made = await stack.call<Session>('/v1/sessions', { json: { keepAlive: true, ...json } });
  await statusIs(stack, made, 'RUNNING');
  return made;
}

/** A session in the only place of each of the service's own runners. */
async function fill(stack: Stack): Promise<[Session, ...Session[]]> {
  const runners = await stack.pidsOf('runner');
  const [first, ...others] = await Promise.all(runners.map(() => create(stack)));
  return [must(first, 'a runner'), ...others];
}

const release = (stack: Stack, { id }: Session) =>
  stack.call(`/v1/sessions/${id}`, { json: { status: 'REQUEST_RELEASE' } });

async function connect({ connectUrl }: Session): Promise<WebSocket> {
  const client = new WebSocket(connectUrl);
  await once(client, 'open');
  return client;
}

async function roundTrip(client: WebSocket): Promise<void> {
  client.send('{"id":1,"method":"Browser.getVersion"}');
  const closed = once(client, 'close').then(() => ['closed']);
  const [answer] = await Promise.race([once(client, 'message'), closed]);
  match(String(answer), /"product"/);
}

type Runner = { run: Run; dataDir: string; metrics: string };

/** A runner of its own beside the service's, with a data directory of its own. */
async function startRunner(
  stack: Stack,
  opened: AsyncDisposableStack,
  env: Record<string, string> = DRAIN,
): Promise<Runner> {
  const dataDir = join(opened.use(tempDirectory()).path, 'runner');
  const listen = `127.0.0.1:${await freePort()}`;
  const run = tabern(['runner'], {
    ...NOTHING_IN_ADVANCE,
    ...env,
    ...(await addedRunner(stack.dataDir)),
    TABERN_DATA: dataDir,
    TABERN_METRICS_LISTEN: listen,
    TABERN_SESSIONS_MAX: '8',
  });
  opened.defer(async () => {
    run.child.kill('SIGKILL');
    await run.ended;
  });
  const runner = { run, dataDir, metrics: `http://${listen}` };
  await until(async () => (await probe(runner, 'readyz')) === 200, LIMIT_MS);
  return runner;
}

const probe = ({ metrics }: Runner, path: string) =>
  fetch(`${metrics}/${path}`).then(
    ({ status }) => status,
    () => 0,
  );

const places = async ({ metrics }: Runner) =>
  /tabern_browsers\{state="taken"\} (\d+)/.exec(
    await (await fetch(`${metrics}/metrics`)).text(),
  )?.[1];

journey(
  'a drained runner with five live sessions loses none, and new ones start elsewhere',
  async () => {
    await using opened = new AsyncDisposableStack();
    const listen = `127.0.0.1:${await freePort()}`;
    const env = { TABERN_SESSIONS_MAX: '1', TABERN_METRICS_LISTEN: listen };
    const stack = opened.use(await boot({ env }));
    const own = await fill(stack);
    const runner = await startRunner(stack, opened);
    const context = await stack.call<{ id: string }>('/v1/contexts', { json: {} });
    const persisted = { browserSettings: { context: { id: context.id, persist: true } } };
    const held = [await create(stack, persisted)];
    while (held.length < 5) held.push(await create(stack));
    is(await places(runner), '5');
    const clients = await Promise.all(held.map(connect));
    await Promise.all(clients.map(roundTrip));

    const drain = tabern(['drain', '--wait', '--data', runner.dataDir]);
    await until(async () => (await probe(runner, 'readyz')) === 503);
    is(await probe(runner, 'healthz'), 200, 'alive');
    match(await (await fetch(`${runner.metrics}/readyz`)).text(), /drains: it leases no more work/);
    const metrics = async () => (await fetch(`http://${listen}/metrics`)).text();
    await until(async () => (await metrics()).includes('tabern_runners{state="draining"} 1\n'));
    match(await metrics(), `tabern_runners{state="able"} ${own.length}\n`);
    is((await fetch(`${stack.url}/readyz`)).status, 200, 'other runners lease work');

    const creating = stack.call<Session>('/v1/sessions', { json: { keepAlive: true } });
    const open = () => stack.call<Session[]>('/v1/sessions?status=PENDING');
    await until(async () => (await open()).length === 1);
    is(await places(runner), '5', 'the draining runner has places, and gets nothing');
    await release(stack, own[0]);
    const next = await creating;
    await statusIs(stack, next, 'RUNNING');
    is(await places(runner), '5');

    await Promise.all(clients.map(roundTrip));
    const late = await connect(held[0] as Session);
    await roundTrip(late);
    is(drain.child.exitCode, null, 'it waits');
    await Promise.all(held.map((session) => release(stack, session)));
    await Promise.all(held.map((session) => statusIs(stack, session, 'COMPLETED')));
    const endedAt = performance.now();
    const { code, out } = await drain.ended;
    equal([code, out], [0, 'draining for 600 s at most\nended\n']);
    is((await runner.run.ended).code, 0, runner.run.said.err);
    console.log(`ended ${Math.round(performance.now() - endedAt)} ms after its last session`);
    for (const { id } of held) {
      const logs = await stack.call<object[]>(`/v1/sessions/${id}/logs`);
      ok(JSON.stringify(logs).includes('Browser.getVersion'), 'the log is complete');
    }
    const saved = await stack.fetch(`/v1/contexts/${context.id}/download`);
    is(saved.status, 200, 'the context is saved');
    await release(stack, next);
  },
);

journey('POST /drain has a time of its own; when it is over, sessions end', async () => {
  await using opened = new AsyncDisposableStack();
  const stack = opened.use(await boot({ env: { TABERN_SESSIONS_MAX: '1' } }));
  const own = await fill(stack);
  const runner = await startRunner(stack, opened, {});
  const session = await create(stack);
  const post = (query: string, headers = {}) =>
    fetch(`${runner.metrics}/drain${query}`, { method: 'POST', headers });
  is((await post('')).status, 409, 'TABERN_DRAIN_S is 0: nothing ends by accident');
  is((await post('?seconds=x')).status, 400);
  is((await post('?seconds=1', { origin: 'http://example.org' })).status, 403);
  is((await fetch(`${runner.metrics}/drain`)).status, 405);
  is(await probe(runner, 'readyz'), 200, 'refused requests change nothing');
  is((await post('?seconds=1')).status, 202);
  await statusIs(stack, session, 'ERROR');
  is((await runner.run.ended).code, 0);
  for (const session of own) is((await read(stack, session)).status, 'RUNNING');
  const gone = await tabern(['drain', '--data', runner.dataDir]).ended;
  equal([gone.code, gone.out], [69, '']);
  match(gone.err, /no service and no runner works on/);
});

journey('a draining service starts nothing, and ends with its last session', async () => {
  await using stack = await boot({ env: DRAIN });
  const session = await create(stack);
  const client = await connect(session);
  const browserbase = new Browserbase({ apiKey: stack.apiKey, baseURL: stack.url, maxRetries: 0 });
  const { pid } = stack;
  process.kill(pid, 'SIGTERM');
  await until(async () => (await fetch(`${stack.url}/readyz`)).status === 503);
  is((await fetch(`${stack.url}/healthz`)).status, 200);
  const refused = await browserbase.sessions.create({}).then(
    () => undefined,
    (error: { status: number; headers: Record<string, string>; message: string }) => error,
  );
  is(refused?.status, 503);
  ok(Number(refused?.headers['retry-after']) > 0);
  match(refused?.message ?? '', /drains before it ends/);
  for (const path of ['/v1/fetch', '/v1/screenshot']) {
    is((await stack.fetch(path, { json: { url: 'http://127.0.0.1:1/' } })).status, 503, path);
  }
  await roundTrip(client);
  await roundTrip(await connect(session));
  is((await browserbase.sessions.retrieve(session.id)).status, 'RUNNING');
  is((await tabern(['drain', '--data', stack.dataDir]).ended).out, 'draining already\n');
  await release(stack, session);
  await until(() => !isRunning(pid), LIMIT_MS);
  await stack.restart();
  is((await read(stack, session)).status, 'COMPLETED');
  await release(stack, await create(stack));
});

journey('a second signal ends the sessions of a draining service', async () => {
  await using stack = await boot({ env: DRAIN });
  const session = await create(stack);
  const { pid } = stack;
  process.kill(pid, 'SIGTERM');
  await until(async () => (await fetch(`${stack.url}/readyz`)).status === 503);
  process.kill(pid, 'SIGTERM'); // a repetition of the first one
  const client = await connect(session);
  await roundTrip(client);
  const closed = once(client, 'close');
  const repeated = setInterval(() => isRunning(pid) && process.kill(pid, 'SIGTERM'), 700);
  const [code] = await closed;
  clearInterval(repeated);
  is(code, 1001);
  await until(() => !isRunning(pid), LIMIT_MS);
  await stack.restart();
  is((await read(stack, session)).status, 'ERROR');
});

journey.run();
