/**
 * What a session consists of beside its Chrome and its relay: the parts that watch it, what its
 * Chrome is started with, and where warnings for its user go. One list for sessions and
 * invocations; each line opens one part.
 */
import type { InvocationWork, SessionWork } from '../proto/gen/tabern/v1/runners.pb.ts';
import type { Log } from '../proto/log.ts';
import type { CallOptions } from '../proto/rpc.ts';
import type { Clients } from '../proto/services.ts';
import { openLiveView } from './chrome/live.ts';
import type { TakeOptions } from './chrome/pool.ts';
import type { OpenPart } from './session.ts';
import { sessionLogs } from './session-logs.ts';

/** What invocations and sessions say of the session alike. */
export type SessionNeeds = Pick<
  SessionWork & InvocationWork,
  'sessionId' | 'projectId' | 'sessionParamsJson' | 'extension'
>;

export type PartsDeps = {
  clients: Pick<Clients, 'blobs' | 'runners'>;
  call: CallOptions;
  leaseId: string;
  /** Where a session may keep files while it is open. */
  runDir: string;
  log: Log;
  now: () => number;
  /** Aborts when the lease is lost: then core takes nothing more. */
  lost: AbortSignal;
};

export type Parts = {
  /** Opened in this order's name, all at once; ended all at once. */
  open: readonly OpenPart[];
  /** What its Chrome is started with. Empty: a spare one will do. */
  wanted(signal: AbortSignal): Promise<TakeOptions>;
  /** Tells the session's user of something that was not done as asked. */
  warn(message: string): void;
};

export function partsOf(work: SessionNeeds, deps: PartsDeps): Parts {
  const { log } = deps;
  const { logSession = true } = settingsOf(work);
  const logs = logSession ? sessionLogs({ ...deps, sessionId: work.sessionId }) : undefined;
  return {
    open: [...(logs ? [logs.open] : []), async (chrome) => openLiveView(chrome, deps)],
    wanted: async () => ({}),
    warn(message) {
      log.info({ message }, 'a session has a warning');
      logs?.warn(message);
    },
  };
}

/** As core has checked them. */
function settingsOf({ sessionParamsJson }: SessionNeeds): { logSession?: boolean } {
  const { browserSettings = {} } = JSON.parse(sessionParamsJson || '{}') as {
    browserSettings?: { logSession?: boolean };
  };
  return browserSettings;
}
