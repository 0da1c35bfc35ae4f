/**
 * POST /v1/extensions: streams the zip of a browser extension to BlobService; core then validates
 * it. Format: proto/spec/sessions.md 9.
 */
import type { FileRegistry } from '@bufbuild/protobuf';
import type { RouterMiddleware } from '@koa/router';
import { EXTENSION_MAX_BYTES } from '../../../proto/common/limits.ts';
import { must } from '../../../proto/common/must.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { storeBlob } from '../../../proto/uploads/direct.ts';
import { EXTENSION_CHECK_TIMEOUT_MS, UPLOAD_RETRY_MS, UPLOAD_TIMEOUT_MS } from '../../config.ts';
import type { State } from '../../http/auth.ts';
import { render } from '../../rest/operations.ts';
import { answers, fileBody, json, refer } from '../openapi-parts.ts';
import { openForm } from './multipart.ts';
import type { EnterUpload } from './upload-limits.ts';

export const EXTENSIONS_PATH = '/v1/extensions';
const FILE = { name: 'file', maxBytes: EXTENSION_MAX_BYTES, isNamed: true } as const;

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
    using form = openForm(ctx.req, { file: FILE });
    const zip = { header: { kind: 'EXTENSION' }, bytes: form.bytes } as const;
    // the time limit of the upload includes the wait for the file's part
    const stored = storeBlob(clients.blobs, zip, { ...options, retryMs: UPLOAD_RETRY_MS });
    const [fileName, { blobId }] = await Promise.all([form.fileName, stored]);
    const wanted = { fileName, blobId };
    const made = clients.extensions.createExtension(wanted, call(EXTENSION_CHECK_TIMEOUT_MS));
    ctx.body = render(output, await made, 'extension');
  };
}

/** The OpenAPI description of this route. */
export const EXTENSIONS_PATHS = {
  [EXTENSIONS_PATH]: {
    post: {
      operationId: 'createExtension',
      summary: 'Uploads a browser extension, which sessions load by its id.',
      requestBody: fileBody('A zip of at most 100 MiB with manifest.json at its root.'),
      responses: answers('The extension.', json(refer('Extension'))),
    },
  },
};
