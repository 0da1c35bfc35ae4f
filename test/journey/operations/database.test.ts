/**
 * A whole service on PostgreSQL, whose server stops and starts under a live session: requests are
 * answered 503, nothing that was acknowledged is lost, and the session goes on.
 */
import { suite } from 'uvu';
import { equal, is, match, not, ok } from 'uvu/assert';
import { WebSocket } from 'ws';
import { until } from '../../support/poll.ts';
import { hasPostgres, startPostgres } from '../../support/postgres.ts';
import { boot, type Stack } from '../../support/service/stack.ts';

const journey = suite('journey/operations/database');
const LIMIT_MS = 120_000;

type Session = { id: string; status: string; connectUrl: string };

const create = (stack: Stack) =>
  stack.call<Session>('/v1/sessions', { json: { keepAlive: true, timeout: 3_600 } });

async function readiness(stack: Stack): Promise<string> {
  const answer = await stack.fetch('/readyz');
  return `${answer.status} ${await answer.text()}`;
}

/** A client of the session, which sends a command and reads its answer. */
async function connect({ connectUrl }: Session) {
  const client = new WebSocket(connectUrl);
  const waiting = new Map<number, (text: string) => void>();
  client.on('message', (bytes) => {
    const text = String(bytes);
    waiting.get((JSON.parse(text) as { id: number }).id)?.(text);
  });
  await new Promise((resolve) => client.once('open', resolve));
  let count = 0;
  return {
    isOpen: () => client.readyState === WebSocket.OPEN,
    close: () => client.close(),
    version(): Promise<string> {
      count += 1;
      const id = count;
      client.send(JSON.stringify({ id, method: 'Browser.getVersion' }));
      return new Promise((resolve) => waiting.set(id, resolve));
    },
  };
}

/** Creates contexts one after another until `stop`; returns those that were acknowledged. */
function writeContexts(stack: Stack) {
  const acknowledged: string[] = [];
  const refused = new Set<string>();
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      const answer = await stack.fetch('/v1/contexts', { json: {} });
      const body = (await answer.json()) as { id: string; message: string };
      if (answer.status === 201 || answer.status === 200) acknowledged.push(body.id);
      else refused.add(`${answer.status} ${body.message}`);
    }
  })();
  const stop = async (): Promise<void> => {
    isOver = true;
    await running;
  };
  return { acknowledged, refused, stop };
}

if (hasPostgres()) {
  journey('a database that stops under a live session loses nothing, and is named', async () => {
    await using opened = new AsyncDisposableStack();
    const cluster = opened.use(await startPostgres());
    const TABERN_DATABASE_URL = await cluster.createDatabase();
    const stack = opened.use(await boot({ env: { TABERN_DATABASE_URL } }));
    const session = await create(stack);
    await until(async () => {
      const { status } = await stack.call<Session>(`/v1/sessions/${session.id}`);
      return status === 'RUNNING';
    }, LIMIT_MS);
    const client = await connect(session);
    await client.version();
    await until(async () => (await readiness(stack)).startsWith('200'), LIMIT_MS);
    const writes = writeContexts(stack);
    await until(() => writes.acknowledged.length >= 5);

    await cluster.stop();
    const named =
      /^503 .*Not ready: TABERN_DATABASE_URL names a server that does not answer: start it, .*\)\./;
    await until(async () => named.test(await readiness(stack)), LIMIT_MS);
    const refused = await stack.fetch('/v1/sessions', { json: {} });
    is(refused.status, 503);
    ok(Number(refused.headers.get('retry-after')) > 0);
    equal(await refused.json(), {
      statusCode: 503,
      error: 'Service Unavailable',
      message: 'The database is not available. Try again.',
    });
    const [own] = await Promise.all([client.version(), until(() => writes.refused.size > 0)]);
    match(own, /"product"/, 'the session goes on');
    is((await stack.fetch('/healthz')).status, 200, 'the process lives: a restart would not help');

    await cluster.start();
    await until(async () => (await readiness(stack)).startsWith('200'), LIMIT_MS);
    const before = writes.acknowledged.length;
    await until(() => writes.acknowledged.length > before);
    await writes.stop();
    for (const answer of writes.refused) {
      match(answer, /^(503 The database is not available|500 The outcome is unknown)/, answer);
    }
    for (const id of writes.acknowledged) {
      is((await stack.fetch(`/v1/contexts/${id}`)).status, 200, id);
    }
    match(await client.version(), /"product"/);
    const again = await stack.call<Session>(`/v1/sessions/${session.id}`);
    is(again.status, 'RUNNING');
    await stack.call(`/v1/sessions/${session.id}`, { json: { status: 'REQUEST_RELEASE' } });
    await until(async () => {
      const { status } = await stack.call<Session>(`/v1/sessions/${session.id}`);
      return status === 'COMPLETED';
    }, LIMIT_MS);
    not.match(stack.logs(), /postgres:\/\/tabern/);
    client.close();
  });
}

journey.run();
