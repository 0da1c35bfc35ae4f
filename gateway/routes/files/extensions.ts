/**
 * POST /v1/extensions: streams the zip of a browser extension to BlobService; core then validates
 * it. Format: proto/spec/sessions.md 9.
 */
import type { FileRegistry } from '@bufbuild/protobuf';
import type { RouterMiddleware } from '@koa/router';
import { EXTENSION_MAX_BYTES } from '../../../proto/common/limits.ts';
import { must } from '../../../proto/common/must.ts';
import type { WriteBlobRequest } from '../../../proto/gen/tabern/v1/blobs.pb.ts';
import { ExtensionServiceService } from '../../../proto/gen/tabern/v1/extensions.pb.ts';
import { invalidField } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { EXTENSION_CHECK_TIMEOUT_MS, UPLOAD_TIMEOUT_MS } from '../../config.ts';
import type { State } from '../../http/auth.ts';
import { tooLarge } from '../../http/body.ts';
import { render } from '../../rest/operations.ts';
import { FAILURE, fileBody } from '../openapi-parts.ts';
import { chunksOf } from './multipart.ts';
import { type FileForm, openFileForm } from './upload-form.ts';
import type { EnterUpload } from './upload-limits.ts';

export const EXTENSIONS_PATH = '/v1/extensions';

export function createExtension(
  clients: Clients,
  registry: FileRegistry,
  enter: EnterUpload,
): RouterMiddleware<State> {
  const name = 'tabern.v1.CreateExtensionResponse';
  const output = must(registry.getMessage(name), name);
  return async (ctx) => {
    const call = must(ctx.state.call, 'a key');
    const options = call(UPLOAD_TIMEOUT_MS);
    using _ = enter(options);
    using form = openFileForm(ctx.req, EXTENSION_MAX_BYTES);
    const { blobId } = await clients.blobs.writeBlob(blobOf(form), options);
    const { name: fileName } = await form.file;
    const wanted = { fileName, blobId };
    const made = clients.extensions.createExtension(wanted, call(EXTENSION_CHECK_TIMEOUT_MS));
    const bytes = ExtensionServiceService.createExtension.responseSerialize(await made);
    ctx.body = render(output, bytes, 'extension');
  };
}

async function* blobOf(form: FileForm): AsyncGenerator<WriteBlobRequest> {
  const { name, bytes } = await form.file;
  if (name === '') throw invalidField('file', 'must have a name.');
  yield { part: { $case: 'header', value: { kind: 'EXTENSION' } } };
  let size = 0;
  for await (const chunk of chunksOf(bytes)) {
    size += chunk.length;
    if (size > EXTENSION_MAX_BYTES) throw tooLarge(EXTENSION_MAX_BYTES);
    yield { part: { $case: 'chunk', value: chunk } };
  }
  if (size === 0) throw invalidField('file', 'must not be empty.');
  await form.whole;
}

/** The OpenAPI description of this route. */
export const EXTENSIONS_PATHS = {
  [EXTENSIONS_PATH]: {
    post: {
      operationId: 'createExtension',
      summary: 'Uploads a browser extension, which sessions load by its id.',
      requestBody: fileBody('A zip of at most 100 MiB with manifest.json at its root.'),
      responses: {
        200: {
          description: 'The extension.',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Extension' } } },
        },
        default: FAILURE,
      },
    },
  },
};
