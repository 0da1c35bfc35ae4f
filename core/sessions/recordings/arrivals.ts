/**
 * What runners add to recordings: the start of a page, parts of its video, its end. Under the lease
 * of the session's work, and for LATE_MS after the session's end.
 */
import type {
  AddRecordingRequest,
  PageRecording,
} from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { type Fault, invalidField } from '../../../proto/rpc/errors.ts';
import { inRange, LATE_MS, leaseLost } from '../../api/checks.ts';
import { cutUtf8 } from '../../delivery/envelope.ts';
import type { Receipts } from '../../files/receipts.ts';
import { type Quotas, quotaExceeded } from '../../projects/quotas.ts';
import type {
  NewRecording,
  RecordingAnswer,
  RecordingLimits,
} from '../../store/types/recordings.ts';
import type { Store } from '../../store/types.ts';

/** Three digits. Source: proto/spec/sessions.md 8. */
const PAGE_MAX = 999;
/** Ours: segments have some seconds, sessions six hours at most. */
const NUMBER_MAX = 100_000;
/** In bytes. Ours: the URL is only shown. */
const URL_MAX_BYTES = 2 << 10;
/** In milliseconds. Ours: longer than any session. */
const OFFSET_MAX_MS = 7 * 3_600_000;

/** Parts of one entry. Source: runners.proto. */
const PARTS_MAX = 10;

type Options = {
  store: Pick<Store, 'addRecording' | 'getBlob'>;
  quotas: Pick<Quotas, 'usual'>;
  now: () => number;
};

/**
 * For runners of earlier releases, whose blobs have rows. Throws LEASE_LOST, INVALID_FIELD for a
 * blob that the lease may not add, or QUOTA_EXCEEDED for a page without any stored part.
 */
export async function addRecording(
  { store, quotas, now }: Options,
  { blobId, number, ...request }: AddRecordingRequest,
): Promise<Record<string, never>> {
  const page = checkedPage(request);
  const { leaseId, startMs, endMs } = page;
  const blob = blobId === undefined ? undefined : await store.getBlob(blobId);
  if (blobId !== undefined && blob === undefined) throw notAdded('refused', leaseId, 'blobId');
  checkNumber(number);
  const parts = blob === undefined ? [] : [{ number, blob, startMs, endMs }];
  const at = now();
  const added = await store.addRecording({ ...page, ...limits(quotas, at), parts, at });
  if (added !== 'added') throw notAdded(added, leaseId, 'blobId');
  return {};
}

/** Of what runners add to recordings at that time. */
export function limits(quotas: Pick<Quotas, 'usual'>, at: number): RecordingLimits {
  return { quota: quotas.usual('recordingMib'), endedAfter: at - LATE_MS };
}

/** An entry of a report. Throws INVALID_FIELD. */
export function reportedRecording(
  { parts, ...page }: PageRecording,
  { receipts, at }: { receipts: Pick<Receipts, 'read'>; at: number },
): NewRecording {
  const { leaseId } = page;
  if (parts.length > PARTS_MAX) throw invalidField('parts', `must be at most ${PARTS_MAX}.`);
  return {
    ...checkedPage(page),
    parts: parts.map(({ number, receipt, ...times }) => {
      checkNumber(number);
      const found = receipts.read(receipt);
      if (found?.leaseId !== leaseId) throw notAdded('refused', leaseId, 'receipt');
      const { leaseId: _, ...blob } = found;
      return { ...timesOf(times), number, blob: { ...blob, createdAt: at } };
    }),
  };
}

const REFUSED = {
  blobId: 'must be a recording written under this lease.',
  receipt: 'must be of bytes that were stored under this lease within the last 15 minutes.',
} as const;

/** The fault of an entry that was not added, because of that field if it was refused. */
export function notAdded(
  answer: Exclude<RecordingAnswer, 'added'>,
  leaseId: string,
  field: keyof typeof REFUSED,
): Fault {
  if (answer === 'lost') return leaseLost(leaseId);
  if (answer !== 'refused') return quotaExceeded('recordingMib', answer.fullMib);
  return invalidField(field, REFUSED[field]);
}

type Times = { startMs: number; endMs: number };
type RequestedPage = Omit<NewRecording, 'parts'>;

function checkedPage({ leaseId, pageId, url, complete, ...times }: RequestedPage): RequestedPage {
  if (pageId > PAGE_MAX) throw invalidField('pageId', `must be at most ${PAGE_MAX}.`);
  return { ...timesOf(times), leaseId, pageId, complete, url: cutUtf8(url, URL_MAX_BYTES) };
}

function checkNumber(number: number): void {
  if (number > NUMBER_MAX) throw invalidField('number', `must be at most ${NUMBER_MAX}.`);
}

function timesOf({ startMs, endMs }: Times): Times {
  return { startMs: offsetOf('startMs', startMs), endMs: offsetOf('endMs', endMs) };
}

function offsetOf(field: string, ms: number): number {
  return Math.round(inRange(field, ms, { max: OFFSET_MAX_MS }));
}
