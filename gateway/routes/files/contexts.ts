/**
 * /v1/contexts/{id}/content: PUT brings what a context holds, GET takes it, as it is stored. The
 * URL is the capability: core signed it, core judges it, and no API key is asked for. Bytes stream
 * both ways; an upload replaces the content once core has proved it, and leaves nothing otherwise.
 */
import type { IncomingMessage } from 'node:http';
import { PassThrough, type Readable } from 'node:stream';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import type { WriteBlobRequest } from '../../../proto/gen/tabern/v1/blobs.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import {
  CONTEXT_MAX_BYTES,
  CONTEXT_TRANSFER_TIMEOUT_MS,
  CONTEXT_VERIFY_TIMEOUT_MS,
  UPLOAD_IDLE_MS,
} from '../../config.ts';
import { goneSignal, type State } from '../../http/auth.ts';
import { begun } from '../../http/blob-stream.ts';
import { tooLarge } from '../../http/body.ts';

const CONTENT_PATH = '/v1/contexts/:id/content';
const CONTENT = /^\/v1\/contexts\/([^/]+)\/content$/;

type Options = { clients: Clients; gatewayToken: string };

/** Whether the request brings content, which has limits of its own. */
export function isContentUpload(method: string, path: string): boolean {
  return method === 'PUT' && CONTENT.test(path);
}

/** Both routes. They stand before the check for keys. */
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
 * The body's bytes. They fail when the client leaves or sends nothing for UPLOAD_IDLE_MS; what is
 * left of them at the end is dropped, so that an answer can still be read.
 */
function openBody(request: IncomingMessage): Disposable & { bytes: Readable } {
  const bytes = new PassThrough();
  const fail = (fault: Fault) => bytes.destroy(fault);
  bytes.on('error', () => undefined); // whoever reads sees it; when nobody does, it is no bug
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
    description: 'As in the URL that was given out; nothing of it can be changed.',
  })),
];
const FAILURE = {
  description: 'See statusCode.',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

/** Their part of the OpenAPI description. */
export const CONTEXTS_PATHS = {
  '/v1/contexts/{id}/content': {
    put: {
      operationId: 'uploadContext',
      summary: 'Replaces the content of a context by an encrypted user-data directory, 512 MiB.',
      description: 'The URL is uploadUrl. No API key is needed. The layout: core/README.md.',
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
      summary: 'The content of a context, encrypted, as it is stored.',
      description: 'The URL is downloadUrl. No API key is needed. The same bytes may be uploaded.',
      security: [],
      parameters: SIGNED,
      responses: { 200: { description: 'The bytes.', content: BINARY }, default: FAILURE },
    },
  },
};
