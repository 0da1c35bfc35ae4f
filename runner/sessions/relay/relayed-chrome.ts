/** The part of a Chrome that a relay uses. */
import type { Chrome } from '../../browser/launch.ts';

export type RelayedChrome = Pick<Chrome, 'pipe' | 'paths' | 'proxies' | 'exitReason'> & {
  egress: Pick<Chrome['egress'], 'errors'>;
};
