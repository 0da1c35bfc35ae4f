/**
 * POST /v1/functions/builds: streams the archive to BlobService while it is received. The blob is
 * committed only after the whole form was valid, so a truncated, oversized or invalid form leaves
 * no blob. Format: proto/spec/functions.md 2.
 */
import type { DescMessage, FileRegistry } from '@bufbuild/protobuf';
import type { RouterMiddleware } from '@koa/router';
import { ARCHIVE_MAX_BYTES } from '../../../proto/common/limits.ts';
import { must } from '../../../proto/common/must.ts';
import { Fault, invalidField } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { storeBlob } from '../../../proto/uploads/direct.ts';
import { METADATA_MAX_BYTES, UPLOAD_RETRY_MS, UPLOAD_TIMEOUT_MS } from '../../config.ts';
import type { State } from '../../http/auth.ts';
import { parseJson } from '../../http/body.ts';
import { checkBody } from '../../rest/json-validation.ts';
import { render } from '../../rest/operations.ts';
import { answers, formBody, json, refer } from '../openapi-parts.ts';
import { openForm } from './multipart.ts';
import type { EnterUpload } from './upload-limits.ts';

export const BUILDS_PATH = '/v1/functions/builds';

/** Handles the upload of a build. */
export function createBuild(
  clients: Clients,
  registry: FileRegistry,
  enter: EnterUpload,
): RouterMiddleware<State> {
  const input = must(registry.getMessage('tabern.v1.CreateBuildRequest'), 'CreateBuildRequest');
  const output = must(registry.getMessage('tabern.v1.CreateBuildResponse'), 'CreateBuildResponse');
  const parts = {
    file: { name: 'archive', maxBytes: ARCHIVE_MAX_BYTES },
    text: { name: 'metadata', read: (text: string) => metadataOf(text, input) },
  };
  return async (ctx) => {
    const call = must(ctx.state.call, 'a key');
    const options = call(UPLOAD_TIMEOUT_MS);
    using _ = enter(options);
    using form = openForm(ctx.req, parts);
    const archive = { header: { kind: 'BUILD_ARCHIVE' }, bytes: form.bytes } as const;
    const how = { ...options, retryMs: UPLOAD_RETRY_MS };
    const { blobId: archiveBlobId } = await storeBlob(clients.blobs, archive, how);
    const request = { ...(await form.text), archiveBlobId };
    ctx.status = 202;
    ctx.body = render(output, await clients.functions.createBuild(request, call()), 'build');
  };
}

/** Only these two fields: clients may not set other fields of the request. */
function metadataOf(text: string, input: DescMessage) {
  if (Buffer.byteLength(text) > METADATA_MAX_BYTES) throw invalidField('metadata', 'is too large.');
  const { entrypoint, projectId } = checkBody(input, metadataJson(text), false);
  if (typeof entrypoint !== 'string') throw invalidField('metadata.entrypoint', 'is required.');
  return { entrypoint, projectId: typeof projectId === 'string' ? projectId : undefined };
}

function metadataJson(text: string) {
  try {
    return parseJson(Buffer.from(text));
  } catch (cause) {
    const message = '`metadata` must be a JSON object.';
    throw new Fault('INVALID_FIELD', message, { field: 'metadata' }, cause);
  }
}

/** The OpenAPI description of this route. */
export const BUILDS_PATHS = {
  [BUILDS_PATH]: {
    post: {
      operationId: 'createBuild',
      summary: 'Uploads an archive and starts a build.',
      requestBody: formBody({
        type: 'object',
        required: ['metadata', 'archive'],
        properties: {
          metadata: { type: 'string', description: 'JSON text: {entrypoint, projectId?}.' },
          archive: { type: 'string', format: 'binary', description: 'gzip tar, 25 MB.' },
        },
      }),
      responses: answers('The build.', json(refer('Build')), 202),
    },
  },
};
