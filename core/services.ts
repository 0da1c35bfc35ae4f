/**
 * All services of core, behind their access checks: this file alone decides which caller may call
 * which service.
 */
import { join } from 'node:path';
import type { Log } from '../proto/common/log.ts';
import type { Metrics } from '../proto/common/metrics.ts';
import { cidrList } from '../proto/network/public-addresses.ts';
import { Fault } from '../proto/rpc/errors.ts';
import type { Definition, Handlers } from '../proto/rpc/local.ts';
import { type AllHandlers, SERVICES } from '../proto/rpc/services.ts';
import { openAudit } from './api/audit.ts';
import type { Authenticate, ForgetKey } from './api/authentication.ts';
import { callShares } from './api/call-shares.ts';
import {
  type Admit,
  guarded,
  logged,
  onlyGateways,
  onlyOperators,
  onlyOperatorTokens,
  onlyProjects,
  onlyRunners,
  onlyShares,
  projectsAndOperators,
  type Service,
} from './api/interceptors.ts';
import { blobService, everybody } from './blobs/blobs.ts';
import { directUploads } from './blobs/direct-uploads.ts';
import { openLogReaders } from './common/log-readers.ts';
import type { Sealer } from './common/sealer.ts';
import type { CoreConfig } from './config.ts';
import { consoleService } from './console/console.ts';
import { consoleSettings } from './console/settings.ts';
import { contentService, openUploads } from './contexts/content.ts';
import { contextService } from './contexts/contexts.ts';
import type { KeyPool } from './contexts/key-pool.ts';
import { contextLinks } from './contexts/links.ts';
import type { Blobs } from './files/blobs.ts';
import { certificateService } from './files/certificates.ts';
import type { Disk } from './files/disk-space.ts';
import { downloadService } from './files/downloads.ts';
import { extensionService } from './files/extensions.ts';
import { openReceipts } from './files/receipts.ts';
import type { BucketHealth } from './files/s3/health.ts';
import { nameOf } from './files/s3/place.ts';
import { buildHandlers } from './functions/builds.ts';
import { functionHandlers } from './functions/functions.ts';
import { type InvocationDeps, invocationService } from './functions/invocations.ts';
import { oneShotService } from './functions/one-shots/one-shots.ts';
import { scheduleService } from './functions/schedules/schedules.ts';
import { secretValues as openSecretValues } from './functions/secret-values.ts';
import { secretService } from './functions/secrets.ts';
import { backupService } from './maintenance/backup/service.ts';
import { openDiagnosis } from './maintenance/diagnosis.ts';
import type { Notices } from './maintenance/notices.ts';
import { type DatabaseServer, healthService, type Readiness } from './maintenance/readiness.ts';
import { auditService } from './operator/audit.ts';
import { operatorConsoleService } from './operator/pages.ts';
import { type ConsoleLogins, consoleLoginService } from './projects/console-logins.ts';
import { keyService } from './projects/keys.ts';
import { operatorService } from './projects/operators.ts';
import { projectService } from './projects/projects.ts';
import type { Quotas } from './projects/quotas.ts';
import { revokedKeys } from './projects/revoked-keys.ts';
import { runnerService } from './runners/leases.ts';
import { handoffService } from './sessions/handoffs.ts';
import { labelService } from './sessions/labels.ts';
import { liveView, viewTokens } from './sessions/live-view.ts';
import { locateService } from './sessions/locate.ts';
import { sessionLogService } from './sessions/logs.ts';
import { sessionSecrets } from './sessions/proxy-secrets.ts';
import { recordingBytes } from './sessions/recordings/content.ts';
import { recordingLinks } from './sessions/recordings/links.ts';
import { recordingService } from './sessions/recordings/recordings.ts';
import { sessionService } from './sessions/sessions.ts';
import type { ShareTokens } from './sessions/share-tokens.ts';
import { sharedSessions, shareMaker } from './sessions/shares.ts';
import { signingKeys as openSigningKeys } from './sessions/signing-keys.ts';
import type { Store } from './store/types.ts';
import type { Validator } from './validation/validator.ts';
import { deliveryService } from './webhooks/deliveries.ts';
import { webhookService } from './webhooks/webhooks.ts';

/** How long work may wait for a runner. Ours: after that no client waits for the answer. */
const WAIT_MS = 3_600_000;
/** RPCs refused while the service drains: each needs a runner. */
const NEW_RUNS: ReadonlySet<string> = new Set([
  ...['createSession', 'copySession', 'invokeFunction', 'createBuild'],
  ...['takeScreenshot', 'printPdf', 'readContent', 'readLinks'],
  ...['readMarkdown', 'fetchResource'],
]);
/**
 * RPCs refused while the disk is low, besides uploads: the remaining space is for running work to
 * end.
 */
