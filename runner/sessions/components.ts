/**
 * What a session consists of beside its Chrome and its relay: the parts that watch it, what its
 * Chrome is started with, and where warnings for its user go. One list for sessions and
 * invocations; each line opens one part.
 */

import type { Log } from '../../proto/common/log.ts';
import type { InvocationWork, SessionWork } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { lossOf } from '../browser/launch.ts';
import type { TakeOptions } from '../browser/pool.ts';
import { UnsupportedSessionError } from '../common/unsupported-session.ts';
import { type SessionParams, type SettingsDeps, sessionSettings } from './browser-settings.ts';
import { downloads } from './downloads.ts';
import type { Extensions } from './extensions.ts';
import { openLiveView } from './live-view/live-view.ts';
import { sessionLogs } from './log/log-shipper.ts';
import { recording } from './recording/recording.ts';
import type { Recordings } from './recording/uploader.ts';
import type { OpenComponent } from './session.ts';
import { uploads } from './uploads.ts';

/** Ours: more unreachable hosts than a person reads about. */
const REFUSALS_MAX = 100;

/** Chrome's own requests, which no flag prevents: no page of the user has sent them. */
const CHROMES_OWN =
  /\b(update\.googleapis|content-autofill\.googleapis|accounts\.google|clients\d?\.google)\.com\b/;

/** What invocations and sessions say of the session alike. */
export type SessionNeeds = Pick<
  SessionWork & InvocationWork,
  'sessionId' | 'projectId' | 'sessionParamsJson' | 'extension'
>;

export type ComponentDeps = {
  clients: Pick<Clients, 'blobs' | 'runners'>;
  call: CallOptions;
  leaseId: string;
  /** Where a session may keep files while it is open. */
  runDir: string;
  /** Absent: nothing is recorded. */
  recordings?: Recordings;
  /** Absent: a session with one does not start. */
  extensions?: Extensions | undefined;
  log: Log;
  now: () => number;
  /** Aborts when the lease is lost: then core takes nothing more. */
  lost: AbortSignal;
  /** Where the session's creator names none. */
  engine: TakeOptions['engine'];
  browsers: SettingsDeps;
};

export type SessionComponents = {
  /** Opened all at once; ended all at once, the log after them. */
  open: readonly OpenComponent[];
  /** What its Chrome is started with. Empty: a spare one will do. */
  wanted(signal: AbortSignal): Promise<TakeOptions>;
  /** Tells the session's user of something that was not done as asked. */
  warn(message: string): void;
};

export function componentsOf(work: SessionNeeds, deps: ComponentDeps): SessionComponents {
  const { log, recordings } = deps;
  const { projectId } = work;
  const params = JSON.parse(work.sessionParamsJson || '{}') as SessionParams;
  const { logSession = true, recordSession = true } = params.browserSettings ?? {};
  const logs = logSession ? sessionLogs({ ...deps, sessionId: work.sessionId }) : undefined;
  const warn = (message: string): void => {
    log.info({ message }, 'a session has a warning');
    logs?.warn(message);
  };
  const settings = sessionSettings(params, deps.engine, { ...deps.browsers, warn });
  return {
    open: [
      settings.open,
      limits(warn),
      refusals(warn),
      downloads({ ...deps, warn }),
      ...(logs ? [endingLast(logs.open)] : []),
      ...(recordSession && recordings ? [recording({ ...deps, projectId, recordings, warn })] : []),
      uploads(),
      async (chrome) => openLiveView(chrome, deps),
    ],
    async wanted(signal) {
      const extension = await extensionOf(work, params, { ...deps, warn }, signal);
      // only full Chromium loads one, whatever was asked for
      return extension ? { ...settings.wanted, engine: 'chromium', extension } : settings.wanted;
    },
    warn,
  };
}

/** Its user is told of a limit that its browser was ended for. */
function limits(warn: SessionComponents['warn']): OpenComponent {
  return async (chrome) => {
    void chrome.pipe.closed.then(() => {
      if (chrome.why() !== undefined) warn(lossOf(chrome));
    });
    return { close: async () => undefined };
  };
}

/** Warns of each host that could not be reached, with the reason that no net error has. */
function refusals(warn: SessionComponents['warn']): OpenComponent {
  return async (chrome) => {
    const told = new Set<string>();
    chrome.egress.onRefusal(({ why, error }) => {
      const isAsked = error === 'BLOCKED_BY_CLIENT'; // the session's own filter list
      if (isAsked || CHROMES_OWN.test(why) || told.has(why) || told.size >= REFUSALS_MAX) return;
      told.add(why);
      warn(why);
    });
    return { close: async () => undefined };
  };
}

/** What the others, and the save of the context, say at their end still stands in the log. */
function endingLast(log: OpenComponent): OpenComponent {
  return async (chrome) => {
    const { close: closeLast, ...others } = await log(chrome);
    return { ...others, close: async () => undefined, closeLast };
  };
}

/**
 * What its Chrome loads; warns of an extension that must not be loaded. Throws SessionUnfit for one
 * that was deleted before it could.
 */
async function extensionOf(
  { extension: wanted }: SessionNeeds,
  { extensionId, browserSettings }: SessionParams,
  { extensions, warn }: ComponentDeps & Pick<SessionComponents, 'warn'>,
  signal: AbortSignal,
): Promise<TakeOptions['extension']> {
  const isNamed = extensionId !== undefined || browserSettings?.extensionId !== undefined;
  if (wanted === undefined) {
    if (isNamed) throw new UnsupportedSessionError('the extension of the session was deleted');
    return undefined;
  }
  if (extensions === undefined) throw new UnsupportedSessionError('extensions are not loaded here');
  const found = await extensions.get(wanted, signal);
  if ('dir' in found) return { id: wanted.extensionId, dir: found.dir };
  warn(`extensionId: the extension is not loaded: ${found.refused}`);
  return undefined;
}
