/**
 * The parts of a shared session that are no plain JSON: its log, and the playlists of its
 * recording. gateway/http/auth.ts requires the token of the link, and core reads the session from
 * it.
 */
import type Router from '@koa/router';
import type { Clients } from '../../../proto/rpc/services.ts';
import { SHARED, type State } from '../../http/auth.ts';
import { listSharedLogs } from '../sessions/logs.ts';
import { getSharedReplay } from '../sessions/recordings.ts';

type ShareDeps = { clients: Clients; publicUrl: string | undefined };

export function addShares(router: Router<State>, deps: ShareDeps): void {
  router.get(`${SHARED}/logs`, listSharedLogs(deps.clients));
  router.get(`${SHARED}/replays/:pageId`, getSharedReplay(deps));
}
