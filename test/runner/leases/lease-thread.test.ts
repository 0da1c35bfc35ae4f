/** The lease thread itself, with a connection of its own to a gRPC server. */
import { join } from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import {
  type ReportRunnerRequest,
  RunnerServiceService,
} from '../../../proto/gen/tabern/v1/runners.pb.ts';
import type { Handlers } from '../../../proto/rpc/local.ts';
import { Channel, mount, remote } from '../../../proto/rpc/remote.ts';
import { openLeaseThread } from '../../../runner/leases/lease-worker.ts';
import { type LeaseThread, openLeases } from '../../../runner/leases/leases.ts';
import { until } from '../../support/poll.ts';
import { tempDirectory } from '../../support/temp.ts';
import { notBuilt } from '../../support/wire.ts';

const test = suite('runner/leases/lease-thread');
const log = openLog({ role: 'test', level: 'silent' });
const runner = { runnerId: 'r', instanceId: 'i' };
const LEASE_MS = 600;

type Answer = (request: ReportRunnerRequest) => string[];

async function open(answer: Answer = ({ leaseIds }) => leaseIds) {
  await using opened = new AsyncDisposableStack();
  const core = `unix:${join(opened.use(tempDirectory()).path, 'core.sock')}`;
  const asked: { leaseIds: string[]; browserFailed: boolean | undefined; token: unknown }[] = [];
  const names = Object.keys(RunnerServiceService);
  const others = Object.fromEntries(names.map((name) => [name, notBuilt]));
  const handlers = {
    ...others,
    async reportRunner(request: ReportRunnerRequest, call: { metadata: Record<string, string> }) {
      const { leaseIds, browserFailed } = request;
      asked.push({ leaseIds, browserFailed, token: call.metadata['authorization'] });
      return { leaseIds: answer(request), readIds: [] };
    },
  } as unknown as Handlers<typeof RunnerServiceService>;
  const server = new Server();
  mount(server, RunnerServiceService, handlers, {
    onError: (error) => log.error({ err: error }),
  });
  await new Promise<void>((resolve, reject) => {
    const bound = (error: Error | null) => (error ? reject(error) : resolve());
    server.bindAsync(core, ServerCredentials.createInsecure(), bound);
  });
  opened.defer(() => server.forceShutdown());
  const failed = Promise.withResolvers<Error>();
  let thread: LeaseThread | undefined;
  const config = { core, token: 'a token', logLevel: 'silent', coreTls: undefined } as const;
  const channel = opened.use(new Channel(core));
  const clients = { runners: remote(RunnerServiceService, channel) };
  const leases = openLeases({
    clients,
    call: { metadata: { authorization: 'Bearer the main thread' } },
    runner,
    openThread(listener) {
      thread = openLeaseThread({ config, runner, leaseMs: LEASE_MS }, listener);
      return thread;
    },
    log,
    isBrowserFailing: () => true,
    onSuperseded: () => assert.unreachable(),
    onFailed: failed.resolve,
    stopped: new AbortController().signal,
  });
  opened.use(leases);
  const kept = opened.move();
  return {
    leases,
    asked,
    failed: failed.promise,
    killThread: () => thread?.send({ type: 'acquired', leaseIds: undefined as never }),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

test('a lease is acknowledged at once, then renewed, with the state of Chrome', async () => {
  await using scene = await open();
  const lease = scene.leases.hold('a');
  scene.leases.acknowledge(['a']);
  await lease.acknowledged;
  assert.not.ok(lease.lost.aborted);
  const report = { leaseIds: ['a'], browserFailed: true };
  const askedBy = (name: string) => scene.asked.filter(({ token }) => token === `Bearer ${name}`);
  await until(() => askedBy('the main thread').length > 0); // a renewal may be answered first
  assert.equal(askedBy('the main thread')[0], { ...report, token: 'Bearer the main thread' });
  const renewals = () => askedBy('a token');
  await until(() => renewals().length > 1);
  assert.equal(renewals()[0], { ...report, token: 'Bearer a token' });
  assert.not.ok(lease.lost.aborted);
});

test('a lease that a renewal does not confirm is lost, with a reason', async () => {
  let isGone = false;
  await using scene = await open(({ leaseIds }) => (isGone ? [] : leaseIds));
  const lease = scene.leases.hold('a');
  scene.leases.acknowledge(['a']);
  await lease.acknowledged;
  isGone = true;
  await until(() => lease.lost.aborted);
  assert.match(String(lease.lost.reason), /core has ended it/);
  assert.is(scene.leases.held(), 0);
});

test('a lease whose work has ended is not renewed any more', async () => {
  await using scene = await open();
  const lease = scene.leases.hold('a');
  scene.leases.acknowledge(['a']);
  await lease.acknowledged;
  lease[Symbol.dispose]();
  await until(() => scene.asked.at(-1)?.leaseIds.length === 0);
});

test('more leases than fit in one call are all acknowledged and renewed', async () => {
  await using scene = await open();
  const ids = Array.from({ length: 2_500 }, (_, n) => `lease ${n}`);
  const held = ids.map((id) => scene.leases.hold(id));
  scene.leases.acknowledge(ids);
  await Promise.all(held.map(({ acknowledged }) => acknowledged));
  const timesOf = (id: string): number =>
    scene.asked.filter(({ leaseIds }) => leaseIds.includes(id)).length;
  await until(() => ['lease 0', 'lease 1000', 'lease 2499'].every((id) => timesOf(id) > 2));
  assert.ok(scene.asked.every(({ leaseIds }) => leaseIds.length <= 1_000));
  assert.not.ok(held.some(({ lost }) => lost.aborted));
});

test('the end of the thread settles unacknowledged leases and loses all', async () => {
  await using scene = await open();
  const held = scene.leases.hold('held');
  scene.leases.acknowledge(['held']);
  await held.acknowledged;
  const waiting = scene.leases.hold('waiting'); // never acknowledged
  scene.killThread();
  assert.match(String(await scene.failed), /the lease thread ended with code 1/);
  await waiting.acknowledged;
  assert.ok(held.lost.aborted && waiting.lost.aborted);
  const late = scene.leases.hold('late');
  await late.acknowledged;
  assert.ok(late.lost.aborted);
});

test.run();
