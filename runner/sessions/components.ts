/**
 * The components of a session beside its Chrome and its relay, the options of its Chrome, and the
 * warnings for its user. One list for sessions and invocations; each line opens one component.
 */

import type { Metrics } from '../../proto/common/metrics.ts';
import type { InvocationWork, SessionWork } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { Shares } from '../../proto/sharing/shares.ts';
import type { LoadedExtension } from '../browser/extension.ts';
import { lossReason } from '../browser/launch.ts';
import type { Policies } from '../browser/policies.ts';
import type { TakeOptions } from '../browser/pool.ts';
import type { RunnerContext } from '../common/runner-context.ts';
import { UnsupportedSessionError } from '../common/unsupported-session.ts';
import type { Lease } from '../leases/lease.ts';
import { type SessionParams, type SettingsDeps, sessionSettings } from './browser-settings.ts';
import { downloads } from './downloads.ts';
import type { Extensions } from './extensions.ts';
import type { Handoffs, SessionHandoffs } from './handoffs.ts';
import { openLiveView } from './live-view/live-view.ts';
import { openThumbnail } from './live-view/thumbnail.ts';
import { sessionLogs } from './log/log-shipper.ts';
import { recording } from './recording/recording.ts';
import type { Recordings } from './recording/uploader.ts';
import type { SessionServer } from './server/session-server.ts';
import type { Chromes, OpenComponent } from './session.ts';
import { uploads } from './uploads.ts';

/** Ours: a person does not read more. */
const REFUSALS_MAX = 100;
const MORE_REFUSALS = `more than ${REFUSALS_MAX} hosts were refused: no more are named`;

/** Hosts of Chrome's own requests, which no flag prevents: no page of the user has sent them. */
const CHROMES_OWN =
  /\b(update\.googleapis|content-autofill\.googleapis|accounts\.google|clients\d?\.google)\.com\b/;

const PDFS_DOWNLOADED: Policies = { AlwaysOpenPdfExternally: true };

/** The members that invocations and sessions share. */
type SessionNeeds = Pick<
  SessionWork & InvocationWork,
  | 'sessionId'
  | 'projectId'
  | 'sessionParamsJson'
  | 'extension'
  | 'moreExtensions'
  | 'caCertificates'
>;

/** What sessions and invocations use of the runner for their browser. */
export type SessionResources = {
  runner: RunnerContext;
  chromes: Chromes;
  sessionServer: Pick<SessionServer, 'register'>;
  /** Absent: nothing is recorded. */
  recordings?: Recordings;
  /** On disk, for protocol logs that core has not taken yet. */
  logSpace: Shares;
  /** Absent: a session with an extension does not start. */
  extensions?: Extensions | undefined;
  settings: SettingsDeps;
  metrics?: Metrics | undefined;
  handoffs: Handoffs;
  /** For sessions that name no engine. */
  engine: TakeOptions['engine'];
};

type SessionComponents = {
  /** Opened together; closed together. */
  components: readonly OpenComponent[];
  /** For the start of its Chrome. Empty: a spare Chrome is taken. */
  chromeOptions(signal: AbortSignal): Promise<TakeOptions>;
  /** Warns the session's user of a request that was not fulfilled. */
  warn(message: string): void;
};

