/** A part of a log or recording in a report of its own; rejects with the fault of the part. */

import { must } from '../../../proto/common/must.ts';
import type {
  LogAnswer,
  LogLines,
  PageRecording,
  SessionLogChunk,
} from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault, type Reason } from '../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import type { Clients } from '../../../proto/rpc/services.ts';

type Core = { clients: Pick<Clients, 'runners'>; asRunner: CallOptions };
const HOLDER = { runnerId: 'runner', instanceId: 'first', leaseIds: [] };

export async function appendLines({ clients, asRunner }: Core, lines: LogLines): Promise<void> {
  const entries = { chunks: [], lines: [lines], recordings: [] };
  const { answers } = await clients.runners.reportRunner({ ...HOLDER, entries }, asRunner);
  accepted(answers?.lines[0]);
}

export async function appendChunk(
  { clients, asRunner }: Core,
  chunk: SessionLogChunk,
): Promise<{ full: boolean }> {
  const entries = { chunks: [chunk], lines: [], recordings: [] };
  const { answers } = await clients.runners.reportRunner({ ...HOLDER, entries }, asRunner);
  return accepted(answers?.chunks[0]);
}

export async function addRecording(
  { clients, asRunner }: Core,
  recording: PageRecording,
): Promise<void> {
  const entries = { chunks: [], lines: [], recordings: [recording] };
  const { answers } = await clients.runners.reportRunner({ ...HOLDER, entries }, asRunner);
  accepted(answers?.recordings[0]);
}

function accepted(answer: LogAnswer | undefined): { full: boolean } {
  const { full, reason, message } = must(answer, 'the answer to the entry');
  if (reason !== '') throw new Fault(reason as Reason, message);
  return { full };
}
