/**
 * Leases: runners take work, prolong it and end it. An offered lease becomes theirs, and its work
 * RUNNING, when they first renew it (a session when they start it); one that never reached them is
 * undone. A held lease that is not renewed in time is lost, and its work ends FAILED INTERNAL_ERROR
 * (a session: ERROR); nothing is run twice. Only the runner token opens this service.
 *   waiting --lease--> offered --renew--> held --renew--> held --complete--> ended
 *   offered --silence--> waiting;  held --silence--> lost
 */

import { RUNNER_BATCH_MAX } from '../../proto/common/limits.ts';
import type { Log } from '../../proto/common/log.ts';
import type {
  ExtensionWork,
  LeaseWorkRequest,
  RunnerBrowser,
  RunnerFacts,
  RunnerServiceService,
  Work,
} from '../../proto/gen/tabern/v1/runners.pb.ts';
import { invalidField } from '../../proto/rpc/errors.ts';
import { throwIfOver } from '../../proto/rpc/local.ts';
import { inRange, leaseLost } from '../api/checks.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { longPoll } from '../api/long-poll.ts';
import { newId } from '../common/ids.ts';
import { type ContentOptions, contextWork, saveContext } from '../contexts/content.ts';
import { certificatesOf } from '../files/certificates.ts';
import { addDownload } from '../files/downloads.ts';
import {
  type OpenSecrets,
  type SecretValues,
  UnreadableSecret,
} from '../functions/secret-values.ts';
import type { Readiness } from '../maintenance/readiness.ts';
import type { Quotas } from '../projects/quotas.ts';
import { leasedHandoffs } from '../sessions/handoffs.ts';
import type { ViewTokens } from '../sessions/live-view.ts';
import { appendSessionLogs } from '../sessions/logs.ts';
import { isOfProxies, type SessionSecrets } from '../sessions/proxy-secrets.ts';
import { addRecording } from '../sessions/recordings/recordings.ts';
import type { SigningKeys } from '../sessions/signing-keys.ts';
import type { LeasedExtension } from '../store/types/files.ts';
import type { LeasedWork, WorkKind } from '../store/types/leases.ts';
import type { Validator } from '../validation/validator.ts';
import { buildOutcome, invocationOutcome, stepsJson } from './outcomes.ts';
import { sessionLeases } from './session-leases.ts';

/** Ours: paths of sockets end at some 100 bytes, names of hosts at 253. */
const ADDRESS = /^(unix:\/.{1,500}|[^\s:/][^\s/]{0,300}:\d{1,5})$/;
const FACT_LENGTH = { max: 128, unit: ' characters' };
const NAME_LENGTH = { min: 1, max: 128, unit: ' characters' };
/**
 * Work items in one answer. Ours: with params of 64 KiB and secrets of 256 KiB each it stays far
 * below 48 MiB.
 */
const LEASE_MAX = 64;
/** In bytes of text per invocation or build. Ours: a log is read in one answer. */
const LOG_MAX_BYTES = 1 << 20;
/** Ours: empty lines have no bytes but use memory. */
const LOG_LINES_MAX = 20_000;
const LOG_MARKER = '[the log exceeds 1 MiB or 20,000 lines: what follows is not kept]';

const KINDS = { INVOCATION: 'invocation', BUILD: 'build', SESSION: 'session' } as const;

type LeaseOptions = ContentOptions & {
  validator: Validator;
  quotas: Pick<Quotas, 'checkRoom' | 'within'>;
  signingKeys: SigningKeys;
  secrets: SessionSecrets;
  secretValues: Pick<SecretValues, 'opener'>;
  log: Log;
  leaseMs: number;
  readiness: Pick<Readiness, 'record'>;
  closing: AbortSignal;
  tokens: Pick<ViewTokens, 'of'>;
};

