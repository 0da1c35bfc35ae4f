/**
 * Leases: runners take work, prolong it and end it. An offered lease becomes theirs, and its work
 * RUNNING, when they first renew it (a session when they start it); one that never reached them is
 * undone. A held lease is renewed however late its runner reports, until TABERN_LOST_MS have
 * passed: then it is lost, and its work ends FAILED INTERNAL_ERROR (a session: ERROR); nothing is
 * run twice. Only the runner token opens this service.
 *   waiting --lease--> offered --renew--> held --renew--> held --complete--> ended
 *   offered --silence--> waiting;  held --long silence--> lost
 */

import type {
  LeaseWorkRequest,
  RunnerServiceService,
} from '../../proto/gen/tabern/v1/runners.pb.ts';
import { invalidField } from '../../proto/rpc/errors.ts';
import { throwIfOver } from '../../proto/rpc/local.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { longPoll } from '../api/long-poll.ts';
import { newId } from '../common/ids.ts';
import type { LogReaders } from '../common/log-readers.ts';
import { type ContentOptions, saveContext } from '../contexts/content.ts';
import { addDownload } from '../files/downloads.ts';
import type { Receipts } from '../files/receipts.ts';
import type { Readiness } from '../maintenance/readiness.ts';
import type { Quotas } from '../projects/quotas.ts';
import { logEnds } from '../sessions/ended-sessions.ts';
import { leasedHandoffs } from '../sessions/handoffs.ts';
import type { ViewTokens } from '../sessions/live-view.ts';
import { addRecording } from '../sessions/recordings/arrivals.ts';
import type { WorkKind } from '../store/types/leases.ts';
import type { Validator } from '../validation/validator.ts';
import { checkAddress, ofHolders } from './holders.ts';
import { buildOutcome, invocationOutcome, stepsJson } from './outcomes.ts';
import { checkedFacts, reportRunner } from './reports.ts';
import { sessionLeases } from './session-leases.ts';
import { LEASE_MAX, readableWork, type WorkItemOptions } from './work-items.ts';

const KINDS = { INVOCATION: 'invocation', BUILD: 'build', SESSION: 'session' } as const;

type LeaseOptions = ContentOptions &
  WorkItemOptions & {
    validator: Validator;
    quotas: Pick<Quotas, 'usual'>;
    readers: LogReaders;
    receipts: Pick<Receipts, 'read'>;
    leaseMs: number;
    readiness: Pick<Readiness, 'record'>;
    closing: AbortSignal;
    tokens: Pick<ViewTokens, 'of'>;
  };

export function runnerService(
  options: LeaseOptions,
): Service<typeof RunnerServiceService, MachineCaller> {
  const { store, log, now, leaseMs, readiness } = options;

  return ofHolders<typeof RunnerServiceService>({
    async registerRunner({ runnerId, instanceId, address, facts, browser }, { call }) {
      if (address !== undefined) checkAddress(address, call);
      const report = checkedFacts({ facts, browser });
      logEnds(log, await store.registerRunner({ runnerId, instanceId, address, at: now() }));
      readiness.record({ runnerId, browserFailed: false, isDraining: false, ...report });
      return { leaseMs };
    },

    async leaseWork(request, { call }) {
      const kind = kindOf(request.kind);
      const { runnerId, instanceId, places } = request;
      const length = Math.min(Math.max(request.max, 1), LEASE_MAX);
      const take = (held: number) => {
        const leaseIds = Array.from({ length: Math.min(length, LEASE_MAX - held) }, () => newId());
        const ofRunner = { runnerId, instanceId, kind, places: places && places + held };
        return store.leaseWork({ ...ofRunner, leaseIds, leaseMs, at: now() });
      };
      const look = () => readableWork(options, take);
      const { work } = await longPoll(store, `work:${kind}`, look, {
        call,
        closing: options.closing,
        waitMs: request.waitMs,
        isDone: (found) => found.work.length > 0,
        againMs: (found) => found.againMs ?? request.waitMs,
      });
      // The caller disconnected meanwhile and would never renew the leases.
      if (call.signal.aborted && work.length > 0) {
        await store.putBackWork({ leaseIds: work.map(({ leaseId }) => leaseId) });
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

    async completeInvocation({ leaseId, outcome, sessionStartMs, steps, browserLoss: loss }) {
      const at = now();
      const sessionStartedAt = sessionStartMs > 0 ? Math.min(Math.round(sessionStartMs), at) : null;
      const checked = await invocationOutcome(options, leaseId, outcome);
      const end = { outcome: checked, sessionStartedAt, browserLoss: loss };
      const reported = { ...end, leaseId, steps: stepsJson(steps), at };
      return { accepted: await store.completeInvocation(reported) };
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
