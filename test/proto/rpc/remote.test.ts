/** What only the client over gRPC meets: a connection that breaks, and one that never was. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  Invocation,
  InvocationServiceService,
} from '../../../proto/gen/tabern/v1/invocations.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Handlers } from '../../../proto/rpc/local.ts';
import { ANSWER_MAX_BYTES, Channel, mount, remote } from '../../../proto/rpc/remote.ts';
import { until } from '../../support/poll.ts';
import { tempDirectory } from '../../support/temp.ts';
import { faultOf, serving, soon } from './transports.ts';

const test = suite('proto/rpc/remote');
const REQUEST = { functionId: 'f', params: {}, sessionCreateParams: undefined };

type Some = Partial<Handlers<typeof InvocationServiceService>>;

/** A server, and a line to it that can be cut. */
async function open(some: Some) {
  const temp = tempDirectory();
  const server = new Server({ 'grpc.max_send_message_length': ANSWER_MAX_BYTES });
  const { invocations } = serving({ invocations: some });
  mount(server, InvocationServiceService, invocations, { onError() {} });
  const behind = join(temp.path, 'behind.sock');
  await new Promise<void>((resolve, reject) => {
    const bound = (error: Error | null) => (error ? reject(error) : resolve());
    server.bindAsync(`unix:${behind}`, ServerCredentials.createInsecure(), bound);
  });
  const sockets = new Set<Socket>();
  const line = createServer((near) => {
    const far = connect(behind);
    for (const socket of [near, far]) socket.on('error', () => {});
    near.pipe(far).pipe(near);
    sockets.add(near).add(far);
  });
  const front = join(temp.path, 'front.sock');
  await once(line.listen(front), 'listening');
  const channel = new Channel(`unix:${front}`, credentials.createInsecure());
  return {
    client: remote(InvocationServiceService, channel),
    server,
    cut() {
      line.close();
      for (const socket of sockets) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      channel[Symbol.dispose]();
      this.cut();
      server.forceShutdown();
      await temp[Symbol.asyncDispose]();
    },
  };
}

test('a call whose metadata cannot be sent rejects; nothing is thrown at the call', async () => {
  await using line = await open({});
  const options = { metadata: { authorization: 'Bearer a token with \u00e9' } };
  const answer = line.client.invokeFunction(REQUEST, options);
  const error = await answer.then(
    () => undefined,
    (failure: Error) => failure,
  );
  assert.match(error?.message ?? '', /metadata/i);
});

/** Forwards a connection to the server, or accepts it and is silent, or closes it. */
type Way = 'on' | 'silent' | 'closed';

