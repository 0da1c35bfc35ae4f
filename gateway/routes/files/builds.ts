/**
 * POST /v1/functions/builds: streams the archive to BlobService while it is received. The blob is
 * committed only after the whole form was valid, so a truncated, oversized or invalid form leaves
 * no blob. Format: proto/spec/functions.md 2.
 */
import type { FileRegistry } from '@bufbuild/protobuf';
import type { RouterMiddleware } from '@koa/router';
import { ARCHIVE_MAX_BYTES } from '../../../proto/common/limits.ts';
import { must } from '../../../proto/common/must.ts';
import type { WriteBlobRequest } from '../../../proto/gen/tabern/v1/blobs.pb.ts';
import { FunctionServiceService } from '../../../proto/gen/tabern/v1/functions.pb.ts';
import { invalidField } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { UPLOAD_TIMEOUT_MS } from '../../config.ts';
import type { State } from '../../http/auth.ts';
import { tooLarge } from '../../http/body.ts';
import { render } from '../../rest/operations.ts';
import { chunksOf } from './multipart.ts';
import { type Form, openForm } from './upload-form.ts';
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
  return async (ctx) => {
    const options = must(ctx.state.call, 'a key')(UPLOAD_TIMEOUT_MS);
    using _ = enter(options);
    using form = openForm(ctx.req, input);
    const { blobId } = await clients.blobs.writeBlob(blobOf(form), options);
    const { entrypoint, projectId } = await form.metadata;
    const answer = await clients.functions.createBuild(
      { entrypoint, projectId, archiveBlobId: blobId },
      must(ctx.state.call, 'a key')(),
    );
    const bytes = FunctionServiceService.createBuild.responseSerialize(answer);
    ctx.status = 202;
    ctx.body = render(output, bytes, 'build');
  };
}

async function* blobOf(form: Form): AsyncGenerator<WriteBlobRequest> {
  yield { part: { $case: 'header', value: { kind: 'BUILD_ARCHIVE' } } };
  let size = 0;
  for await (const chunk of chunksOf(await form.archive)) {
    size += chunk.length;
    if (size > ARCHIVE_MAX_BYTES) throw tooLarge(ARCHIVE_MAX_BYTES);
    yield { part: { $case: 'chunk', value: chunk } };
  }
  if (size === 0) throw invalidField('archive', 'must not be empty.');
  await form.metadata;
}

/** The OpenAPI description of this route. */
export const BUILDS_PATHS = {
  [BUILDS_PATH]: {
    post: {
      operationId: 'createBuild',
      summary: 'Uploads an archive and starts a build.',
      requestBody: {
        required: true,
        content: {
          'multipart/form-data': {
            schema: {
              type: 'object',
              required: ['metadata', 'archive'],
              properties: {
                metadata: { type: 'string', description: 'JSON text: {entrypoint, projectId?}.' },
                archive: { type: 'string', format: 'binary', description: 'gzip tar, 25 MB.' },
              },
            },
          },
        },
      },
      responses: {
        202: {
          description: 'The build.',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Build' } } },
        },
        default: {
          description: 'See statusCode.',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
    },
  },
};
