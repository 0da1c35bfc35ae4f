/** What makes the rows of the table of sessions of functions happen, by their beginnings. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { is } from 'uvu/assert';
import { ended, type Invocation, invoke, publish } from '../../../support/clients/functions.ts';
import type { Stack } from '../../../support/service/stack.ts';
import { ENV, newBlobs, type When } from './session-makers.ts';
import { bootInTurn, type Scene } from './slow-makers.ts';
import {
  browsersOf,
  type Connected,
  connected,
  evaluate,
  HUNGRY,
  type Made,
  type Session,
} from './tables.ts';

type Make = (place: Place) => Promise<Made>;
/** `held`: the function's id. */
type Place = { stack: Stack; held: string };

/** Its handler ends when the address has answered. */
const HELD = {
  'package.json': '{"name":"held","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('held', async (ctx, { url }) => (await fetch(url)).text());
`,
};
/** The same with another hash, as a runner keeps what it has read. */
const OTHER = { ...HELD, 'index.ts': HELD['index.ts'].replace("('held'", "('other'") };

export const FUNCTION_MAKERS: Readonly<Record<string, [When, Make]>> = {
  'the handler returned': [
    'soon',
    async (place) => {
      const { answer, ...made } = await running(place);
      answer();
      return made;
    },
  ],
  'it was cancelled': ['soon', async (place) => await cancelled(place, await running(place))],
  'it was cancelled before': ['alone', cancelledEarly],
  'the browser crashed': ['first', crash],
  'the browser used more memory': [
    'soon',
    async (place) => {
      const { answer, ...made } = await running(place);
      await evaluate(made.client, HUNGRY);
      void made.closed.then(answer);
      return made;
    },
  ],
  'its function or its browser': ['alone', withoutBundle],
  'the runner was killed': [
    'alone',
    async (place) => {
      const { answer, ...made } = await running(place);
      process.kill(await place.stack.runnerPid(made.invocation.id), 'SIGKILL');
      void made.closed.then(answer);
      return made;
    },
  ],
};

const SLOW = { timeout: 'it did not end', stop: 'the service was stopped' };

export const FUNCTION_SCENES: readonly Scene[] = [
  {
    rows: [SLOW.timeout, SLOW.stop],
    async play(check) {
      await using stack = await bootInTurn({ env: ENV });
      const place = { stack, held: await publishHeld(stack) };
      const timed = await running(place, { timeout: 60 });
      await check(SLOW.timeout, stack, timed);
      timed.answer();
      const last = await running(place);
      await stack.kill('SIGTERM');
      await stack.restart();
      await check(SLOW.stop, stack, last);
      last.answer();
    },
  },
];

export async function publishHeld(stack: Stack): Promise<string> {
  return (await publish(stack, HELD))['held'] ?? '';
}

type Running = Connected & { invocation: Invocation; answer(): void };

/** An invocation whose handler runs until `answer`, with a client of its session. */
async function running({ stack, held }: Place, sessionCreateParams = {}): Promise<Running> {
  const asked = Promise.withResolvers<void>();
  const answering = Promise.withResolvers<void>();
  const server = createServer(async (_, response) => {
    asked.resolve();
    await answering.promise;
    response.end('whole');
    server.close();
  }).listen(0, '127.0.0.1');
  server.unref(); // a check that fails leaves it
  await once(server, 'listening');
  const params = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
  const path = `/v1/functions/${held}/invoke`;
  const invocation = await stack.call<Invocation>(path, { json: { params, sessionCreateParams } });
  await asked.promise;
  const session = await stack.call<Session>(`/v1/sessions/${invocation.sessionId}`);
  const answer = (): void => answering.resolve();
  return { ...(await connected(session)), invocation, answer };
}

const cancel = (stack: Stack, { id }: Invocation) =>
  stack.call(`/v1/functions/invocations/${id}/cancel`, { method: 'POST' });

async function cancelled({ stack }: Place, { answer, ...made }: Running): Promise<Made> {
  await cancel(stack, made.invocation);
  void made.closed.then(answer);
  return made;
}

/** While each runner stands still. */
async function cancelledEarly({ stack, held }: Place): Promise<Made> {
  const pids = await stack.pidsOf('runner');
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  try {
    const invocation = await invoke(stack, held, { url: 'http://127.0.0.1:1/' });
    await cancel(stack, invocation);
    return { session: { id: invocation.sessionId } };
  } finally {
    for (const pid of pids) process.kill(pid, 'SIGCONT');
  }
}

/** The handler does not need its browser, and ends well. */
async function crash(place: Place): Promise<Made> {
  const { stack } = place;
  const before = new Set(browsersOf(stack));
  const { answer, invocation, ...made } = await running(place);
  for (const pid of browsersOf(stack)) if (!before.has(pid)) process.kill(pid, 'SIGKILL');
  await made.closed;
  answer();
  is((await ended(stack, invocation.id)).status, 'COMPLETED');
  return made;
}

async function withoutBundle({ stack }: Place): Promise<Made> {
  const { blobs } = stack.stored;
  const before = await blobs.names();
  const { other = '' } = await publish(stack, OTHER);
  for (const name of await newBlobs(blobs, before)) await blobs.remove(name);
  const { sessionId: id } = await invoke(stack, other, { url: 'http://127.0.0.1:1/' });
  return { session: { id } };
}
