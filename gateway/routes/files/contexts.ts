/**
 * /v1/contexts/{id}/content: PUT uploads the content of a context, GET downloads it as it is
 * stored. The signed URL is the credential: core signs and verifies it, and no API key is required.
 * Bytes are streamed in both directions. An upload replaces the content after core has verified it,
 * and leaves nothing otherwise.
 */
import type { IncomingMessage } from 'node:http';
import { PassThrough, type Readable } from 'node:stream';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { CONTEXT_MAX_BYTES, CONTEXT_TRANSFER_TIMEOUT_MS } from '../../../proto/common/limits.ts';
import type { WriteBlobRequest } from '../../../proto/gen/tabern/v1/blobs.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { CONTEXT_VERIFY_TIMEOUT_MS, UPLOAD_IDLE_MS } from '../../config.ts';
import { goneSignal, type State } from '../../http/auth.ts';
import { begun } from '../../http/blob-stream.ts';
import { tooLarge } from '../../http/body.ts';

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
  const optionsOf = (ctx: Context, timeoutMs: number): CallOptions => ({
    metadata: { authorization: `Bearer ${gatewayToken}`, 'x-request-id': ctx.state.requestId },
    signal: goneSignal(ctx.res),
    timeoutMs,
  });
  router.put(CONTENT_PATH, async (ctx) => {
    const options = optionsOf(ctx, CONTEXT_TRANSFER_TIMEOUT_MS);
    using body = openBody(ctx.req);
    const { blobId } = await clients.blobs.writeBlob(blobOf(body.bytes, ctx.url), options);
    const replace = { url: ctx.url, blobId };
    await clients.contexts.replaceContext(replace, {
      ...options,
      timeoutMs: CONTEXT_VERIFY_TIMEOUT_MS,
    });
    ctx.body = { id: ctx.params['id'] };
  });
  router.get(CONTENT_PATH, async (ctx) => {
    const wanted = { blobId: '', url: ctx.url };
    const options = optionsOf(ctx, CONTEXT_TRANSFER_TIMEOUT_MS);
    const content = await begun(clients.blobs.readBlob(wanted, options));
    ctx.type = 'application/octet-stream';
    ctx.set('cache-control', 'private, no-store');
    ctx.set('content-disposition', `attachment; filename="${ctx.params['id']}.tbcx"`);
    ctx.body = content;
  });
  return router.routes() as unknown as Middleware;
}

async function* blobOf(bytes: Readable, url: string): AsyncGenerator<WriteBlobRequest> {
  yield { part: { $case: 'header', value: { kind: 'CONTEXT', url } } };
  let size = 0;
  for await (const chunk of bytes as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > CONTEXT_MAX_BYTES) throw tooLarge(CONTEXT_MAX_BYTES);
    yield { part: { $case: 'chunk', value: chunk } };
  }
}

/**
 * The bytes of the body. The stream fails when the client disconnects or sends nothing for
 * UPLOAD_IDLE_MS. The rest is discarded at the end, so that the client can still read the answer.
 */
function openBody(request: IncomingMessage): Disposable & { bytes: Readable } {
  const bytes = new PassThrough();
  const fail = (fault: Fault) => bytes.destroy(fault);
  // the reader receives the error; without a reader it is not a bug
  bytes.on('error', () => undefined);
  const slow = new Fault('REQUEST_TIMEOUT', 'The upload took too long to arrive.');
  const idle = setTimeout(() => fail(slow), UPLOAD_IDLE_MS);
  request.on('data', () => idle.refresh());
  request.once('end', () => clearTimeout(idle));
  request.once('close', () => {
    if (!request.complete) fail(new Fault('CANCELLED', 'The client left.'));
  });
  request.pipe(bytes);
  return {
    bytes,
    [Symbol.dispose]() {
      clearTimeout(idle);
      request.unpipe(bytes);
      bytes.destroy();
      request.resume();
    },
  };
}

const BINARY = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };
const SIGNED = [
  { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
  ...['expires', 'project', 'key', 'signature'].map((name) => ({
    name,
    in: 'query',
    required: name !== 'key',
    schema: { type: 'string' },
    description: 'Signature parameters of the URL; any change invalidates it.',
  })),
];
const FAILURE = {
  description: 'See statusCode.',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

/** The OpenAPI description of these routes. */
export const CONTEXTS_PATHS = {
  '/v1/contexts/{id}/content': {
    put: {
      operationId: 'uploadContext',
      summary: 'Replaces the content of a context; 512 MiB at most.',
      description:
        'The URL is uploadUrl. No API key is needed. The body is an encrypted user-data directory.',
      security: [],
      parameters: SIGNED,
      requestBody: { required: true, content: BINARY },
      responses: {
        200: {
          description: 'Replaced.',
          content: {
            'application/json': {
              schema: { type: 'object', properties: { id: { type: 'string' } } },
            },
          },
        },
        default: FAILURE,
      },
    },
    get: {
      operationId: 'downloadContext',
      summary: 'Downloads the encrypted content of a context.',
      description: 'The URL is downloadUrl. No API key is needed. The bytes can be uploaded again.',
      security: [],
      parameters: SIGNED,
      responses: { 200: { description: 'The bytes.', content: BINARY }, default: FAILURE },
    },
  },
};
