/** Every service of core, behind its door: who may enter which is decided here and nowhere else. */
import type { BlockList } from 'node:net';
import type { Log } from '../proto/log.ts';
import type { Metrics } from '../proto/metrics.ts';
import type { Definition, Handlers } from '../proto/rpc.ts';
import { type AllHandlers, SERVICES } from '../proto/services.ts';
import type { Authenticate, ForgetKey } from './auth.ts';
import { backupService } from './backup/service.ts';
import type { BlobFiles } from './blobs/files.ts';
import { blobService, everybody } from './blobs.ts';
import { buildHandlers } from './builds.ts';
import {
  type Admit,
  guarded,
  logged,
  onlyGateways,
  onlyOperators,
  onlyProjects,
  onlyRunners,
  type Service,
} from './call.ts';
import { callShares } from './call-shares.ts';
import type { Checks } from './checks.ts';
import { contentService } from './context-content.ts';
import { contextLinks } from './context-links.ts';
import { contextService } from './contexts.ts';
import { deliveryService } from './deliveries.ts';
import type { Rule } from './delivery/disable.ts';
import type { Disk } from './disk.ts';
import { downloadService } from './downloads.ts';
import { extensionService } from './extensions.ts';
import { functionHandlers } from './functions.ts';
import { invocationService } from './invocations.ts';
import type { KeyPool } from './keys/pool.ts';
import { runnerService } from './leases.ts';
import { liveView } from './live-view.ts';
import { locateService } from './locate.ts';
import { operatorService } from './operators.ts';
import { projectService } from './projects.ts';
import { openQuotas, type QuotaLimits } from './quotas.ts';
import { healthService, type Readiness } from './readiness.ts';
import { recordingBytes } from './recording-bytes.ts';
import { recordingLinks } from './recording-links.ts';
import { recordingService } from './recordings.ts';
import { revokedKeys } from './revoked-keys.ts';
import type { Sealer } from './seal.ts';
import { sessionLogService } from './session-logs.ts';
import { sessionSecrets } from './session-secrets.ts';
import { sessionService } from './sessions.ts';
import { signingKeys as openSigningKeys } from './signing-keys.ts';
import type { Store } from './store/types.ts';
import { openUploads } from './uploads.ts';
import { viewTokens } from './view-tokens.ts';
import { webhookService } from './webhooks.ts';

/** How long work may wait for a runner. Ours: past it nobody waits for the answer any more. */
const WAIT_MS = 3_600_000;
/**
 * What is refused while the disk has little room, beside uploads: beginning takes room, and ending
 * must not want for any.
 */
const BEGINNINGS: ReadonlySet<string> = new Set([
  ...['createSession', 'invokeFunction', 'createBuild'],
  ...['createContext', 'createExtension', 'createWebhook'],
]);

export type Parts = {
  store: Store;
  files: BlobFiles;
  sealer: Sealer;
  keys: KeyPool;
  checks: Checks;
  authenticate: Authenticate;
  forgetKey: ForgetKey;
  log: Log;
  metrics: Metrics;
  disk: Disk;
  readiness: Readiness;
  now: () => number;
  /** The same, and never set: for what is kept in memory. */
  steady: () => number;
  leaseMs: number;
  queueMax: number;
  dataDir: string;
  concurrency: number;
  webhookAllow: BlockList;
  webhookRule: Rule;
  webhookRatePerS: number;
  recordingDays: number;
  extensionsMax: number;
  quotas: QuotaLimits;
  /** The machine's own clock: what receivers of signatures compare with. */
  wall: () => number;
  /** Aborts when core closes. */
  closing: AbortSignal;
};

export function allHandlers(parts: Parts): AllHandlers {
  const { store, files, sealer, keys, checks, log, now, leaseMs, queueMax, closing } = parts;
  const { authenticate, webhookAllow: allow, webhookRule: rule, wall } = parts;
  const { webhookRatePerS: ratePerS, disk, readiness, metrics, extensionsMax } = parts;
  const work = { store, now, queueMax, waitMs: WAIT_MS };
  const functions = { ...buildHandlers(work), ...functionHandlers(work) };
  const secrets = sessionSecrets(sealer);
  const quotas = openQuotas({ store, defaults: parts.quotas });
  const invocations = invocationService({ ...work, checks, secrets, quotas, closing });
  const linked = { sealer, now, isRevoked: revokedKeys({ store, now, steady: parts.steady }) };
  const links = contextLinks(linked);
  const recorded = recordingLinks(linked);
  const recording = recordingBytes({ store, files, links: recorded });
  const content = {
    ...{ store, files, quotas, sealer, now, links, recording, disk, extensionsMax },
    uploads: openUploads(),
  };
  const signingKeys = openSigningKeys(sealer);
  const leases = { log, leaseMs, readiness, secrets, closing };
  const runners = runnerService({ ...content, ...leases, checks, signingKeys });
  const views = viewTokens(sealer, now);
  const { replaceContext, ...ofProjects } = SERVICES.contexts;
  const { locateSession, ...ofUsers } = SERVICES.sessions;
  const sessions = {
    ...sessionService({ store, signingKeys, secrets, checks, now, closing }),
    ...sessionLogService({ store }),
    ...recordingService({ store, files, links: recorded, now, keptDays: parts.recordingDays }),
    ...liveView({ store, now, tokens: views, signingKeys }),
  };
  const operators = { ...operatorService({ ...parts, quotas }), ...backupService(parts) };
  const webhooks = webhookService({ store, sealer, now, allow, closing });
  const enterCall = callShares();
  const located = locateService({ store, signingKeys, readViewToken: views.read, closing });

  function behind<D extends Definition, C>(
    definition: D,
    service: Service<D, C>,
    admit: Admit<C>,
  ): Handlers<D> {
    const entered = (name: string) => void (BEGINNINGS.has(name) && disk.checkRoom());
    const rules = { authenticate, enterCall, admit, entered };
    return logged(definition, guarded(definition, service, rules), log);
  }

  return {
    operators: behind(SERVICES.operators, operators, onlyOperators),
    projects: behind(SERVICES.projects, projectService({ store, quotas, now }), onlyProjects),
    contexts: {
      ...behind(ofProjects, contextService({ ...content, keys }), onlyProjects),
      ...behind({ replaceContext }, contentService(content), onlyGateways),
    },
    sessions: {
      ...behind(ofUsers, sessions, onlyProjects),
      ...behind({ locateSession }, located, onlyGateways),
    },
    downloads: behind(SERVICES.downloads, downloadService(content), onlyProjects),
    extensions: behind(SERVICES.extensions, extensionService(content), onlyProjects),
    functions: behind(SERVICES.functions, functions, onlyProjects),
    invocations: behind(SERVICES.invocations, invocations, onlyProjects),
    webhooks: behind(SERVICES.webhooks, webhooks, onlyProjects),
    blobs: behind(SERVICES.blobs, blobService(content), everybody),
    runners: behind(SERVICES.runners, runners, onlyRunners),
    deliveries: behind(
      SERVICES.deliveries,
      deliveryService({ ...{ store, sealer, log, now, closing, metrics }, wall, rule, ratePerS }),
      onlyGateways,
    ),
    health: behind(SERVICES.health, healthService(parts), onlyGateways),
  };
}
