/**
 * POST /v1/sessions/{id}/uploads: streams a file to the runner of a running session. The answer is
 * sent when pages can read the file at the path in the answer. Format: proto/spec/sessions.md 9.
 */
import { Readable } from 'node:stream';
import type { RouterMiddleware } from '@koa/router';
import { FILE_TRANSFER_TIMEOUT_MS, SESSION_FILE_MAX_BYTES } from '../../../proto/common/limits.ts';
import { must } from '../../../proto/common/must.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { goneSignal, type State } from '../../http/auth.ts';
import { callSessionServer, locator } from '../../sessions/runner-client.ts';
import type { RunnerTrust } from '../../sessions/runner-trust.ts';
import { answers, fileBody, ID, json } from '../openapi-parts.ts';
import { openForm } from './multipart.ts';
import type { EnterUpload } from './upload-limits.ts';

export const UPLOADS_ROUTE = '/v1/sessions/:id/uploads';
const UPLOADS = /^\/v1\/sessions\/[^/]+\/uploads$/;
/** Directory of uploads for pages. Source: proto/spec/sessions.md 9. */
const PLACE = '/tmp/.uploads';
const FILE = {
  name: 'file',
  maxBytes: SESSION_FILE_MAX_BYTES,
  isNamed: true,
  mayBeEmpty: true,
} as const;

/** Whether the request uploads a file for a session, which has its own limits. */
export function isSessionUpload(method: string, path: string): boolean {
  return method === 'POST' && UPLOADS.test(path);
}

export function uploadFile(
  options: { clients: Clients; gatewayToken: string; runnerTrust?: RunnerTrust | undefined },
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
    if (signingKey === undefined) {
      throw new Fault('BROWSER_FAILED', 'The session has not started yet. Try again.');
    }
    const place = await locate({ $case: 'signingKey', value: signingKey }, signal);
    using form = openForm(ctx.req, { file: FILE });
    const name = await form.fileName;
    await callSessionServer(place, {
      method: 'PUT',
      path: `/uploads/${encodeURIComponent(name)}`,
      body: Readable.from(form.bytes), // an incomplete file is discarded
      signal,
      timeoutMs: FILE_TRANSFER_TIMEOUT_MS,
    });
    ctx.body = { message: `File uploaded to ${PLACE}/${name}` };
  };
}

/** The OpenAPI description of this route. */
export const UPLOADS_PATHS = {
  '/v1/sessions/{id}/uploads': {
    post: {
      operationId: 'uploadFile',
      summary: `Uploads a file for the pages of a session, to ${PLACE}/<its name>.`,
      parameters: [ID],
      requestBody: fileBody('At most 500 MiB. The file name is kept.'),
      responses: answers(
        'The file was uploaded.',
        json({ type: 'object', properties: { message: { type: 'string' } } }),
      ),
    },
  },
};