export function runnerService(
  options: LeaseOptions,
): Service<typeof RunnerServiceService, MachineCaller> {
  const { store, now, leaseMs, readiness } = options;

  return {
    async registerRunner({ runnerId, instanceId, address }) {
      checkHolder({ runnerId, instanceId });
      if (address !== undefined && !ADDRESS.test(address)) {
        throw invalidField('address', 'must be unix:<path> or <host>:<port>.');
      }
      await store.registerRunner({ runnerId, instanceId, address, at: now() });
      readiness.record({ runnerId, browserFailed: false });
      return { leaseMs };
    },

    async leaseWork(request, { call }) {
      checkHolder(request);
      const kind = kindOf(request.kind);
      const { runnerId, instanceId, places } = request;
      const length = Math.min(Math.max(request.max, 1), LEASE_MAX);
      const look = async () => {
        const leaseIds = Array.from({ length }, () => newId());
        const wanted = { runnerId, instanceId, kind, leaseIds, places, leaseMs, at: now() };
        const taken = await store.leaseWork(wanted);
        return { taken, work: await toWorkItems(options, taken) };
      };
      const { work } = await longPoll(store, `work:${kind}`, look, {
        call,
        closing: options.closing,
        waitMs: request.waitMs,
        isDone: (found) => found.work.length > 0,
        // no item could be sent: there may be more
        againMs: ({ taken }) => (taken.length > 0 ? 0 : request.waitMs),
      });
      // The caller disconnected meanwhile and would never renew the leases.
      if (call.signal.aborted && work.length > 0) {
        await store.putBackWork(work.map(({ leaseId }) => leaseId));
      }
      throwIfOver(call);
      return { work };
    },

    async renewLeases({ runnerId, instanceId, leaseIds, browserFailed, browser, facts }) {
      checkHolder({ runnerId, instanceId });
      if (leaseIds.length > RUNNER_BATCH_MAX)
        throw invalidField('leaseIds', `must be at most ${RUNNER_BATCH_MAX}.`);
      checkBrowser(browser);
      const wanted = { runnerId, instanceId, leaseIds, leaseMs, at: now() };
      const kept = await store.renewLeases(wanted);
      readiness.record({ runnerId, browserFailed, browser, facts: facts && checkedFacts(facts) });
      return { leaseIds: kept };
    },

    async appendLogs({ leaseId, first, lines }) {
      if (lines.length > RUNNER_BATCH_MAX)
        throw invalidField('lines', `must be at most ${RUNNER_BATCH_MAX}.`);
      const rows = lines.map(({ timestamp: at, ...line }) => ({ ...line, at }));
      const limit = { maxBytes: LOG_MAX_BYTES, linesMax: LOG_LINES_MAX, marker: LOG_MARKER };
      const isHeld = await store.appendLogs({ leaseId, first, lines: rows, ...limit });
      if (!isHeld) throw leaseLost(leaseId);
      return {};
    },

    saveContext: (request) => saveContext(options, request),
    ...sessionLeases(options),
    ...leasedHandoffs(options),
    appendSessionLogs: (request) => appendSessionLogs(options, request),
    addDownload: (request) => addDownload(options, request),
    addRecording: (request) => addRecording(options, request),

    async completeInvocation({ leaseId, outcome, sessionStartMs, steps }) {
      const at = now();
      const sessionStartedAt = sessionStartMs > 0 ? Math.min(Math.round(sessionStartMs), at) : null;
      const checked = await invocationOutcome(options, leaseId, outcome);
      const end = { leaseId, outcome: checked, sessionStartedAt, steps: stepsJson(steps), at };
      return { accepted: await store.completeInvocation(end) };
    },

    async completeBuild({ leaseId, outcome }) {
      const checked = await buildOutcome(options, leaseId, outcome);
      return { accepted: await store.completeBuild({ leaseId, outcome: checked, at: now() }) };
    },
  };
}

function checkHolder({ runnerId, instanceId }: { runnerId: string; instanceId: string }): void {
  inRange('runnerId', runnerId.length, NAME_LENGTH);
  inRange('instanceId', instanceId.length, NAME_LENGTH);
}

/** Source: runners.proto. */
function checkBrowser(browser: RunnerBrowser | undefined): void {
  if (browser === undefined) return;
  inRange('browser.product', browser.product.length, { max: 128, unit: ' characters' });
  for (const name of ['buildMs', 'startedAgoMs'] as const) {
    inRange(`browser.${name}`, browser[name], { max: Number.MAX_SAFE_INTEGER });
  }
}

