/** What a runner has for its sessions, when a test does not look at it. */
import { openFilters } from '../../runner/filters.ts';
import type { PartsDeps } from '../../runner/parts.ts';

export const BROWSERS: Pick<PartsDeps, 'engine' | 'browsers'> = {
  engine: undefined,
  browsers: { proxy: undefined, filters: openFilters({ lists: [], now: () => 0 }) },
};
