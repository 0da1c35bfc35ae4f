/** Keys of a session's page and of a shared one: entries, moments and the full screen. */
import type { Session } from '../../data/types.ts';
import { useKeys } from '../../parts/keys.tsx';
import { copyMoment } from './clock.ts';
import { toggleFull } from './controls.tsx';
import type { Log } from './use-log.ts';

export function useLogKeys(session: Session, log: Log): void {
  useKeys([
    { keys: 'y', does: 'copy the address of this moment', run: () => void copyMoment(session) },
    { keys: 'n', does: 'next entry', run: () => log.step(1) },
    { keys: 'p', does: 'previous entry', run: () => log.step(-1) },
    { keys: 'e', does: 'next error', run: () => log.step(1, true) },
    { keys: 'f', does: 'full screen', run: toggleFull },
  ]);
}
