/**
 * The CDP session behind a client's socket: the browser's own, or one target's, as with Chrome's
 * `/devtools/page/<id>`. Commands without a session id go there.
 */

import type { Pipe } from '../../browser/cdp/pipe.ts';
import { openTargetSession } from '../../browser/cdp/target-session.ts';

export type Root = {
  sessionId: string;
  /** Absent: the browser. */
  targetId?: string;
  /** Settles when the target is gone; never for the browser. */
  closed?: Promise<void>;
  /** Detaches the root and the sessions below it. */
  end(): void;
};

export async function browserRoot(pipe: Pipe): Promise<Root> {
  const sessionId = String((await pipe.call('Target.attachToBrowserTarget'))['sessionId']);
  return { sessionId, end: () => detach(pipe, sessionId) };
}

/**
 * Attached from a separate browser session: targets attached from the root belong to
 * runner/browser/cdp/pages.ts.
 * Undefined when there is no such target.
 */
export async function targetRoot(pipe: Pipe, targetId: string): Promise<Root | undefined> {
  const parent = await browserRoot(pipe);
  const session = openTargetSession(pipe, parent.sessionId);
  const end = (): void => {
    session.end();
    parent.end();
  };
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  try {
    session.on('Target.detachedFromTarget', () => resolve());
    const wanted = { targetId, flatten: true };
    const sessionId = String((await session.call('Target.attachToTarget', wanted))['sessionId']);
    return { sessionId, targetId, closed, end };
  } catch {
    end();
    return undefined;
  }
}

function detach(pipe: Pipe, sessionId: string): void {
  // Rejects only when Chrome is gone, and the session with it.
  pipe.call('Target.detachFromTarget', { sessionId }).catch(() => undefined);
}
