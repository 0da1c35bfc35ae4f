/** A runner's browser settings, for tests of other subjects. */

import { settingsDeps } from '../../../runner/sessions/browser-settings.ts';
import type { SessionResources } from '../../../runner/sessions/components.ts';

export const BROWSERS: Pick<SessionResources, 'engine' | 'settings'> = {
  engine: undefined,
  settings: settingsDeps({ proxy: undefined, adLists: [] }),
};
