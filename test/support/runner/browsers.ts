/** A runner's browser settings, for tests of other subjects. */

import type { Clients } from '../../../proto/rpc/services.ts';
import { settingsDeps } from '../../../runner/sessions/browser-settings.ts';
import type { SessionResources } from '../../../runner/sessions/components.ts';
import { openHandoffs } from '../../../runner/sessions/handoffs.ts';
import { openLogSpace } from '../../../runner/sessions/log/spool.ts';

/** No session of these tests asks for a person. */
const handoffs = openHandoffs({} as Pick<Clients, 'runners'>);

export const BROWSERS: Pick<SessionResources, 'engine' | 'settings' | 'handoffs' | 'logSpace'> = {
  engine: undefined,
  settings: settingsDeps({ proxy: undefined, adLists: [] }),
  handoffs,
  logSpace: openLogSpace(),
};

/** Handoffs of one session, for tests of other subjects. */
export const NO_HANDOFFS = handoffs.ofLease({ id: 'lease', call: {} });
