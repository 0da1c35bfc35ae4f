/** One suite on every transport: in process, in process through bytes, and gRPC over a unix socket. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Fault } from '../../proto/errors.ts';
import {
  BlobServiceService,
  type ReadBlobResponse,
  type WriteBlobRequest,
} from '../../proto/gen/tabern/v1/blobs.pb.ts';
import { InvocationServiceService } from '../../proto/gen/tabern/v1/invocations.pb.ts';
import {
  type Call,
  Channel,
  type Handlers,
  local,
  MESSAGE_MAX_BYTES,
  mount,
  notBuilt,
  type RpcClient,
  remote,
} from '../../proto/rpc.ts';

type Blobs = typeof BlobServiceService;
type Invocations = typeof InvocationServiceService;
type Served = { blobs: Handlers<Blobs>; invocations: Handlers<Invocations> };
type Stack = AsyncDisposable & {
  blobs: RpcClient<Blobs>;
  invocations: RpcClient<Invocations>;
  /** What was told to onError. */
  errors: Fault[];
};
type Transport = (served: Served) => Promise<Stack>;

const inProcess = (verify: boolean): Transport => {
  return async ({ blobs, invocations }) => {
    const errors: Fault[] = [];
    const options = { verify, onError: (error: Fault) => errors.push(error) };
    return {
      blobs: local(BlobServiceService, blobs, options),
      invocations: local(InvocationServiceService, invocations, options),
      errors,
      async [Symbol.asyncDispose]() {},
    };
  };
};

const overSocket: Transport = async ({ blobs, invocations }) => {
  const directory = await mkdtemp(join(tmpdir(), 'tabern-rpc-'));
  const address = `unix:${join(directory, 'core.sock')}`;
  const errors: Fault[] = [];
  const onError = (error: Fault) => errors.push(error);
  const server = new Server({
    'grpc.max_receive_message_length': MESSAGE_MAX_BYTES,
    'grpc.max_send_message_length': MESSAGE_MAX_BYTES,
  });
  mount(server, BlobServiceService, blobs, onError);
  mount(server, InvocationServiceService, invocations, onError);
  await new Promise<void>((resolve, reject) => {
    const bound = (error: Error | null) => (error ? reject(error) : resolve());
    server.bindAsync(address, ServerCredentials.createInsecure(), bound);
  });
  const channel = new Channel(address, credentials.createInsecure());
  return {
    blobs: remote(BlobServiceService, channel),
    invocations: remote(InvocationServiceService, channel),
    errors,
    async [Symbol.asyncDispose]() {
      channel[Symbol.dispose]();
      server.forceShutdown();
      await rm(directory, { recursive: true });
    },
  };
};

const TRANSPORTS: Record<string, Transport> = {
  local: inProcess(false),
  'local through bytes': inProcess(true),
  'gRPC over a unix socket': overSocket,
};

function serving(some: {
  blobs?: Partial<Handlers<Blobs>>;
  invocations?: Partial<Handlers<Invocations>>;
}): Served {
  return {
    blobs: { writeBlob: notBuilt, readBlob: never, ...some.blobs },
    invocations: {
      invokeFunction: notBuilt,
      getInvocation: notBuilt,
      listInvocations: notBuilt,
      listInvocationLogs: notBuilt,
      ...some.invocations,
    },
  };
}

// biome-ignore lint/correctness/useYield: a stream that fails before its first part.
async function* never(): AsyncGenerator<ReadBlobResponse> {
  throw new Fault('NOT_IMPLEMENTED', 'This operation is not available yet.');
}

async function faultOf(promise: Promise<unknown>): Promise<Fault> {
  const end = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.instance(end, Fault);
  return end as Fault;
}

async function drained(parts: AsyncIterable<ReadBlobResponse>): Promise<string[]> {
  const seen: string[] = [];
  for await (const { chunk } of parts) seen.push(Buffer.from(chunk).toString());
  return seen;
}

