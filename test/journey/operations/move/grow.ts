/**
 * Adds work to a data directory until it has a size: invocations with results, lines, a protocol
 * log, a file, an event and its delivery, each by the calls of a project, a runner and a sender to
 * core. No browser and no receiver has part in it.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { type Core, startCore } from '../../../../core/main.ts';
import { openLog } from '../../../../proto/common/log.ts';
import type { CallOptions } from '../../../../proto/rpc/local.ts';
import { blobParts, configOn, HOLDER } from '../../../core/boot.ts';

/** Invocations at a time, as many as one project and one runner have. */
const BATCH = 25;
/** Of one invocation, in bytes but for the number of lines: some 230 kB of rows, and a file. */
const [RESULT, LINES, LINE, LOG, FILE] = [15_000, 100, 100, 240_000, 200_000];
const SENDER = { senderId: 'sender', instanceId: randomUUID() };
const CLAIMS = 64;
const DELIVERED = {
  outcome: 'OK',
  status: 204,
  latencyMs: 1,
  error: '',
  response: Buffer.alloc(0),
  abortMessage: false,
} as const;

type As = { project: CallOptions; runner: CallOptions; gateway: CallOptions };
type Grown = { core: Core; as: As };

/** `apiKey`: of the project, which has a webhook for invocations. Returns what was added. */
export async function grow(
  dir: string,
  { bytes, apiKey, functionId }: { bytes: number; apiKey: string; functionId: string },
): Promise<{ invocations: number }> {
  const log = openLog({ role: 'core', level: 'silent' });
  const env = { TABERN_WEBHOOK_RATE: '1000', TABERN_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' };
  await using core = await startCore(configOn(dir, env), log);
  const token = (role: string) => {
    const text = readFileSync(join(dir, 'keys', `${role}.token`), 'utf8').trim();
    return { metadata: { authorization: `Bearer ${text}` } };
  };
  const project = { metadata: { 'x-svc-api-key': apiKey } };
  const grown = { core, as: { project, runner: token('runner'), gateway: token('gateway') } };
  await core.clients.runners.registerRunner(HOLDER, grown.as.runner);
  let invocations = 0;
  let files = 0;
  while (files + databaseBytes(dir) < bytes) {
    await runBatch(grown, functionId);
    await deliverAll(grown);
    invocations += BATCH;
    files += BATCH * FILE;
  }
  return { invocations };
}

function databaseBytes(dir: string): number {
  return statSync(join(dir, 'tabern.db')).size;
}

const text = (bytes: number): string => randomBytes((bytes * 3) / 4).toString('base64');

async function runBatch({ core, as }: Grown, functionId: string): Promise<void> {
  const { invocations, runners } = core.clients;
  const wanted = { functionId, params: { of: text(200) }, sessionCreateParams: undefined };
  await each(BATCH, () => invocations.invokeFunction(wanted, as.project));
  const lease = { ...HOLDER, kind: 'INVOCATION', max: BATCH, waitMs: 10_000 } as const;
  for (let left = BATCH; left > 0; ) {
    const { work } = await runners.leaseWork(lease, as.runner);
    const leaseIds = work.map(({ leaseId }) => leaseId);
    left -= leaseIds.length;
    const log = zstdCompressSync(JSON.stringify({ method: 'Page.moved', params: text(LOG) }));
    const chunk = { number: 0, entries: log, count: 1, size: LOG };
    const at = Date.now();
    const lines = Array.from({ length: LINES }, () => {
      return { message: text(LINE), timestamp: at, level: 'log' };
    });
    const entries = {
      chunks: leaseIds.map((leaseId) => ({ ...chunk, leaseId })),
      lines: leaseIds.map((leaseId) => ({ leaseId, first: 0, lines })),
      recordings: [],
    };
    await runners.reportRunner({ ...HOLDER, leaseIds, entries }, as.runner);
    await Promise.all(leaseIds.map((leaseId) => end({ core, as }, leaseId)));
  }
}

/** With a file and a result. */
async function end({ core, as }: Grown, leaseId: string): Promise<void> {
  const { blobs, runners } = core.clients;
  const parts = blobParts({ kind: 'DOWNLOAD', leaseId }, randomBytes(FILE));
  const { blobId } = await blobs.writeBlob(parts, as.runner);
  await runners.addDownload({ leaseId, blobId, filename: 'a.bin' }, as.runner);
  const outcome = { $case: 'resultsJson', value: JSON.stringify(text(RESULT)) } as const;
  const times = { sessionStartMs: Date.now(), steps: [] };
  await runners.completeInvocation({ leaseId, outcome, ...times }, as.runner);
}

/** Claims what is due until nothing is. */
async function deliverAll({ core, as }: Grown): Promise<void> {
  const { deliveries } = core.clients;
  const claim = { ...SENDER, max: CLAIMS, waitMs: 0 };
  for (;;) {
    const { claims } = await deliveries.claimDeliveries(claim, as.gateway);
    if (claims.length === 0) return;
    const reports = claims.map(({ deliveryId, claimSeq, attemptId }) => ({
      ...DELIVERED,
      deliveryId,
      claimSeq,
      attemptId,
    }));
    await deliveries.reportAttempts({ ...SENDER, reports, max: 0 }, as.gateway);
  }
}

function each(count: number, act: () => Promise<unknown>): Promise<unknown> {
  return Promise.all(Array.from({ length: count }, act));
}
