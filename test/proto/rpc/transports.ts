/** The ways that a typed client reaches its handlers: every test of the client runs on each. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import * as assert from 'uvu/assert';
import {
  BlobServiceService,
  type ReadBlobResponse,
} from '../../../proto/gen/tabern/v1/blobs.pb.ts';
import { InvocationServiceService } from '../../../proto/gen/tabern/v1/invocations.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { type Handlers, local, type RpcClient } from '../../../proto/rpc/local.ts';
import { Channel, MESSAGE_MAX_BYTES, mount, remote } from '../../../proto/rpc/remote.ts';
import { notBuilt, overBytes } from '../../support/wire.ts';

type Blobs = typeof BlobServiceService;
type Invocations = typeof InvocationServiceService;
type Served = { blobs: Handlers<Blobs>; invocations: Handlers<Invocations> };
type Stack = AsyncDisposable & {
  blobs: RpcClient<Blobs>;
  invocations: RpcClient<Invocations>;
  /** The errors that onError received. */
  errors: Fault[];
};
type Transport = (served: Served) => Promise<Stack>;

const inProcess = (verify: boolean): Transport => {
  return async ({ blobs, invocations }) => {
    const errors: Fault[] = [];
    const options = { onError: (error: Fault) => errors.push(error) };
    const through = verify ? overBytes : <D>(_: unknown, handlers: D) => handlers;
    return {
      blobs: local(BlobServiceService, through(BlobServiceService, blobs), options),
      invocations: local(
        InvocationServiceService,
        through(InvocationServiceService, invocations),
        options,
      ),
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
  mount(server, BlobServiceService, blobs, { onError });
  mount(server, InvocationServiceService, invocations, { onError });
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

export const TRANSPORTS: Record<string, Transport> = {
  local: inProcess(false),
  'local through bytes': inProcess(true),
  'gRPC over a unix socket': overSocket,
};

export function serving(some: {
  blobs?: Partial<Handlers<Blobs>>;
  invocations?: Partial<Handlers<Invocations>>;
}): Served {
  return {
    blobs: {
      writeBlob: notBuilt,
      beginUpload: notBuilt,
      signUpload: notBuilt,
      commitUpload: notBuilt,
      abortUpload: notBuilt,
      readBlob: never,
      ...some.blobs,
    },
    invocations: {
      invokeFunction: notBuilt,
      getInvocation: notBuilt,
      cancelInvocation: notBuilt,
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

export async function faultOf(promise: Promise<unknown>): Promise<Fault> {
  const end = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.instance(end, Fault);
  return end as Fault;
}

/** Waits for what a handler will do soon; a bug makes it fail, not hang. */
export function soon(promise: Promise<unknown>): Promise<unknown> {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error('it did not happen')), 60_000).unref();
  });
  return Promise.race([promise, late]);
}