/** Names of the machine's own programs; their length is bounded. */
function checkedFacts(facts: RunnerFacts): RunnerFacts {
  const { version, chrome, sandbox } = facts;
  for (const [field, text] of Object.entries({ version, chrome, sandbox })) {
    inRange(field, text.length, FACT_LENGTH);
  }
  return facts;
}

function kindOf(kind: LeaseWorkRequest['kind']): WorkKind {
  if (kind !== 'KIND_UNSPECIFIED') return KINDS[kind];
  throw invalidField('kind', 'must be INVOCATION, BUILD or SESSION.');
}

/** The work items for the runner. Work with a damaged secret cannot be leased and ends here. */
async function toWorkItems(options: LeaseOptions, taken: LeasedWork[]): Promise<Work[]> {
  const open = options.secretValues.opener();
  const ready = await Promise.all(
    taken.map((one) =>
      toProto(options, one, open).catch((error) => endUnreadable(options, one, error)),
    ),
  );
  return ready.filter((one) => one !== undefined);
}

async function endUnreadable(
  { store, log, now }: LeaseOptions,
  { kind, leaseId, id }: LeasedWork,
  error: unknown,
): Promise<undefined> {
  if (kind === 'build') throw error;
  log.error({ err: error, [`${kind}Id`]: id }, 'a secret of leased work could not be opened');
  const message = unreadable(error);
  if (kind === 'session') {
    const end = { status: 'ERROR', reason: message, proxyBytes: 0 } as const;
    await store.completeSession({ leaseId, ...end, at: now() });
    return;
  }
  const cause = { code: 'INTERNAL_ERROR', message } as const;
  const outcome = { kind: 'failure', cause } as const;
  await store.completeInvocation({ leaseId, outcome, sessionStartedAt: null, at: now() });
}

/** For the user: what could not be opened, never its content. */
function unreadable(error: unknown): string {
  if (error instanceof UnreadableSecret) {
    return `The secret "${error.secretKey}" could not be opened. Store its value again.`;
  }
  const what = isOfProxies(error) ? 'proxies' : 'context';
  return `The ${what} of its session could not be read.`;
}

async function toProto(
  options: LeaseOptions,
  work: LeasedWork,
  openSecrets: OpenSecrets,
): Promise<Work> {
  const { signingKeys, secrets } = options;
  const { id, projectId, timeoutMs } = work;
  const offer = { leaseId: work.leaseId, traceparent: work.traceparent ?? undefined };
  if (work.kind === 'build') {
    const { entrypoint, archiveBlobId } = work;
    const value = { buildId: id, projectId, entrypoint, archiveBlobId, timeoutMs };
    return { ...offer, item: { $case: 'build', value } };
  }
  const isSession = work.kind === 'session';
  const sessionId = isSession ? id : work.sessionId;
  const [first, ...others] = work.extensions;
  const session = {
    sessionId,
    projectId,
    timeoutMs,
    context: work.context && (await contextWork(options, work.context)),
    extension: first && extensionWork(first),
    moreExtensions: others.map(extensionWork),
    caCertificates: work.certificates.flatMap(certificatesOf),
    sessionParamsJson: secrets.open(isSession ? work.params : work.sessionParams, sessionId),
    signingKey: signingKeys.of(sessionId),
  };
  if (isSession) {
    const value = { ...session, keepAlive: work.keepAlive };
    return { ...offer, item: { $case: 'session', value } };
  }
  const { versionId, functionId, functionName, bundleBlobId, bundleSha256, region } = work;
  const owner = { functionId, projectId };
  const attached = work.secretCount > 0 ? await openSecrets(owner) : [];
  const invocation = { invocationId: id, versionId, functionName, region };
  const bundle = { bundleBlobId, bundleSha256 };
  const value = {
    ...session,
    ...invocation,
    ...bundle,
    paramsJson: work.params,
    secrets: attached,
  };
  return { ...offer, item: { $case: 'invocation', value } };
}

function extensionWork({ id, ...file }: LeasedExtension): ExtensionWork {
  return { extensionId: id, ...file };
}
