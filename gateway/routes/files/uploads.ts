/**
 * POST /v1/sessions/{id}/uploads: streams a file to the runner of a running session. The answer is
 * sent when pages can read the file at the path in the answer. Format: proto/spec/sessions.md 9.
 */
import { Readable } from 'node:stream';
import type { RouterMiddleware } from '@koa/router';
import { FILE_TRANSFER_TIMEOUT_MS, SESSION_FILE_MAX_BYTES } from '../../../proto/common/limits.ts';
import { must } from '../../../proto/common/must.ts';
import { Fault, invalidField } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { goneSignal, type State } from '../../http/auth.ts';
import { tooLarge } from '../../http/body.ts';
import { askSessionServer, locator } from '../../sessions/runner-client.ts';
import { FAILURE, fileBody, ID } from '../openapi-parts.ts';
import { chunksOf } from './multipart.ts';
import { type FileForm, openFileForm } from './upload-form.ts';
import type { EnterUpload } from './upload-limits.ts';

export const UPLOADS_ROUTE = '/v1/sessions/:id/uploads';
const UPLOADS = /^\/v1\/sessions\/[^/]+\/uploads$/;
/** Directory of uploads for pages. Source: proto/spec/sessions.md 9. */
const PLACE = '/tmp/.uploads';

/** Whether the request uploads a file for a session, which has its own limits. */
export function isSessionUpload(method: string, path: string): boolean {
  return method === 'POST' && UPLOADS.test(path);
}

export function uploadFile(
  options: { clients: Clients; gatewayToken: string },
  enter: EnterUpload,
): RouterMiddleware<State> {
  const { sessions } = options.clients;
  const locate = locator(options);
  return async (ctx) => {
    const call = must(ctx.state.call, 'a key')();
    const signal = goneSignal(ctx.res);
    using _ = enter(call);
    // Checks first that the session is the project's: the connection to its runner needs no key.
    const { session } = await sessions.getSession({ id: String(ctx.params['id']) }, call);
    const { endedAt, signingKey } = must(session, 'session');
    if (endedAt !== undefined) throw new Fault('SESSION_ENDED', 'The session has ended.');
    if (signingKey === undefined) throw notYet();
    const place = await locate({ $case: 'signingKey', value: signingKey }, signal);
    using form = openFileForm(ctx.req, SESSION_FILE_MAX_BYTES);
    const { name } = await form.file;
    if (name === '') throw invalidField('file', 'must have a name.');
    await askSessionServer(place, {
      method: 'PUT',
      path: `/uploads/${encodeURIComponent(name)}`,
      body: Readable.from(bytesOf(form)),
      signal,
      timeoutMs: FILE_TRANSFER_TIMEOUT_MS,
    });
    ctx.body = { message: `File uploaded to ${PLACE}/${name}` };
  };
}

function notYet(): Fault {
  return new Fault('BROWSER_FAILED', 'The session has not started yet. Try again.');
}

/** Ends without error only when the whole form was valid; an incomplete file is discarded. */
async function* bytesOf(form: FileForm): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of chunksOf((await form.file).bytes)) {
    size += chunk.length;
    if (size > SESSION_FILE_MAX_BYTES) throw tooLarge(SESSION_FILE_MAX_BYTES);
    yield chunk;
  }
  await form.whole;
}

/** The OpenAPI description of this route. */
export const UPLOADS_PATHS = {
  '/v1/sessions/{id}/uploads': {
    post: {
      operationId: 'uploadFile',
      summary: `Uploads a file for the pages of a session, to ${PLACE}/<its name>.`,
      parameters: [ID],
      requestBody: fileBody('At most 500 MiB. The file name is kept.'),
      responses: {
        200: {
          description: 'The file was uploaded.',
          content: {
            'application/json': {
              schema: { type: 'object', properties: { message: { type: 'string' } } },
            },
          },
        },
        default: FAILURE,
      },
    },
  },
};
