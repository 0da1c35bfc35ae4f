/**
 * GET /console/api/v1/sessions/live?ids=...: the state of running sessions, in one request for all
 * rows that a list shows. GET /console/api/v1/sessions/{id}/thumbnail: a small picture. It is made
 * by a page of the session: its type is always JPEG, its size is limited, and only the caller's own
 * browser keeps it.
 */
import type Router from '@koa/router';
import { must } from '../../../proto/common/must.ts';
import { invalidField } from '../../../proto/rpc/errors.ts';
import type { State } from '../../http/auth.ts';
import { openRunningSessions } from '../../sessions/running.ts';

export const STATES_ROUTE = '/console/api/v1/sessions/live';
export const THUMBNAIL_ROUTE = '/console/api/v1/sessions/:id/thumbnail';

export function addRunningSessions(
  router: Router<State>,
  options: Parameters<typeof openRunningSessions>[0],
): void {
  const running = openRunningSessions(options);
  router.get(STATES_ROUTE, async (ctx) => {
    const call = must(ctx.state.call, 'a key')();
    const ids = ctx.URL.searchParams.getAll('ids').flatMap((text) => text.split(','));
    if (ids.length === 0) throw invalidField('ids', 'is required.');
    ctx.body = { sessions: await running.states(ids, call) };
  });
  router.get(THUMBNAIL_ROUTE, async (ctx) => {
    const call = must(ctx.state.call, 'a key')();
    const { jpeg, etag } = await running.picture(ctx.params['id'] ?? '', call);
    ctx.set('cache-control', 'private, no-cache');
    ctx.set('content-security-policy', "default-src 'none'; sandbox");
    ctx.status = 200;
    ctx.type = 'image/jpeg';
    ctx.etag = etag;
    if (ctx.fresh) ctx.status = 304;
    else ctx.body = jpeg;
  });
}
