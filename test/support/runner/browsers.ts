/** What a runner has for its sessions, when a test does not look at it. */

import { settingsDeps } from '../../../runner/sessions/browser-settings.ts';
import type { PartsDeps } from '../../../runner/sessions/components.ts';

export const BROWSERS: Pick<PartsDeps, 'engine' | 'browsers'> = {
  engine: undefined,
  browsers: settingsDeps({ proxy: undefined, adLists: [] }),
};
