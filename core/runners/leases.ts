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
  LeaseWorkRequest,
  RunnerServiceService,
  Work,
} from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { throwIfOver } from '../../proto/rpc/local.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { longPoll, waitUntil } from '../api/long-poll.ts';
import { newId } from '../common/ids.ts';
import { type ContentOptions, contextWork, saveContext } from '../contexts/content.ts';
import { addDownload } from '../files/downloads.ts';
import { extensionWork } from '../files/extensions.ts';
import type { Readiness } from '../maintenance/readiness.ts';
import type { Quotas } from '../projects/quotas.ts';
import { appendSessionLogs } from '../sessions/logs.ts';
import { isOfProxies, type SessionSecrets } from '../sessions/proxy-secrets.ts';
import { addRecording } from '../sessions/recordings/recordings.ts';
import type { SigningKeys } from '../sessions/signing-keys.ts';
import type { LeasedWork, WorkKind } from '../store/types/leases.ts';
import type { Validator } from '../validation/validator.ts';
import { buildOutcome, invocationOutcome } from './outcomes.ts';
import { sessionLeases } from './session-leases.ts';

/** Ours: paths of sockets end at some 100 bytes, names of hosts at 253. */
const ADDRESS = /^(unix:\/.{1,500}|[^\s:/][^\s/]{0,300}:\d{1,5})$/;
/** Work items in one answer. Ours: with params of 64 KiB each it stays far below 16 MiB. */
const LEASE_MAX = 64;
/** In bytes of text per invocation or build. Ours: a log is read in one answer. */
const LOG_MAX_BYTES = 1 << 20;
/** Ours: empty lines have no bytes but use memory. */
const LOG_LINES_MAX = 20_000;
const LOG_MARKER = '[the log exceeds 1 MiB or 20,000 lines: what follows is not kept]';

export type LeaseOptions = ContentOptions & {
  validator: Validator;
  quotas: Pick<Quotas, 'checkRoom' | 'within'>;
  signingKeys: SigningKeys;
  secrets: SessionSecrets;
  log: Log;
  leaseMs: number;
  readiness: Pick<Readiness, 'heard'>;
  /** Aborts when core closes: waiting polls are answered at once. */
  closing: AbortSignal;
};

