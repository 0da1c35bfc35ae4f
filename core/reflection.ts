/**
 * grpc.reflection.v1, from the descriptor image that `npm run prepare` makes beside the generated
 * code.
 */
import { readFileSync } from 'node:fs';
import {
  createFileRegistry,
  type DescFile,
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
} from '../proto/gen/grpc/reflection/v1/reflection.pb.ts';
import type { Handlers } from '../proto/rpc.ts';

const IMAGE = new URL('../proto/gen/image.binpb', import.meta.url);

type Response = NonNullable<ServerReflectionResponse['messageResponse']>;

export function reflectionHandlers(): Handlers<typeof ServerReflectionService> {
  // Read at the first question: most servers are never asked.
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
      return withImports(registry.getFile(asked.value.replace(/\.proto$/, '')), asked.value);
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
  const parent = dot > 0 ? registry.get(symbol.slice(0, dot)) : undefined;
  if (parent?.kind !== 'service') return undefined;
  const isMethod = parent.methods.some(({ name }) => name === symbol.slice(dot + 1));
  return isMethod ? parent.file : undefined;
}

function extensionsOf(registry: FileRegistry, type: string) {
  return [...registry]
    .filter((desc) => desc.kind === 'extension')
    .filter(({ extendee }) => extendee.typeName === type);
}

/** The file and all it imports, each once: a client needs them together. */
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
