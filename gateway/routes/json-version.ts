/**
 * GET /json/version: where Chrome tells its version and the WebSocket address that drives it, for
 * clients that were given an http address. The session is named as on the upgrade (credentials.ts).
 */
import type { Middleware } from 'koa';
import { invalidField } from '../../proto/errors.ts';
import type { Clients } from '../../proto/services.ts';
import { goneSignal, type State } from '../auth.ts';
import { credentialOf, presentedBy, targetOf } from '../credentials.ts';
import { askDoor, locator } from '../door.ts';
import { baseUrlOf, websocketUrl } from '../links.ts';

/** Playwright asks with a slash at the end. Source: reference.md 3.9. */
export const VERSION_PATHS = ['/json/version', '/json/version/'];

export function jsonVersion(options: {
  clients: Pick<Clients, 'sessions'>;
  gatewayToken: string;
  publicUrl: string | undefined;
}): Middleware<State> {
  const { clients, publicUrl } = options;
  const locate = locator(options);
  return async (ctx) => {
    const presented = presentedBy(ctx.req, targetOf(ctx.req), ctx.state.requestId);
    // a GET starts nothing
    if (presented.kind === 'new') throw invalidField('sessionId', 'must be given.');
    const signal = goneSignal(ctx.res);
    const credential = await credentialOf(presented, clients, signal);
    const place = await locate(credential, signal);
    const version = await askDoor(place, { method: 'GET', path: '/json/version', signal });
    const address = websocketUrl(publicUrl ?? baseUrlOf(ctx));
    // what was presented: it ends with the API key that it was given to; the door's own does not
    const key = encodeURIComponent(credential.value);
    ctx.body = {
      ...Object(version),
      webSocketDebuggerUrl: `${address}/connect?signingKey=${key}`,
    };
  };
}
