/**
 * Work items for a runner: leased work with what it needs opened. Work whose context, proxies or
 * secrets are damaged ends here. What cannot be read for the moment (its bucket or the database is
 * away) waits again, and no other work waits for it.
 */
import type { Log } from '../../proto/common/log.ts';
import type { ExtensionWork, Work } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { type ContentOptions, contextWork } from '../contexts/content.ts';
import { certificatesOf } from '../files/certificates.ts';
import { isDamage } from '../files/checked-bytes.ts';
import {
  type OpenSecrets,
  type SecretValues,
  UnreadableSecret,
} from '../functions/secret-values.ts';
import { logEnd } from '../sessions/ended-sessions.ts';
import { isOfProxies, type SessionSecrets } from '../sessions/proxy-secrets.ts';
import type { SigningKeys } from '../sessions/signing-keys.ts';
import type { LeasedExtension } from '../store/types/files.ts';
import type { LeasedWork } from '../store/types/leases.ts';

/**
 * Work items in one answer. Ours: with params of 64 KiB and secrets of 256 KiB each it stays far
 * below 48 MiB.
 */
export const LEASE_MAX = 64;
/** Ours: for the contexts of one answer, of which a bucket sends each in a tenth of a second. */
const READ_MS = 3_000;
/** Ours: no further work is leased for an answer after so long, a part of a lease. */
const TAKE_MS = 5_000;
/** Ours: until work that could not be read is tried again. */
const AGAIN_MS = 2_000;

export type WorkItemOptions = ContentOptions & {
  signingKeys: SigningKeys;
  secrets: SessionSecrets;
  secretValues: Pick<SecretValues, 'opener'>;
  log: Log;
};

/** Leases more, while so many leases are held. */
type Take = (held: number) => Promise<LeasedWork[]>;
type Unreadable = { leaseId: string; error: unknown };

/**
 * Leases until some work can be read. Meanwhile the lease of what cannot be read is held, so that
 * the next one is of other work, of another project. `againMs`: when there may be more.
 */
export async function readableWork(
  options: WorkItemOptions,
  take: Take,
): Promise<{ work: Work[]; againMs?: number }> {
  const endsAt = performance.now() + TAKE_MS;
  const waiting: Unreadable[] = [];
  try {
    for (;;) {
      const taken = await take(waiting.length);
      const { work, unreadable } = await read(options, taken);
      waiting.push(...unreadable);
      const isOver = waiting.length === LEASE_MAX || performance.now() > endsAt;
      if (work.length === 0 && taken.length > 0 && !isOver) continue;
      if (waiting.length > 0) return { work, againMs: AGAIN_MS };
      return taken.length > 0 ? { work, againMs: 0 } : { work };
    }
  } finally {
    await putBack(options, waiting);
  }
}

/** What fails to be put back waits until its lease expires. */
async function putBack(
  { store, log }: WorkItemOptions,
  waiting: readonly Unreadable[],
): Promise<void> {
  const [first] = waiting;
  if (first === undefined) return;
  log.warn({ err: first.error, count: waiting.length }, 'leased work cannot be read, and waits');
  const leaseIds = waiting.map(({ leaseId }) => leaseId);
  await store.putBackWork({ leaseIds, isQuiet: true }).catch((err: unknown) => {
    log.warn({ err, count: waiting.length }, 'work that could not be read keeps its lease');
  });
}

/** The error of one holds up no other; a silent bucket holds up the answer for READ_MS. */
async function read(
  options: WorkItemOptions,
  taken: readonly LeasedWork[],
): Promise<{ work: Work[]; unreadable: Unreadable[] }> {
  if (taken.length === 0) return { work: [], unreadable: [] };
  const open = options.secretValues.opener();
  const unreadable: Unreadable[] = [];
  const signal = AbortSignal.timeout(READ_MS);
  const items = taken.map(async (one) => {
    const ended = (error: unknown) => endDamaged(options, one, error);
    return await toProto(options, one, { open, signal })
      .catch(ended)
      .catch((error: unknown) => {
        unreadable.push({ leaseId: one.leaseId, error });
        return undefined;
      });
  });
  const work = (await Promise.all(items)).filter((item) => item !== undefined);
  return { work, unreadable };
}

/** Ends the work when it is damaged, and throws any other error. */
async function endDamaged(
  { store, log, now }: WorkItemOptions,
  work: LeasedWork,
  error: unknown,
): Promise<undefined> {
  const { kind, leaseId, id } = work;
  const isLost = error instanceof UnreadableSecret || isDamage(error);
  if (!isLost || kind === 'build') throw error;
  log.error({ err: error, [`${kind}Id`]: id }, 'a secret of leased work could not be opened');
  const message = lossOf(error);
  const end = { status: 'ERROR', reason: message } as const;
  const cause = { code: 'INTERNAL_ERROR', message } as const;
  const outcome = { kind: 'failure', cause } as const;
  const hasEnded =
    kind === 'session'
      ? await store.completeSession({ leaseId, ...end, proxyBytes: 0, at: now() })
      : await store.completeInvocation({ leaseId, outcome, sessionStartedAt: null, at: now() });
  if (hasEnded) logEnd(log, { id: kind === 'session' ? id : work.sessionId, ...end });
  return undefined;
}

/** For the user: what could not be opened, never its content. */
function lossOf(error: unknown): string {
  if (error instanceof UnreadableSecret) {
    return `the secret "${error.secretKey}" could not be opened: store its value again`;
  }
  const what = isOfProxies(error) ? 'proxies' : 'context';
  return `the ${what} of the session could not be read`;
}

async function toProto(
  options: WorkItemOptions,
  work: LeasedWork,
  { open, signal }: { open: OpenSecrets; signal: AbortSignal },
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
    context: work.context && (await contextWork(options, work.context, signal)),
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
  const attached = work.secretCount > 0 ? await open(owner) : [];
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
