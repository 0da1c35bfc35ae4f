/**
 * POST /v1/sessions/start: the first request of Stagehand 3. It creates a session or returns the
 * given one, and reports that no server-side model is available, so Stagehand runs its own code
 * with that session. Format: proto/spec/sessions.md 10.
 */
import type { FileRegistry } from '@bufbuild/protobuf';
import type { RouterMiddleware } from '@koa/router';
import { must } from '../../../proto/common/must.ts';
import type { CreateSessionRequest } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault, invalidField } from '../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import type { State } from '../../http/auth.ts';
import { type Json, readJson } from '../../http/body.ts';
import { checkBody, type JsonObject } from '../../rest/json-validation.ts';
import { messageOf } from '../../rest/messages.ts';
import { answers, json } from '../openapi-parts.ts';

export const START_PATH = '/v1/sessions/start';
const PARAMS = 'browserbaseSessionCreateParams';
const ID = 'browserbaseSessionID';

export function startSession(clients: Clients, registry: FileRegistry): RouterMiddleware<State> {
  const name = 'tabern.v1.CreateSessionRequest';
  const input = must(registry.getMessage(name), name);
  return async (ctx) => {
    const call = must(ctx.state.call, 'a key');
    const body = objectIn(await readJson(ctx.req, ctx.state));
    const given = body[ID];
    if (given !== undefined && given !== null && typeof given !== 'string') {
      throw invalidField(ID, 'must be a string.');
    }
    const sessionId =
      typeof given === 'string' && given !== ''
        ? await running(clients, given, call())
        : await created(body[PARAMS] ?? {}, call());
    ctx.body = { success: true, data: { sessionId, available: false } };
  };

  async function created(params: Json, options: CallOptions): Promise<string> {
    const request = messageOf(input, checkBody(input, objectIn(params, PARAMS), false));
    const wanted = request as unknown as CreateSessionRequest;
    const { session } = await clients.sessions.createSession(wanted, options);
    return must(session, 'session').id;
  }
}

async function running(clients: Clients, id: string, options: CallOptions): Promise<string> {
  const { session } = await clients.sessions.getSession({ id }, options);
  const found = must(session, 'session');
  if (found.endedAt !== undefined) throw new Fault('SESSION_ENDED', 'The session has ended.');
  return found.id;
}

function objectIn(value: Json, field?: string): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  if (field !== undefined) throw invalidField(field, 'must be an object.');
  throw new Fault('INVALID_FIELD', 'Body must be a JSON object.');
}

const BODY = {
  type: 'object',
  properties: {
    [PARAMS]: { type: 'object', description: 'As of POST /v1/sessions.' },
    [ID]: { type: 'string', description: 'An existing session to use instead.' },
  },
};
const DATA = { sessionId: { type: 'string' }, available: { type: 'boolean' } };
const STARTED = {
  type: 'object',
  properties: { success: { type: 'boolean' }, data: { type: 'object', properties: DATA } },
};

/** The OpenAPI description of this route. */
export const START_PATHS = {
  [START_PATH]: {
    post: {
      operationId: 'startSession',
      summary: 'Creates a session for Stagehand 3, or returns a running one.',
      requestBody: { required: true, content: json(BODY, { modelName: 'openai/gpt-5' }) },
      responses: answers('available is false: there is no server-side model.', json(STARTED)),
    },
  },
};