export function componentsOf(
  work: SessionNeeds,
  lease: Lease,
  resources: Omit<SessionResources, 'chromes' | 'sessionServer' | 'handoffs'> & {
    handoffs: SessionHandoffs;
  },
): SessionComponents {
  const { runner, recordings, logSpace, engine, metrics, handoffs } = resources;
  const { log, clients, now } = runner;
  const { sessionId, projectId } = work;
  const params = JSON.parse(work.sessionParamsJson || '{}') as SessionParams;
  const { logSession = true, recordSession = true } = params.browserSettings ?? {};
  const logs = logSession ? sessionLogs(work, { runner, lease, space: logSpace }) : undefined;
  const warn = (message: string): void => {
    log.info({ message }, 'a session has a warning');
    logs?.warn(message);
  };
  const settings = sessionSettings(params, engine, { ...resources.settings, warn });
  const components: OpenComponent[] = [
    settings.open,
    limits(warn),
    refusals(warn),
    downloads({ runner, lease, warn }),
    uploads(),
    async (chrome) => openLiveView(chrome, { log, now, handoffs }),
    async (chrome) => ({ thumbnail: openThumbnail(chrome, { metrics }) }),
  ];
  if (logs !== undefined) components.push(logs.open);
  if (recordSession && recordings !== undefined) {
    const recipient = { clients, lease, sessionId, projectId };
    components.push(recording({ ...recipient, recordings, now, warn }));
  }
  return {
    components,
    async chromeOptions(signal) {
      const extensions = await extensionsOf(work, params, { ...resources, warn }, signal);
      const { caCertificates } = work;
      const { enablePdfViewer } = params.browserSettings ?? {};
      // only full Chromium has these, whatever engine was requested
      const isFull = extensions.length > 0 || enablePdfViewer === true;
      const isChromium = isFull || settings.wanted.engine !== 'headless-shell';
      const own = {
        ...(isFull ? { engine: 'chromium' as const } : {}),
        ...(extensions.length > 0 ? { extensions } : {}),
        ...(caCertificates.length > 0 ? { caCertificates } : {}),
        ...(isChromium && enablePdfViewer === false ? { policies: PDFS_DOWNLOADED } : {}),
      };
      return { ...settings.wanted, ...own };
    },
    warn,
  };
}

/** Warns the user when a limit has ended the browser. */
function limits(warn: SessionComponents['warn']): OpenComponent {
  return async (chrome) => {
    void chrome.pipe.closed.then(() => {
      if (chrome.exitReason() !== undefined) warn(lossReason(chrome));
    });
    return {};
  };
}

/** Warns of each host that could not be reached, once, with the reason that no net error has. */
function refusals(warn: SessionComponents['warn']): OpenComponent {
  return async (chrome) => {
    const warned = new Set<string>();
    chrome.egress.onRefusal(({ why, error, denied }) => {
      const isOnFilterList = error === 'BLOCKED_BY_CLIENT' && denied === undefined;
      if (isOnFilterList || CHROMES_OWN.test(why)) return;
      const host = denied?.host ?? why;
      if (warned.has(host) || warned.size > REFUSALS_MAX) return;
      warned.add(host);
      warn(warned.size > REFUSALS_MAX ? MORE_REFUSALS : why);
    });
    return {};
  };
}

/**
 * The extensions that its Chrome loads. Warns of one that must not be loaded. Throws
 * UnsupportedSessionError for one that was deleted before.
 */
async function extensionsOf(
  { extension: first, moreExtensions }: SessionNeeds,
  { extensionId, browserSettings = {} }: SessionParams,
  { extensions, warn }: Pick<SessionResources, 'extensions'> & Pick<SessionComponents, 'warn'>,
  signal: AbortSignal,
): Promise<LoadedExtension[]> {
  const wanted = [...(first ? [first] : []), ...moreExtensions];
  const named = [extensionId ?? browserSettings.extensionId, ...(browserSettings.extensions ?? [])];
  const ids = new Set(named.flatMap((id) => id?.toLowerCase() ?? []));
  if (wanted.length < ids.size) {
    throw new UnsupportedSessionError('the extension of the session was deleted');
  }
  const loaded: LoadedExtension[] = [];
  for (const one of wanted) {
    if (extensions === undefined) {
      throw new UnsupportedSessionError('extensions are not loaded here');
    }
    const found = await extensions.get(one, signal);
    if ('dir' in found) loaded.push({ id: one.extensionId, dir: found.dir });
    else warn(`extensionId: the extension is not loaded: ${found.refused}`);
  }
  return loaded;
}