/** Waits for what a handler will do soon; a bug makes it fail, not hang. */
function soon(promise: Promise<unknown>): Promise<unknown> {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error('it did not happen')), 5_000).unref();
  });
  return Promise.race([promise, late]);
}

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
      { metadata: { 'x-svc-api-key': 'k', 'x-request-id': 'r' }, timeoutMs: 4_000 },
    );
    assert.equal(answer, { logs: [{ message: 'é', timestamp: 1.5, level: 'warn' }], total: 1 });
    assert.is(calls[0]?.metadata['x-svc-api-key'], 'k');
    assert.is(calls[0]?.metadata['x-request-id'], 'r');
    const left = (calls[0]?.deadline ?? 0) - Date.now();
    assert.ok(left > 2_000 && left <= 4_100, `${left} ms left`);
    assert.is(calls[0]?.signal.aborted, false);
  });

  test('Struct and Value carry any JSON there and back', async () => {
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

  test('an unknown error leaks nothing and is told to onError, once', async () => {
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

  test('a caller that leaves ends the call and aborts the handler', async () => {
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

  test('a server stream arrives in order and ends', async () => {
    await using stack = await open(
      serving({
        blobs: {
          async *readBlob({ blobId }) {
            for (const part of blobId) yield { chunk: Buffer.from(part) };
          },
        },
      }),
    );
    assert.equal(await drained(stack.blobs.readBlob({ blobId: 'abc' })), ['a', 'b', 'c']);
    assert.equal(await drained(stack.blobs.readBlob({ blobId: '' })), []);
  });

  test('a server stream that fails gives its parts, then its Fault', async () => {
    await using stack = await open(
      serving({
        blobs: {
          async *readBlob({ blobId }) {
            yield { chunk: Buffer.from('a') };
            if (blobId === 'bug') throw new Error('a secret');
            throw new Fault('DATA_CORRUPT', 'The blob is damaged.', { blobId });
          },
        },
      }),
    );
    const seen: string[] = [];
    const read = async (blobId: string) => {
      for await (const { chunk } of stack.blobs.readBlob({ blobId })) seen.push(String(chunk));
    };
    const fault = await faultOf(read('x'));
    assert.is(fault.reason, 'DATA_CORRUPT');
    assert.equal(fault.facts, { blobId: 'x' });
    assert.equal(seen, ['a']);
    assert.is((await faultOf(read('bug'))).message, 'An unexpected error occurred.');
    assert.is(stack.errors.length, 1);
  });

  test('a reader that leaves a server stream ends its handler', async () => {
    const ended = Promise.withResolvers<void>();
    await using stack = await open(
      serving({
        blobs: {
          async *readBlob() {
            try {
              for (;;) {
                yield { chunk: Buffer.alloc(1024) };
                await new Promise((resolve) => setImmediate(resolve));
              }
            } finally {
              ended.resolve();
            }
          },
        },
      }),
    );
    for await (const { chunk } of stack.blobs.readBlob({ blobId: 'x' })) {
      assert.is(chunk.length, 1024);
      break;
    }
    await soon(ended.promise);
  });

  test('a server stream over its deadline ends with DEADLINE', async () => {
    await using stack = await open(
      serving({
        blobs: {
          async *readBlob() {
            for (;;) {
              yield { chunk: Buffer.from('a') };
              await new Promise((resolve) => setTimeout(resolve, 20));
            }
          },
        },
      }),
    );
    const fault = await faultOf(drained(stack.blobs.readBlob({ blobId: 'x' }, { timeoutMs: 150 })));
    assert.is(fault.reason, 'DEADLINE');
  });

  test('a reader that does not read holds the handler back', async () => {
    let made = 0;
    await using stack = await open(
      serving({
        blobs: {
          async *readBlob() {
            for (; made < 2_000; made += 1) yield { chunk: Buffer.alloc(64 * 1024) };
          },
        },
      }),
    );
    const parts = stack.blobs.readBlob({ blobId: 'x' })[Symbol.asyncIterator]();
    await parts.next();
    let before = -1;
    while (before !== made) {
      before = made;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.ok(made < 200, `${made} chunks of 64 KiB were made for a reader of one`);
    await parts.return?.();
  });

  test('a client stream arrives in order and is answered', async () => {
    await using stack = await open(
      serving({
        blobs: {
          async writeBlob(parts) {
            const seen: string[] = [];
            for await (const { part } of parts) {
              seen.push(part?.$case === 'chunk' ? String(part.value) : String(part?.value.kind));
            }
            return { blobId: seen.join(), size: seen.length, sha256: '' };
          },
        },
      }),
    );
    const answer = await stack.blobs.writeBlob(parts(['a', 'b']));
    assert.equal(answer, { blobId: 'BUNDLE,a,b', size: 3, sha256: '' });
  });

  test('a client stream that breaks off reaches the caller as what broke it', async () => {
    const begun = Promise.withResolvers<void>();
    const cut = Promise.withResolvers<unknown>();
    await using stack = await open(
      serving({
        blobs: {
          async writeBlob(parts, { signal }) {
            begun.resolve();
            signal.addEventListener('abort', () => cut.resolve('aborted'));
            try {
              for await (const _ of parts);
            } catch (error) {
              cut.resolve(error);
              throw error;
            }
            return { blobId: 'whole', size: 0, sha256: '' };
          },
        },
      }),
    );
    const breaking = async function* () {
      yield* parts(['a']);
      await begun.promise;
      throw new Fault('BODY_TOO_LARGE', 'Too large.');
    };
    const fault = await faultOf(stack.blobs.writeBlob(breaking()));
    assert.is(fault.reason, 'BODY_TOO_LARGE');
    await soon(cut.promise);
  });

  test('a client stream that the handler refuses stops its writer', async () => {
    let made = 0;
    await using stack = await open(
      serving({
        blobs: {
          async writeBlob() {
            throw new Fault('API_KEY_INVALID', 'Invalid API key.');
          },
        },
      }),
    );
    const many = async function* () {
      for (; made < 5_000; made += 1) yield* parts(['x'.repeat(64 * 1024)]);
    };
    assert.is((await faultOf(stack.blobs.writeBlob(many()))).reason, 'API_KEY_INVALID');
    assert.ok(made < 1_000, `${made} parts were made for a call that was refused`);
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

async function* parts(chunks: string[]): AsyncGenerator<WriteBlobRequest> {
  yield { part: { $case: 'header', value: { kind: 'BUNDLE' } } };
  for (const chunk of chunks) yield { part: { $case: 'chunk', value: Buffer.from(chunk) } };
}

const gone = suite('proto/rpc: no server');

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
