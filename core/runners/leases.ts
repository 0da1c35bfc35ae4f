/**
 * Leases: runners take work, prolong it and end it. An offered lease becomes theirs, and its work
 * RUNNING, when they first renew it (a session when they start it); one that never reached them is
 * undone. A held lease is renewed however late its runner reports, until TABERN_LOST_MS have
 * passed: then it is lost, and its work ends FAILED INTERNAL_ERROR (a session: ERROR); nothing is
 * run twice. Only the runner token opens this service.
 *   waiting --lease--> offered --renew--> held --renew--> held --complete--> ended
 *   offered --silence--> waiting;  held --long silence--> lost
 */

import type { Log } from '../../proto/common/log.ts';
import type {
  ExtensionWork,
  LeaseWorkRequest,
  RunnerServiceService,
  Work,
} from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { throwIfOver } from '../../proto/rpc/local.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { longPoll } from '../api/long-poll.ts';
import { newId } from '../common/ids.ts';
import type { LogReaders } from '../common/log-readers.ts';
import { type ContentOptions, contextWork, saveContext } from '../contexts/content.ts';
import { certificatesOf } from '../files/certificates.ts';
import { addDownload } from '../files/downloads.ts';
import type { Receipts } from '../files/receipts.ts';
import {
  type OpenSecrets,
  type SecretValues,
  UnreadableSecret,
} from '../functions/secret-values.ts';
import type { Readiness } from '../maintenance/readiness.ts';
import type { Quotas } from '../projects/quotas.ts';
import { leasedHandoffs } from '../sessions/handoffs.ts';
import type { ViewTokens } from '../sessions/live-view.ts';
import { isOfProxies, type SessionSecrets } from '../sessions/proxy-secrets.ts';
import { addRecording } from '../sessions/recordings/arrivals.ts';
import type { SigningKeys } from '../sessions/signing-keys.ts';
import type { LeasedExtension } from '../store/types/files.ts';
import type { LeasedWork, WorkKind } from '../store/types/leases.ts';
import type { Validator } from '../validation/validator.ts';
import { checkAddress, ofHolders } from './holders.ts';
import { buildOutcome, invocationOutcome, stepsJson } from './outcomes.ts';
import { checkedFacts, reportRunner } from './reports.ts';
import { sessionLeases } from './session-leases.ts';

/**
 * Work items in one answer. Ours: with params of 64 KiB and secrets of 256 KiB each it stays far
 * below 48 MiB.
 */
const LEASE_MAX = 64;
const KINDS = { INVOCATION: 'invocation', BUILD: 'build', SESSION: 'session' } as const;

type LeaseOptions = ContentOptions & {
  validator: Validator;
  quotas: Pick<Quotas, 'usual'>;
  readers: LogReaders;
  receipts: Pick<Receipts, 'read'>;
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

  return ofHolders<typeof RunnerServiceService>({
    async registerRunner({ runnerId, instanceId, address, facts, browser }, { call }) {
      if (address !== undefined) checkAddress(address, call);
      const report = checkedFacts({ facts, browser });
      await store.registerRunner({ runnerId, instanceId, address, at: now() });
      readiness.record({ runnerId, browserFailed: false, isDraining: false, ...report });
      return { leaseMs };
    },

    async leaseWork(request, { call }) {
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

    reportRunner: (request) => reportRunner(options, request),

    saveContext: (request) => saveContext(options, request),
    ...sessionLeases(options),
    ...leasedHandoffs(options),
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
  });
}

function kindOf(kind: LeaseWorkRequest['kind']): WorkKind {
  if (kind !== 'KIND_UNSPECIFIED') return KINDS[kind];
  throw invalidField('kind', 'must be INVOCATION, BUILD or SESSION.');
}

/**
 * The work items for the runner. Work with a damaged secret cannot be leased and ends here. What
 * cannot be read for the moment waits again; the rest is leased. Throws when nothing can be read.
 */
async function toWorkItems(options: LeaseOptions, taken: LeasedWork[]): Promise<Work[]> {
  const open = options.secretValues.opener();
  const faults: Fault[] = [];
  const read = async (one: LeasedWork): Promise<Work | undefined> => {
    try {
      return await toProto(options, one, open);
    } catch (error) {
      if (!isPassing(error)) return await endUnreadable(options, one, error);
      faults.push(error);
      await options.store.putBackWork([one.leaseId]);
      return undefined;
    }
  };
  const ready = (await Promise.all(taken.map(read))).filter((one) => one !== undefined);
  const [fault] = faults;
  if (fault !== undefined && ready.length === 0) throw fault;
  return ready;
}

function isPassing(error: unknown): error is Fault {
  return error instanceof Fault && error.reason === 'CORE_UNAVAILABLE';
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
