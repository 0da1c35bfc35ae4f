/**
 * GET /console/api/v1/sessions/{id}/logs?from=N and GET /console/api/v1/shared/logs?from=N: one
 * part of a protocol log, about 1 MiB, without the unparsed messages. The page keeps what it has
 * read and goes on from `end`, also when `isEnd` said that there was no more.
 */
import type Router from '@koa/router';
import type { Context } from 'koa';
import { must } from '../../../proto/common/must.ts';
import type { SessionLog } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { invalidField } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { SHARED, type State } from '../../http/auth.ts';
import { shownLog } from '../sessions/logs.ts';

export const LOGS_ROUTE = '/console/api/v1/sessions/:id/logs';

type LogClients = Pick<Clients, 'sessions' | 'consoleShares'>;
type Part = { logs: SessionLog[]; next?: number | undefined; end: number };

export function addLogs(router: Router<State>, { sessions, consoleShares }: LogClients): void {
  router.get(LOGS_ROUTE, async (ctx) => {
    const wanted = { id: String(ctx.params['id']), from: fromOf(ctx) };
    ctx.body = shown(await sessions.listSessionLogs(wanted, must(ctx.state.call, 'a key')()));
  });
  router.get(`${SHARED}/logs`, async (ctx) => {
    const call = must(ctx.state.call, 'a link')();
    ctx.body = shown(await consoleShares.listSharedLogs({ from: fromOf(ctx) }, call));
  });
}

function fromOf(ctx: Context): number {
  const text = ctx.URL.searchParams.get('from') ?? '0';
  if (!/^\d{1,9}$/.test(text)) throw invalidField('from', 'must be `end` of another part.');
  return Number(text);
}

function shown({ logs, next, end }: Part) {
  return { logs: logs.map(parsedOnly), end, isEnd: next === undefined };
}

/** The unparsed text of a message is half of its size, and the page does not show it. */
function parsedOnly(log: SessionLog) {
  const { request, response, ...entry } = shownLog(log);
  return {
    ...entry,
    request: request && { timestamp: request.timestamp, params: request.params },
    response: response && { timestamp: response.timestamp, result: response.result },
  };
}
