/**
 * GET /json/version: where Chrome tells the WebSocket address that drives it, for clients that were
 * given an http address. The session is named as on the upgrade (credentials.ts).
 */
import type { Middleware } from 'koa';
import { invalidField } from '../../proto/errors.ts';
import type { Clients } from '../../proto/services.ts';
import { goneSignal, type State } from '../auth.ts';
import { credentialOf, presentedBy, targetOf } from '../credentials.ts';
import { locator } from '../door.ts';
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
    const { signingKey } = await locate(await credentialOf(presented, clients, signal), signal);
    const address = websocketUrl(publicUrl ?? baseUrlOf(ctx));
    ctx.body = {
      Browser: 'Chrome',
      'Protocol-Version': '1.3',
      webSocketDebuggerUrl: `${address}/connect?signingKey=${encodeURIComponent(signingKey)}`,
    };
  };
}
