/**
 * GET /v1/sessions/{id}/logs: the whole protocol log of a session as one JSON array, read from core
 * in parts as fast as the client reads. proto/spec/sessions.md 7.
 */
import { Readable } from 'node:stream';
import type { FileRegistry } from '@bufbuild/protobuf';
import type { RouterMiddleware } from '@koa/router';
import { must } from '../../../proto/common/must.ts';
import type { SessionLog } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { asFault } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import type { State } from '../../http/auth.ts';
import { readQuery } from '../../rest/transcode.ts';

export const SESSION_LOGS_ROUTE = '/v1/sessions/:id/logs';
/** Deadline of one part, however long the whole takes. */
const STRETCH_TIMEOUT_MS = 30_000;
const REQUEST = 'tabern.v1.ListSessionLogsRequest';

export function listSessionLogs(
  { sessions }: Pick<Clients, 'sessions'>,
  registry: FileRegistry,
): RouterMiddleware<State> {
  const { fields } = must(registry.getMessage(REQUEST), REQUEST);
  const queryFields = fields.filter(({ name }) => name !== 'id');
  return async (ctx) => {
    const call = must(ctx.state.call, 'a key');
    const query = readQuery(new URLSearchParams(ctx.querystring), queryFields);
    const id = String(ctx.params['id']);
    const read = (from?: number) =>
      sessions.listSessionLogs({ id, from }, call(STRETCH_TIMEOUT_MS));
    // a refusal is answered before the body starts
    const first = await read(query['from'] === undefined ? undefined : Number(query['from']));
    ctx.type = 'json';
    const body = Readable.from(arrayOf(first, read), { objectMode: false });
    // a truncated answer must not look complete
    body.on('error', (error) => ctx.res.destroy(asFault(error)));
    ctx.body = body;
  };
}

type Part = { logs: SessionLog[]; next?: number | undefined };
type Read = (from?: number) => Promise<Part>;

async function* arrayOf(first: Part, read: Read): AsyncGenerator<string> {
  let page: Part | undefined = first;
  let before = '[';
  while (page !== undefined) {
    const printed = page.logs.map((log) => JSON.stringify(shownLog(log))).join(',');
    if (printed !== '') {
      yield before + printed;
      before = ',';
    }
    page = page.next === undefined ? undefined : await read(page.next);
  }
  yield before === '[' ? '[]' : ']';
}

/** As in other answers: plain fields always present, absent optional fields omitted. */
export function shownLog(log: SessionLog) {
  const { method, pageId, sessionId, timestamp, frameId, loaderId, request, response } = log;
  return {
    method,
    pageId,
    sessionId,
    request: request && { ...request, params: request.params ?? {} },
    response: response && { ...response, result: response.result ?? {} },
    timestamp,
    frameId,
    loaderId,
  };
}