const NEW_WORK: ReadonlySet<string> = new Set([
  ...NEW_RUNS,
  ...['createContext', 'createExtension', 'createCertificate', 'createWebhook'],
  ...['createSchedule', 'createSecret'],
]);

export type CoreDeps = {
  store: Store;
  files: Blobs;
  /** Undefined when blobs are files. */
  bucket: BucketHealth | undefined;
  /** Undefined when the database is a file. */
  server: DatabaseServer | undefined;
  sealer: Sealer;
  keys: KeyPool;
  validator: Validator;
  quotas: Quotas;
  authenticate: Authenticate;
  forgetKey: ForgetKey;
  logins: ConsoleLogins;
  shares: ShareTokens;
  log: Log;
  metrics: Metrics;
  disk: Disk;
  readiness: Readiness;
  notices: Notices;
  now: () => number;
  /** Monotonic, for state in memory. */
  steady: () => number;
  /** While true, retention removes nothing: the clock jumped far forward. */
  isHeld: () => boolean;
  /** The machine's clock, with which receivers compare signatures. */
  wall: () => number;
  /** Aborts when the service accepts no new runs: core ends after the work of its runner. */
  draining: AbortSignal;
  /** Aborts when core closes. */
  closing: AbortSignal;
};

export function allHandlers(deps: CoreDeps, config: CoreConfig): AllHandlers {
  const { store, files, sealer, keys, validator, now, quotas, closing } = deps;
  const { extensionsMax, leaseMs } = config;
  const work = { ...invocationDeps(deps, config), readers: openLogReaders(store, deps.steady) };
  const functions = { ...buildHandlers(work), ...functionHandlers(deps) };
  const { secrets, readers } = work;
  const invocations = invocationService({ ...work, log: deps.log, closing });
  const schedules = scheduleService({ store, validator, now });
  const oneShots = oneShotService({ ...deps, ...config, secrets, quotas });
  const isRevoked = revokedKeys(deps);
  const linked = { sealer, now, isRevoked };
  const links = contextLinks(linked);
  const recorded = recordingLinks(linked);
  const recording = recordingBytes({ store, files, links: recorded });
  const content = { ...forContent(deps, config), quotas, links, recording, extensionsMax };
  const signingKeys = openSigningKeys(sealer);
  const secretValues = openSecretValues({ store, sealer, now });
  const ofFunctions = secretService({ store, values: secretValues, now });
  const views = viewTokens(sealer, now);
  const forWork = { ...content, leaseMs, secrets, secretValues, signingKeys };
  const runners = runnerService({ ...forWork, readers, tokens: views });
  const { replaceContext, ...ofProjects } = SERVICES.contexts;
  const { locateSession, ...ofUsers } = SERVICES.sessions;
  const sessions = {
    ...sessionService({ ...deps, signingKeys, secrets, closing }),
    ...sessionLogService(store, readers),
    ...recordingService({ store, files, links: recorded, now, keptDays: config.recordingDays }),
    ...liveView({ store, now, tokens: views, signingKeys }),
  };
  const pages = consoleService({ ...deps, signingKeys, isRevoked });
  const settings = { ...consoleSettings({ store, quotas, config }), ...keyService(deps) };
  const located = locateService({ store, signingKeys, readViewToken: views.read, closing });

  const behind = entrance(deps);
  return {
    operators: operatorHandlers(deps, config, { quotas, behind }),
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
    handoffs: behind(SERVICES.handoffs, handoffService({ ...deps, tokens: views }), onlyProjects),
    extensions: behind(SERVICES.extensions, extensionService(content), onlyProjects),
    ...smallObjects(deps, behind),
    functions: behind(SERVICES.functions, functions, onlyProjects),
    invocations: behind(SERVICES.invocations, invocations, onlyProjects),
    oneShots: behind(SERVICES.oneShots, oneShots, onlyProjects),
    schedules: behind(SERVICES.schedules, schedules, onlyProjects),
    secrets: behind(SERVICES.secrets, ofFunctions, onlyProjects),
    ...webhookHandlers(deps, config, behind),
    blobs: behind(
      SERVICES.blobs,
      { ...blobService(content), ...directUploads(content) },
      everybody,
    ),
    runners: behind(SERVICES.runners, runners, onlyRunners),
    console: behind(SERVICES.console, pages, onlyProjects),
    audit: behind(SERVICES.audit, auditService(store), projectsAndOperators),
    consoleSettings: behind(SERVICES.consoleSettings, settings, onlyProjects),
    operatorConsole: operatorPages(deps, config, behind),
    consoleLogins: behind(SERVICES.consoleLogins, consoleLoginService(deps), onlyGateways),
    consoleShares: consoleShares(behind, deps, { views, sessions }),
    health: behind(SERVICES.health, healthService(deps), onlyGateways),
  };
}