/** A server behind a TCP front as a load balancer; `ways`: of its connections, the last for all. */
async function openFront(ways: readonly [Way, ...Way[]]) {
  await using opened = new AsyncDisposableStack();
  const server = new Server();
  opened.defer(() => server.forceShutdown());
  const getInvocation = async () => ({ invocation: Invocation.fromPartial({ id: 'i' }) });
  const { invocations } = serving({ invocations: { getInvocation } });
  mount(server, InvocationServiceService, invocations, { onError() {} });
  const port = await new Promise<number>((resolve, reject) => {
    const bound = (error: Error | null, at: number) => (error ? reject(error) : resolve(at));
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), bound);
  });
  const sockets = new Set<Socket>();
  let count = 0;
  const front = createServer((near) => {
    const way = ways[Math.min(count, ways.length - 1)];
    count += 1;
    sockets.add(near.on('error', () => {}));
    if (way === 'closed') near.destroy();
    if (way !== 'on') return;
    const far = connect(port, '127.0.0.1').on('error', () => {});
    sockets.add(far);
    near.pipe(far).pipe(near);
  });
  await once(front.listen(0, '127.0.0.1'), 'listening');
  opened.defer(() => {
    front.close();
    for (const socket of sockets) socket.destroy();
  });
  const channel = opened.use(new Channel(`127.0.0.1:${(front.address() as AddressInfo).port}`));
  const kept = opened.move();
  return {
    client: remote(InvocationServiceService, channel),
    connections: () => count,
    /** Nothing passes any more over open connections, as with a machine that is gone. */
    freeze() {
      for (const socket of sockets) socket.unpipe().pause();
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Ours: for a busy machine. */
const SILENT_MAX_MS = 60_000;
const LONG = { timeoutMs: 2 * SILENT_MAX_MS };

for (const ways of [
  ['silent', 'on'],
  ['closed', 'silent', 'on'],
] as const) {
  test(`a connection that is never made is given up for another one: ${ways}`, async () => {
    await using front = await openFront([...ways]);
    const isAnswered = () =>
      front.client.getInvocation({ id: 'i' }, LONG).then(
        () => true,
        (fault: Fault) => {
          assert.is(fault.reason, 'CORE_UNAVAILABLE');
          return false;
        },
      );
    await until(isAnswered, SILENT_MAX_MS);
    assert.ok(front.connections() >= ways.length);
  });
}

test('a connection that falls silent is given up for another one', async () => {
  await using front = await openFront(['on']);
  await front.client.getInvocation({ id: 'i' });
  front.freeze();
  const fault = await faultOf(front.client.getInvocation({ id: 'i' }, LONG));
  assert.is(fault.reason, 'CORE_UNAVAILABLE', 'before the deadline of the call');
  await front.client.getInvocation({ id: 'i' });
  assert.is(front.connections(), 2);
});

/** Handlers that begin and never answer. */
function stuck() {
  const begun = Promise.withResolvers<void>();
  const hang = () => {
    begun.resolve();
    return new Promise<never>(() => {});
  };
  return { handlers: { invokeFunction: hang, getInvocation: hang }, begun: begun.promise };
}

test('a result of 6 MiB is read completely, whatever its size on the wire', async () => {
  const results = Array.from({ length: 3 << 20 }, () => 1); // `1,` of JSON: eleven bytes of a Value
  const getInvocation = async () => ({ invocation: Invocation.fromPartial({ id: 'i', results }) });
  await using line = await open({ getInvocation });
  const { invocation } = await line.client.getInvocation({ id: 'i' });
  assert.is((invocation?.results as number[] | undefined)?.length, results.length);
});

for (const how of ['the connection breaks', 'the server ends'] as const) {
  const end = (line: Awaited<ReturnType<typeof open>>) =>
    how === 'the server ends' ? line.server.forceShutdown() : line.cut();

  test(`when ${how} during a call that writes, its outcome is unknown`, async () => {
    const { handlers, begun } = stuck();
    await using line = await open(handlers);
    const answer = faultOf(line.client.invokeFunction(REQUEST));
    await soon(begun);
    end(line);
    const fault = await answer;
    assert.is(fault.reason, 'OUTCOME_UNKNOWN');
    assert.not.match(fault.message, /sock/);
  });

  test(`when ${how} during a call that reads, a retry is safe`, async () => {
    const { handlers, begun } = stuck();
    await using line = await open(handlers);
    const answer = faultOf(line.client.getInvocation({ id: 'x' }));
    await soon(begun);
    end(line);
    assert.is((await answer).reason, 'CORE_UNAVAILABLE');
  });
}

test('a request that was not sent may be retried', async () => {
  await using line = await open({});
  line.cut();
  assert.is((await faultOf(line.client.invokeFunction(REQUEST))).reason, 'CORE_UNAVAILABLE');
});

test('a request that core refused may be retried', async () => {
  await using line = await open({
    async invokeFunction() {
      throw new Fault('CORE_UNAVAILABLE', 'The service is overloaded.');
    },
  });
  const fault = await faultOf(line.client.invokeFunction(REQUEST));
  assert.is(fault.reason, 'CORE_UNAVAILABLE');
  assert.is(fault.message, 'The service is overloaded.');
});

test('a caller that aborts gets CANCELLED', async () => {
  const { handlers, begun } = stuck();
  await using line = await open(handlers);
  const leaving = new AbortController();
  const answer = faultOf(line.client.invokeFunction(REQUEST, { signal: leaving.signal }));
  await soon(begun);
  leaving.abort();
  assert.is((await answer).reason, 'CANCELLED');
});

test.run();
