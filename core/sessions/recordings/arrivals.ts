/**
 * Recordings as runners bring them. What is still to be encoded when a session ends comes under its
 * lease afterwards, for a while: no end waits for an encoder.
 */

import type { AddRecordingRequest } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault, invalidField } from '../../../proto/rpc/errors.ts';
import { cutUtf8 } from '../../delivery/envelope.ts';
import type { Quotas } from '../../projects/quotas.ts';
import type { Store } from '../../store/types.ts';

/** Source: runners.proto. */
export const LATE_MS = 600_000;
/** Source: reference.md 1.2: three digits. */
const PAGE_MAX = 999;
/** Ours: a segment of a page that draws without end has some seconds; a session six hours. */
const NUMBER_MAX = 100_000;
/** In bytes. Ours: it is shown, not followed. */
const URL_MAX_BYTES = 2 << 10;
/** In ms. Ours: beyond a session's longest life. */
const OFFSET_MAX_MS = 7 * 3_600_000;

type Options = {
  store: Pick<Store, 'addRecording' | 'findLease'>;
  quotas: Pick<Quotas, 'checkRoom'>;
  now: () => number;
};

/**
 * Throws LEASE_LOST, INVALID_FIELD for a blob that is not its to add, or QUOTA_EXCEEDED for a page
 * of which nothing could be kept.
 */
export async function addRecording(
  { store, quotas, now }: Options,
  request: AddRecordingRequest,
): Promise<Record<string, never>> {
  const { leaseId, pageId, number, blobId = null, url, complete } = request;
  if (pageId > PAGE_MAX) throw invalidField('pageId', `must be at most ${PAGE_MAX}.`);
  if (number > NUMBER_MAX) throw invalidField('number', `must be at most ${NUMBER_MAX}.`);
  if (blobId === null && !complete) {
    const lease = await store.findLease(leaseId);
    if (lease) await quotas.checkRoom(lease.projectId, 'RECORDING');
  }
  const at = now();
  const added = await store.addRecording({
    leaseId,
    pageId,
    number,
    blobId,
    complete,
    at,
    endedAfter: at - LATE_MS,
    startMs: offsetOf('startMs', request.startMs),
    endMs: offsetOf('endMs', request.endMs),
    url: cutUtf8(url, URL_MAX_BYTES),
  });
  switch (added) {
    case 'lost':
      throw new Fault('LEASE_LOST', 'The lease is lost or has ended.', { leaseId });
    case 'refused':
      throw invalidField('blobId', 'must be a recording written under this lease.');
    case 'added':
      return {};
  }
}

function offsetOf(field: string, ms: number): number {
  if (Number.isFinite(ms) && ms >= 0 && ms <= OFFSET_MAX_MS) return Math.round(ms);
  throw invalidField(field, `must be 0 to ${OFFSET_MAX_MS}.`);
}
