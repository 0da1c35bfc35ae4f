/** Invocations as their project reads them, alone and on a page. Pure. */
import type { Invocation } from '../../proto/gen/tabern/v1/invocations.pb.ts';
import { dateOf, resourceOf } from '../api/answers.ts';
import type { InvocationCause, InvocationRow } from '../store/types/invocations.ts';
import type { ShowJson } from './json-values.ts';

/** Params and results are converted by `show`. */
export function invocationToProto(row: InvocationRow, show: ShowJson): Invocation {
  const [params, results] = [show(row.params), show(row.results)];
  return {
    ...resourceOf(row),
    functionId: row.functionId,
    versionId: row.versionId,
    sessionId: row.sessionId,
    region: row.region,
    params: params.value,
    paramsJson: params.text,
    status: row.status,
    results: results.value,
    resultsJson: results.text,
    startedAt: new Date(row.startedAt ?? row.createdAt),
    endedAt: dateOf(row.endedAt),
    expiresAt: new Date(row.expiresAt),
    cause: row.cause === null ? undefined : causeToProto(JSON.parse(row.cause)),
    trigger: triggerToProto(row),
  };
}

/** Absent when a request started it. */
export function triggerToProto({
  scheduleId,
  scheduledFor,
}: Pick<InvocationRow, 'scheduleId' | 'scheduledFor'>): Invocation['trigger'] {
  if (scheduleId === null) return undefined;
  return { type: 'schedule', scheduleId, scheduledFor: dateOf(scheduledFor) };
}

function causeToProto({ code, message, name, stack }: InvocationCause): Invocation['cause'] {
  return { code, message, name, stack };
}

/** Maximum bytes on the wire per byte of JSON: `1,` becomes eleven. */
export const WIRE_PER_JSON = 5.5;
/** In bytes of JSON, of a page. Ours: on the wire it stays below 16 MiB. */
export const PAGE_MAX_BYTES = 2.5 * 1024 * 1024;

/** An invocation of a page. Results are omitted first, because GET returns them. */
type Shown = { row: InvocationRow; hasParams: boolean };

/**
 * The rows in their order, without values beyond the limit: results are omitted first, then params.
 */
export function fitting(rows: readonly InvocationRow[]): Shown[] {
  let left = PAGE_MAX_BYTES;
  const takes = (json: string): boolean => {
    const bytes = Buffer.byteLength(json);
    if (bytes > left) return false;
    left -= bytes;
    return true;
  };
  return rows.map((row) => {
    const hasParams = takes(row.params);
    const hasResults = row.results !== null && takes(row.results);
    return { row: hasResults ? row : { ...row, results: null }, hasParams };
  });
}