export function runnerService(
  options: LeaseOptions,
): Service<typeof RunnerServiceService, MachineCaller> {
  const { store, validator, now, leaseMs, readiness } = options;

  return {
    async registerRunner({ runnerId, instanceId, address }) {
      checkHolder({ runnerId, instanceId });
      if (address !== undefined && !ADDRESS.test(address)) {
        throw invalidField('address', 'must be unix:<path> or <host>:<port>.');
      }
      await store.registerRunner({ runnerId, instanceId, address, at: now() });
      readiness.heard({ runnerId, browserFailed: false });
      return { leaseMs };
    },

    async leaseWork(request, { call }) {
      checkHolder(request);
      const kind = kindOf(request.kind);
      const look = async () => {
        const taken = await take(options, request, kind);
        return { taken, work: await toWorkItems(options, taken) };
      };
      const { work } = await longPoll(store, `work:${kind}`, look, {
        until: waitUntil(call, request.waitMs),
        isDone: (found) => found.work.length > 0,
        signal: AbortSignal.any([call.signal, options.closing]),
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

    async renewLeases({ runnerId, instanceId, leaseIds, browserFailed }) {
      checkHolder({ runnerId, instanceId });
      if (leaseIds.length > RUNNER_BATCH_MAX)
        throw invalidField('leaseIds', `must be at most ${RUNNER_BATCH_MAX}.`);
      const wanted = { runnerId, instanceId, leaseIds, leaseMs, at: now() };
      const kept = await store.renewLeases(wanted);
      readiness.heard({ runnerId, browserFailed });
      return { leaseIds: kept };
    },

    async appendLogs({ leaseId, first, lines }) {
      if (lines.length > RUNNER_BATCH_MAX)
        throw invalidField('lines', `must be at most ${RUNNER_BATCH_MAX}.`);
      const rows = lines.map(({ message, timestamp, level }) => ({
        message,
        at: timestamp,
        level,
      }));
      const limit = { maxBytes: LOG_MAX_BYTES, linesMax: LOG_LINES_MAX, marker: LOG_MARKER };
      const isHeld = await store.appendLogs({ leaseId, first, lines: rows, ...limit });
      if (!isHeld) throw new Fault('LEASE_LOST', 'The lease is lost or has ended.', { leaseId });
      return {};
    },

    saveContext: (request) => saveContext(options, request),
    ...sessionLeases(options),
    appendSessionLogs: (request) => appendSessionLogs(options, request),
    addDownload: (request) => addDownload(options, request),
    addRecording: (request) => addRecording(options, request),

    async completeInvocation({ leaseId, outcome, sessionStartMs }) {
      const at = now();
      const sessionStartedAt = sessionStartMs > 0 ? Math.min(Math.round(sessionStartMs), at) : null;
      const checked = await invocationOutcome({ store, validator }, { leaseId, outcome });
      const end = { leaseId, outcome: checked, sessionStartedAt, at };
      return { accepted: await store.completeInvocation(end) };
    },

    async completeBuild({ leaseId, outcome }) {
      const checked = await buildOutcome({ store, validator }, leaseId, outcome);
      return { accepted: await store.completeBuild({ leaseId, outcome: checked, at: now() }) };
    },
  };
}

function take(
  { store, now, leaseMs }: LeaseOptions,
  { runnerId, instanceId, max, places }: LeaseWorkRequest,
  kind: WorkKind,
): Promise<LeasedWork[]> {
  const leaseIds = Array.from({ length: Math.min(Math.max(max, 1), LEASE_MAX) }, () => newId());
  return store.leaseWork({ runnerId, instanceId, kind, leaseIds, places, leaseMs, at: now() });
}

function checkHolder({ runnerId, instanceId }: { runnerId: string; instanceId: string }): void {
  for (const [field, value] of Object.entries({ runnerId, instanceId })) {
    if (value === '' || value.length > 128)
      throw invalidField(field, 'must be 1 to 128 characters.');
  }
}

function kindOf(kind: LeaseWorkRequest['kind']): WorkKind {
  switch (kind) {
    case 'INVOCATION':
      return 'invocation';
    case 'BUILD':
      return 'build';
    case 'SESSION':
      return 'session';
    case 'KIND_UNSPECIFIED':
      throw invalidField('kind', 'must be INVOCATION, BUILD or SESSION.');
  }
}

/** The work items for the runner. Work with a damaged secret cannot be leased and ends here. */
async function toWorkItems(options: LeaseOptions, taken: LeasedWork[]): Promise<Work[]> {
  const ready = await Promise.all(
    taken.map((one) => toProto(options, one).catch((error) => endUnreadable(options, one, error))),
  );
  return ready.filter((one) => one !== undefined);
}

async function endUnreadable(
  { store, log, now }: LeaseOptions,
  { kind, leaseId, id }: LeasedWork,
  error: unknown,
): Promise<undefined> {
  if (kind === 'build') throw error;
  const what = isOfProxies(error) ? 'proxies' : 'context';
  log.error({ err: error, [`${kind}Id`]: id }, `the ${what} of a session could not be opened`);
  const message = `The ${what} of its session could not be read.`;
  if (kind === 'session') {
    const end = { status: 'ERROR', reason: message, proxyBytes: 0 } as const;
    await store.completeSession({ leaseId, ...end, at: now() });
    return;
  }
  const cause = { code: 'INTERNAL_ERROR', message } as const;
  const outcome = { kind: 'failure', cause } as const;
  await store.completeInvocation({ leaseId, outcome, sessionStartedAt: null, at: now() });
}

async function toProto(options: LeaseOptions, work: LeasedWork): Promise<Work> {
  const { signingKeys, secrets } = options;
  const { id, projectId, timeoutMs } = work;
  const offer = { leaseId: work.leaseId, traceparent: work.traceparent ?? undefined };
  if (work.kind === 'build') {
    const { entrypoint, archiveBlobId } = work;
    const value = { buildId: id, projectId, entrypoint, archiveBlobId, timeoutMs };
    return { ...offer, item: { $case: 'build', value } };
  }
  const context = work.context && (await contextWork(options, work.context));
  const extension = work.extension && extensionWork(work.extension);
  if (work.kind === 'session') {
    const signingKey = signingKeys.of(id);
    const { keepAlive } = work;
    const sessionParamsJson = secrets.open(work.params, id);
    const value = {
      sessionId: id,
      projectId,
      sessionParamsJson,
      timeoutMs,
      keepAlive,
      signingKey,
      context,
      extension,
    };
    return { ...offer, item: { $case: 'session', value } };
  }
  const { sessionId, versionId, functionName, bundleBlobId, bundleSha256, region } = work;
  const value = {
    invocationId: id,
    projectId,
    sessionId,
    versionId,
    functionName,
    bundleBlobId,
    bundleSha256,
    timeoutMs,
    region,
    paramsJson: work.params,
    sessionParamsJson: secrets.open(work.sessionParams, sessionId),
    signingKey: signingKeys.of(sessionId),
    context,
    extension,
  };
  return { ...offer, item: { $case: 'invocation', value } };
}
