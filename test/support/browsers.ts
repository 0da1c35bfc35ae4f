/** What a runner has for its sessions, when a test does not look at it. */
import type { PartsDeps } from '../../runner/parts.ts';
import { settingsDeps } from '../../runner/settings.ts';

export const BROWSERS: Pick<PartsDeps, 'engine' | 'browsers'> = {
  engine: undefined,
  browsers: settingsDeps({ proxy: undefined, adLists: [] }),
};