/** For services that store bytes. Several cores have one bucket. */
function forContent(deps: CoreDeps, { bucket, dataDir }: CoreConfig) {
  const { sealer, now } = deps;
  const place = bucket === undefined ? join(dataDir, 'blobs') : nameOf(bucket);
  return { ...deps, uploads: openUploads(), receipts: openReceipts({ sealer, now, place }) };
}

/** What accepts an invocation: a request or a schedule. */
export function invocationDeps(deps: CoreDeps, { queueMax }: CoreConfig): InvocationDeps {
  const { store, now, validator, quotas, sealer } = deps;
  const secrets = sessionSecrets(sealer);
  return { store, now, validator, quotas, secrets, queueMax, waitMs: WAIT_MS };
}

/** Labels and certificates: rows without files. */
function smallObjects(
  deps: CoreDeps,
  behind: ReturnType<typeof entrance>,
): Pick<AllHandlers, 'labels' | 'certificates'> {
  return {
    labels: behind(SERVICES.labels, labelService(deps), onlyProjects),
    certificates: behind(SERVICES.certificates, certificateService(deps), onlyProjects),
  };
}

/** Webhooks, and the deliveries to them. */
function webhookHandlers(
  deps: CoreDeps,
  config: CoreConfig,
  behind: ReturnType<typeof entrance>,
): Pick<AllHandlers, 'webhooks' | 'deliveries'> {
  const { store, sealer, now, closing } = deps;
  const { webhookRule: rule, webhookRatePerS: ratePerS } = config;
  const allow = cidrList(config.webhookAllowCidrs);
  const webhooks = webhookService({ store, sealer, now, allow, closing });
  const deliveries = deliveryService({ ...deps, rule, ratePerS });
  return {
    webhooks: behind(SERVICES.webhooks, webhooks, onlyProjects),
    deliveries: behind(SERVICES.deliveries, deliveries, onlyGateways),
  };
}

/** An operator login may call all but the RPCs that make logins. */
function operatorHandlers(
  deps: CoreDeps,
  config: CoreConfig,
  { quotas, behind }: { quotas: Quotas; behind: ReturnType<typeof entrance> },
): AllHandlers['operators'] {
  const { createConsoleCode, createOperatorCode, ...others } = SERVICES.operators;
  const operators = {
    ...operatorService({ ...deps, ...config, quotas }),
    ...backupService({ ...deps, dataDir: config.dataDir, bucketName: nameOf(config.bucket) }),
  };
  return {
    ...behind(others, operators, onlyOperators),
    ...behind({ createConsoleCode, createOperatorCode }, operators, onlyOperatorTokens),
  };
}

/** A project makes a link; the holder of the link reads. */
function consoleShares(
  behind: ReturnType<typeof entrance>,
  deps: CoreDeps,
  reads: Omit<Parameters<typeof sharedSessions>[0], 'store'>,
): Handlers<typeof SERVICES.consoleShares> {
  const { createSessionShare, ...ofHolders } = SERVICES.consoleShares;
  const shared = sharedSessions({ store: deps.store, ...reads });
  return {
    ...behind({ createSessionShare }, shareMaker(deps), onlyProjects),
    ...behind(ofHolders, shared, onlyShares),
  };
}

function operatorPages(
  deps: CoreDeps,
  { dataDir, bucket, database, databaseCaFile }: CoreConfig,
  behind: ReturnType<typeof entrance>,
): AllHandlers['operatorConsole'] {
  const { checkHealth } = healthService(deps);
  const stored = { dataDir, bucket, database, databaseCaFile };
  const pages = operatorConsoleService({
    ...deps,
    health: async (call) => (await checkHealth({}, call)).checks,
    diagnose: openDiagnosis({ ...stored, closing: deps.closing }),
  });
  return behind(SERVICES.operatorConsole, pages, onlyOperators);
}

/** Checks of every call before a service: the caller, shares, free disk space, the log. */
function entrance({ store, authenticate, disk, log, now, draining }: CoreDeps) {
  const audit = openAudit({ store, now, log });
  const enterCall = callShares();
  const entered = (name: string): void => {
    if (NEW_WORK.has(name)) disk.checkRoom();
    if (draining.aborted && NEW_RUNS.has(name)) {
      throw new Fault('DRAINING', 'The service drains before it ends: it starts no new work.');
    }
  };
  return <D extends Definition, C>(
    definition: D,
    service: Service<D, C>,
    admit: Admit<C>,
  ): Handlers<D> => {
    const rules = { authenticate, enterCall, admit, entered, audit };
    return logged(definition, guarded(definition, service, rules), log);
  };
}
