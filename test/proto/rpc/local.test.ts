/** Unary calls: one suite on every transport. Streams: streams.test.ts. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { InvocationServiceService } from '../../../proto/gen/tabern/v1/invocations.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Call } from '../../../proto/rpc/local.ts';
import { Channel, remote } from '../../../proto/rpc/remote.ts';
import { faultOf, serving, soon, TRANSPORTS } from './transports.ts';

const REQUEST = { functionId: 'f', params: {}, sessionCreateParams: undefined };

for (const [name, open] of Object.entries(TRANSPORTS)) {
  const test = suite(`proto/rpc: ${name}`);

  test('a unary call carries its request, its metadata and its deadline', async () => {
    const calls: Call[] = [];
    await using stack = await open(
      serving({
        invocations: {
          async listInvocationLogs({ id }, call) {
            calls.push(call);
            return { logs: [{ message: id, timestamp: 1.5, level: 'warn' }], total: 1 };
          },
        },
      }),
    );
    const answer = await stack.invocations.listInvocationLogs(
      { id: 'é' },
      { metadata: { 'x-svc-api-key': 'k', 'x-request-id': 'r' }, timeoutMs: 40_000 },
    );
    assert.equal(answer, { logs: [{ message: 'é', timestamp: 1.5, level: 'warn' }], total: 1 });
    assert.is(calls[0]?.metadata['x-svc-api-key'], 'k');
    assert.is(calls[0]?.metadata['x-request-id'], 'r');
    const left = (calls[0]?.deadline ?? 0) - performance.now();
    assert.ok(left > 20_000 && left <= 40_100, `${left} ms left`);
    assert.is(calls[0]?.signal.aborted, false);
  });

  test('Struct and Value preserve any JSON', async () => {
    const params = { n: 1.5, s: 'x', b: true, none: null, list: [1, [null, {}]], o: { deep: [] } };
    await using stack = await open(
      serving({
        invocations: {
          async invokeFunction(request) {
            assert.equal(request.params, params);
            assert.is(request.sessionCreateParams, undefined);
            return { invocation: undefined };
          },
          async getInvocation({ id }) {
            const results = JSON.parse(id);
            const at = new Date(1_777_812_817_151);
            return {
              invocation: {
                id,
                projectId: '',
                functionId: '',
                versionId: '',
                sessionId: '',
                region: '',
                params,
                status: 'RUNNING',
                results,
                createdAt: at,
                updatedAt: at,
                startedAt: undefined,
                endedAt: undefined,
                expiresAt: at,
                cause: undefined,
                trigger: undefined,
              },
            };
          },
        },
      }),
    );
    await stack.invocations.invokeFunction({ ...REQUEST, params });
    for (const value of [null, 0, '', false, [], {}, params]) {
      const { invocation } = await stack.invocations.getInvocation({ id: JSON.stringify(value) });
      assert.equal(invocation?.results, value);
      assert.is(invocation?.status, 'RUNNING');
      assert.is(invocation?.createdAt?.getTime(), 1_777_812_817_151);
      assert.is(invocation?.endedAt, undefined);
    }
  });

  test('a Fault arrives with its reason, message and facts', async () => {
    await using stack = await open(
      serving({
        invocations: {
          async getInvocation() {
            throw new Fault('RESOURCE_NOT_FOUND', 'Función not found.', { type: 'F', id: 'ü' });
          },
        },
      }),
    );
    const fault = await faultOf(stack.invocations.getInvocation({ id: 'x' }));
    assert.is(fault.reason, 'RESOURCE_NOT_FOUND');
    assert.is(fault.message, 'Función not found.');
    assert.equal(fault.facts, { type: 'F', id: 'ü' });
    assert.is(stack.errors.length, 0);
    assert.is((await faultOf(stack.invocations.listInvocations({ versionId: 'v' }))).row.http, 501);
  });

  test('an unknown error reveals nothing and is passed to onError once', async () => {
    await using stack = await open(
      serving({
        invocations: {
          async getInvocation() {
            throw new TypeError('secret at /var/lib/x');
          },
        },
      }),
    );
    const fault = await faultOf(stack.invocations.getInvocation({ id: 'x' }));
    assert.is(fault.reason, 'INTERNAL');
    assert.is(fault.message, 'An unexpected error occurred.');
    assert.not.match(JSON.stringify(fault.facts), /secret/);
    assert.is(stack.errors.length, 1);
    assert.instance(stack.errors[0]?.cause, TypeError);
  });

  test('a deadline ends the call and aborts the handler', async () => {
    const aborted = Promise.withResolvers<void>();
    await using stack = await open(
      serving({
        invocations: {
          getInvocation(_, { signal }) {
            signal.addEventListener('abort', () => aborted.resolve());
            return new Promise(() => undefined);
          },
        },
      }),
    );
    const fault = await faultOf(stack.invocations.getInvocation({ id: 'x' }, { timeoutMs: 100 }));
    assert.is(fault.reason, 'DEADLINE');
    await soon(aborted.promise);
  });

  test('a caller that disconnects ends the call and aborts the handler', async () => {
    const begun = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    await using stack = await open(
      serving({
        invocations: {
          getInvocation(_, { signal }) {
            signal.addEventListener('abort', () => aborted.resolve());
            begun.resolve();
            return new Promise(() => undefined);
          },
        },
      }),
    );
    const leaving = new AbortController();
    const answer = faultOf(
      stack.invocations.getInvocation({ id: 'x' }, { signal: leaving.signal }),
    );
    await soon(begun.promise);
    leaving.abort();
    assert.is((await answer).reason, 'CANCELLED');
    await soon(aborted.promise);
    const late = stack.invocations.getInvocation({ id: 'x' }, { signal: leaving.signal });
    assert.is((await faultOf(late)).reason, 'CANCELLED');
  });

  test('a message of 6 MiB passes', async () => {
    const results = 'x'.repeat(6 * 1024 * 1024);
    await using stack = await open(
      serving({
        invocations: {
          async listInvocationLogs() {
            return { logs: [{ message: results, timestamp: 0 }], total: 1 };
          },
        },
      }),
    );
    const { logs } = await stack.invocations.listInvocationLogs({ id: 'x' });
    assert.is(logs[0]?.message.length, results.length);
  });

  test.run();
}

const gone = suite('proto/rpc/local');

gone('a core that is not there is CORE_UNAVAILABLE', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'tabern-rpc-'));
  using channel = new Channel(`unix:${directory}/none.sock`, credentials.createInsecure());
  const client = remote(InvocationServiceService, channel);
  const fault = await faultOf(client.getInvocation({ id: 'x' }));
  assert.is(fault.reason, 'CORE_UNAVAILABLE');
  assert.not.match(fault.message, /none\.sock/);
  await rm(directory, { recursive: true });
});

gone.run();
