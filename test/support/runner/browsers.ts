/** What a runner has for its sessions, when a test does not look at it. */

import { settingsDeps } from '../../../runner/sessions/browser-settings.ts';
import type { ComponentDeps } from '../../../runner/sessions/components.ts';

export const BROWSERS: Pick<ComponentDeps, 'engine' | 'browsers'> = {
  engine: undefined,
  browsers: settingsDeps({ proxy: undefined, adLists: [] }),
};
