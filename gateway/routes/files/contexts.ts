/**
 * /v1/contexts/{id}/content: PUT streams the content of a context, GET returns it as it is stored.
 * The signed URL is the credential; core verifies it. An upload replaces the content after core
 * has verified it, and leaves nothing otherwise.
 */
import type { IncomingMessage } from 'node:http';
import { PassThrough, type Readable } from 'node:stream';
import Router from '@koa/router';
import type { Middleware } from 'koa';
import { CONTEXT_MAX_BYTES, CONTEXT_TRANSFER_TIMEOUT_MS } from '../../../proto/common/limits.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { storeBlob } from '../../../proto/uploads/direct.ts';
import { CONTEXT_VERIFY_TIMEOUT_MS, UPLOAD_RETRY_MS } from '../../config.ts';
import { callAsGateway, type State } from '../../http/auth.ts';
import { begun } from '../../http/blob-stream.ts';
import { answers, BINARY, ID, json, SIGNED } from '../openapi-parts.ts';
import { limited, watchUpload } from './upload-stream.ts';

const CONTENT_PATH = '/v1/contexts/:id/content';
const CONTENT = /^\/v1\/contexts\/([^/]+)\/content$/;

type Options = { clients: Clients; gatewayToken: string };

/** Whether the request uploads content, which has its own limits. */
export function isContentUpload(method: string, path: string): boolean {
  return method === 'PUT' && CONTENT.test(path);
}

/** Both routes. They are registered before the API key check. */
export function contextContent({ clients, gatewayToken }: Options): Middleware {
  const router = new Router<State>({ sensitive: true, strict: true });
  router.put(CONTENT_PATH, async (ctx) => {
    const { url } = ctx;
    const call = callAsGateway(ctx, gatewayToken);
    using body = openBody(ctx.req);
    const bytes = limited(body.bytes, CONTEXT_MAX_BYTES);
    const how = { ...call(CONTEXT_TRANSFER_TIMEOUT_MS), retryMs: UPLOAD_RETRY_MS };
    const content = { header: { kind: 'CONTEXT', url }, bytes } as const;
    const { blobId } = await storeBlob(clients.blobs, content, how);
    await clients.contexts.replaceContext({ url, blobId }, call(CONTEXT_VERIFY_TIMEOUT_MS));
    ctx.body = { id: ctx.params['id'] };
  });
  router.get(CONTENT_PATH, async (ctx) => {
    const wanted = { blobId: '', url: ctx.url };
    const options = callAsGateway(ctx, gatewayToken)(CONTEXT_TRANSFER_TIMEOUT_MS);
    const content = await begun(clients.blobs.readBlob(wanted, options));
    ctx.type = 'application/octet-stream';
    ctx.set('cache-control', 'private, no-store');
    ctx.set('content-disposition', `attachment; filename="${ctx.params['id']}.tbcx"`);
    ctx.body = content;
  });
  return router.routes() as unknown as Middleware;
}

/**
 * The bytes of the body. The stream fails when the client disconnects or sends nothing for
 * UPLOAD_IDLE_MS. The rest is discarded at the end, so that the client can still read the answer.
 */
function openBody(request: IncomingMessage): Disposable & { bytes: Readable } {
  const bytes = new PassThrough();
  // the reader receives the error; without a reader it is not a bug
  bytes.on('error', () => undefined);
  const watch = watchUpload(request, (fault) => bytes.destroy(fault));
  request.pipe(bytes);
  return {
    bytes,
    [Symbol.dispose]() {
      watch[Symbol.dispose]();
      request.unpipe(bytes);
      bytes.destroy();
      request.resume();
    },
  };
}

const CONTENT_TYPES = { 'application/octet-stream': BINARY };

/** The OpenAPI description of these routes. */
export const CONTEXTS_PATHS = {
  '/v1/contexts/{id}/content': {
    put: {
      operationId: 'uploadContext',
      summary: 'Replaces the content of a context; 512 MiB at most.',
      description:
        'The URL is uploadUrl. No API key is needed. The body is an encrypted user-data directory.',
      security: [],
      parameters: [ID, ...SIGNED],
      requestBody: { required: true, content: CONTENT_TYPES },
      responses: answers(
        'Replaced.',
        json({ type: 'object', properties: { id: { type: 'string' } } }),
      ),
    },
    get: {
      operationId: 'downloadContext',
      summary: 'Downloads the encrypted content of a context.',
      description: 'The URL is downloadUrl. No API key is needed. The bytes can be uploaded again.',
      security: [],
      parameters: [ID, ...SIGNED],
      responses: answers('The bytes.', CONTENT_TYPES),
    },
  },
};
