/** grpc.reflection.v1, from the descriptor image that `npm run prepare` generates. */
import { readFileSync } from 'node:fs';
import {
  createFileRegistry,
  type DescEnum,
  type DescExtension,
  type DescFile,
  type DescMessage,
  type DescService,
  type FileRegistry,
  fromBinary,
  toBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { status as Code } from '@grpc/grpc-js';
import type {
  ServerReflectionRequest,
  ServerReflectionResponse,
  ServerReflectionService,
} from '../../proto/gen/grpc/reflection/v1/reflection.pb.ts';
import type { Handlers } from '../../proto/rpc/local.ts';

const IMAGE = new URL('../../proto/gen/image.binpb', import.meta.url);

type Response = NonNullable<ServerReflectionResponse['messageResponse']>;

export function reflectionHandlers(): Handlers<typeof ServerReflectionService> {
  // Read at the first request: most servers never receive one.
  let registry: FileRegistry | undefined;
  return {
    async *serverReflectionInfo(requests) {
      registry ??= createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(IMAGE)));
      for await (const request of requests) {
        const messageResponse = answer(registry, request.messageRequest);
        yield { validHost: request.host, originalRequest: request, messageResponse };
      }
    },
  };
}

function answer(
  registry: FileRegistry,
  requested: ServerReflectionRequest['messageRequest'],
): Response {
  switch (requested?.$case) {
    case 'fileByFilename':
      return withImports(registry.getFile(requested.value), requested.value);
    case 'fileContainingSymbol':
      return withImports(filesOfSymbols(registry).get(requested.value), requested.value);
    case 'fileContainingExtension': {
      const { containingType, extensionNumber } = requested.value;
      const extension = extensionsOf(registry, containingType).find(
        ({ number }) => number === extensionNumber,
      );
      return withImports(extension?.file, `${containingType} ${extensionNumber}`);
    }
    case 'allExtensionNumbersOfType': {
      const numbers = extensionsOf(registry, requested.value).map(({ number }) => number);
      const value = { baseTypeName: requested.value, extensionNumber: numbers };
      return { $case: 'allExtensionNumbersResponse', value };
    }
    case 'listServices': {
      const service = [...registry]
        .filter((desc) => desc.kind === 'service')
        .map(({ typeName }) => ({ name: typeName }));
      return { $case: 'listServicesResponse', value: { service } };
    }
    case undefined:
      return notFound('an empty request');
  }
}

/**
 * The file of each symbol: types, and their members by full name. Values of an enum are named in
 * the scope that contains the enum.
 */
function filesOfSymbols(registry: FileRegistry): Map<string, DescFile> {
  const files = new Map<string, DescFile>();
  for (const desc of registry) {
    const { typeName, file } = desc;
    files.set(typeName, file);
    const scope = desc.kind === 'enum' ? typeName.replace(/\.[^.]*$/, '') : typeName;
    for (const { name } of membersOf(desc)) files.set(`${scope}.${name}`, file);
  }
  return files;
}

function membersOf(desc: DescMessage | DescEnum | DescExtension | DescService) {
  switch (desc.kind) {
    case 'service':
      return desc.methods;
    case 'message':
      return [...desc.fields, ...desc.oneofs];
    case 'enum':
      return desc.values;
    case 'extension':
      return [];
  }
}

function extensionsOf(registry: FileRegistry, type: string) {
  return [...registry]
    .filter((desc) => desc.kind === 'extension')
    .filter(({ extendee }) => extendee.typeName === type);
}

/** The file and all of its imports, each once: a client needs them together. */
function withImports(file: DescFile | undefined, name: string): Response {
  if (!file) return notFound(name);
  const files = new Set<DescFile>();
  const visit = (one: DescFile) => {
    if (files.has(one)) return;
    files.add(one);
    one.dependencies.forEach(visit);
  };
  visit(file);
  const protos = [...files].map(({ proto }) =>
    Buffer.from(toBinary(FileDescriptorProtoSchema, proto)),
  );
  return { $case: 'fileDescriptorResponse', value: { fileDescriptorProto: protos } };
}

function notFound(name: string): Response {
  const value = { errorCode: Code.NOT_FOUND, errorMessage: `not found: ${name}` };
  return { $case: 'errorResponse', value };
}
