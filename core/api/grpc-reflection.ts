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
  asked: ServerReflectionRequest['messageRequest'],
): Response {
  switch (asked?.$case) {
    case 'fileByFilename':
      return withImports(registry.getFile(asked.value), asked.value);
    case 'fileContainingSymbol':
      return withImports(fileOfSymbol(registry, asked.value), asked.value);
    case 'fileContainingExtension': {
      const { containingType, extensionNumber } = asked.value;
      const extension = extensionsOf(registry, containingType).find(
        ({ number }) => number === extensionNumber,
      );
      return withImports(extension?.file, `${containingType} ${extensionNumber}`);
    }
    case 'allExtensionNumbersOfType': {
      const numbers = extensionsOf(registry, asked.value).map(({ number }) => number);
      return {
        $case: 'allExtensionNumbersResponse',
        value: { baseTypeName: asked.value, extensionNumber: numbers },
      };
    }
    case 'listServices': {
      const service = [...registry]
        .filter((desc) => desc.kind === 'service')
        .map(({ typeName }) => ({ name: typeName }));
      return { $case: 'listServicesResponse', value: { service } };
    }
    case undefined:
      return notFound('an empty question');
  }
}

function fileOfSymbol(registry: FileRegistry, symbol: string): DescFile | undefined {
  const found = registry.get(symbol);
  if (found) return found.file;
  const dot = symbol.lastIndexOf('.');
  const [scope, name] = [symbol.slice(0, dot), symbol.slice(dot + 1)];
  const parent = registry.get(scope);
  if (parent && membersOf(parent).includes(name)) return parent.file;
  // Enum values are named in the scope that contains the enum.
  const enums = [...registry].filter((desc) => desc.kind === 'enum');
  return enums.find(({ typeName, values }) => {
    const isInScope = typeName.slice(0, typeName.lastIndexOf('.')) === scope;
    return isInScope && values.some((value) => value.name === name);
  })?.file;
}

function membersOf(desc: DescMessage | DescEnum | DescExtension | DescService): string[] {
  switch (desc.kind) {
    case 'service':
      return desc.methods.map(({ name }) => name);
    case 'message':
      return [...desc.fields, ...desc.oneofs].map(({ name }) => name);
    case 'enum':
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
function withImports(file: DescFile | undefined, asked: string): Response {
  if (!file) return notFound(asked);
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

function notFound(asked: string): Response {
  const value = { errorCode: Code.NOT_FOUND, errorMessage: `not found: ${asked}` };
  return { $case: 'errorResponse', value };
}
