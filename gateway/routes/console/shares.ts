/**
 * The playlists of a shared session's recording, which are no JSON. gateway/http/auth.ts requires
 * the token of the link, and core reads the session from it.
 */
import type Router from '@koa/router';
import type { Clients } from '../../../proto/rpc/services.ts';
import { SHARED, type State } from '../../http/auth.ts';
import { getSharedReplay } from '../sessions/recordings.ts';

type ShareDeps = { clients: Clients; publicUrl: string | undefined };

export function addShares(router: Router<State>, deps: ShareDeps): void {
  router.get(`${SHARED}/replays/:pageId`, getSharedReplay(deps));
}
