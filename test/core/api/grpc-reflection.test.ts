/** Reflection as grpcurl uses it: files by name and by symbol, with all their imports. */
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { credentials } from '@grpc/grpc-js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCoreConfig } from '../../../core/config.ts';
import { startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import {
  ServerReflectionClient,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from '../../../proto/gen/grpc/reflection/v1/reflection.pb.ts';
import { tempDirectory } from '../../support/temp.ts';

const reflection = suite('core/api/grpc-reflection');

type Question = NonNullable<ServerReflectionRequest['messageRequest']>;

async function openAsked() {
  const dir = tempDirectory();
  const env = { TABERN_DATA: join(dir.path, 'data') };
  const core = await startCore(readCoreConfig(env), openLog({ role: 'core', level: 'silent' }));
  const client = new ServerReflectionClient(core.address, credentials.createInsecure());
  const ask = (messageRequest: Question): Promise<ServerReflectionResponse> => {
    const { promise, resolve, reject } = Promise.withResolvers<ServerReflectionResponse>();
    const stream = client.serverReflectionInfo();
    stream.on('data', resolve).on('error', reject);
    stream.write({ host: '', messageRequest });
    return promise.finally(() => stream.end());
  };
  /** The names of the files in an answer; undefined for one that is an error. */
  const files = async (question: Question): Promise<string[] | undefined> => {
    const { messageResponse: told } = await ask(question);
    if (told?.$case !== 'fileDescriptorResponse') return undefined;
    const protos = told.value.fileDescriptorProto;
    return protos.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name);
  };
  return {
    files,
    async [Symbol.asyncDispose]() {
      client.close();
      await core.close();
      await dir[Symbol.asyncDispose]();
    },
  };
}

reflection('a file is found by the name that it is imported by, with its imports', async () => {
  await using app = await openAsked();
  for (const name of [
    'google/api/annotations.proto',
    'google/protobuf/struct.proto',
    'grpc/health/v1/health.proto',
    'tabern/v1/invocations.proto',
  ]) {
    const found = await app.files({ $case: 'fileByFilename', value: name });
    assert.is(found?.[0], name);
  }
  const value = 'tabern/v1/invocations.proto';
  const imports = await app.files({ $case: 'fileByFilename', value });
  for (const name of ['google/api/annotations.proto', 'google/protobuf/struct.proto']) {
    assert.ok(imports?.includes(name), name);
  }
  for (const name of ['tabern/v1/invocations', 'none.proto', '']) {
    assert.is(await app.files({ $case: 'fileByFilename', value: name }), undefined, name);
  }
});

reflection('every file that a response names is found by that name', async () => {
  await using app = await openAsked();
  const services = [
    'tabern.v1.SessionService',
    'tabern.v1.WebhookService',
    'grpc.health.v1.Health',
  ];
  for (const symbol of services) {
    const names = await app.files({ $case: 'fileContainingSymbol', value: symbol });
    for (const value of names ?? []) {
      assert.is((await app.files({ $case: 'fileByFilename', value }))?.[0], value);
    }
    assert.ok(names && names.length > 0, symbol);
  }
});

reflection('a file is found by every kind of symbol in it', async () => {
  await using app = await openAsked();
  for (const symbol of [
    'tabern.v1.InvocationService',
    'tabern.v1.InvocationService.InvokeFunction',
    'tabern.v1.Invocation',
    'tabern.v1.Invocation.results',
    'tabern.v1.Invocation.Status',
    'tabern.v1.Invocation.FAILED',
  ]) {
    const found = await app.files({ $case: 'fileContainingSymbol', value: symbol });
    assert.is(found?.[0], 'tabern/v1/invocations.proto', symbol);
  }
  const option = await app.files({ $case: 'fileContainingSymbol', value: 'google.api.http' });
  assert.is(option?.[0], 'google/api/annotations.proto');
  for (const symbol of ['', 'tabern', 'tabern.v1', 'tabern.v1.Invocation.none', 'a.b.C']) {
    const found = await app.files({ $case: 'fileContainingSymbol', value: symbol });
    assert.is(found, undefined, symbol);
  }
});

reflection.run();
