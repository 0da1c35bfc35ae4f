/** An invocation as its project reads it. Pure. */
import type { Invocation } from '../../proto/gen/tabern/v1/invocations.pb.ts';
import type { InvocationCause, InvocationRow } from '../store/types/invocations.ts';
import type { ShowJson } from './json-values.ts';

/** Params and results are converted by `show`. */
export function invocationToProto(row: InvocationRow, show: ShowJson): Invocation {
  const [params, results] = [show(row.params), show(row.results)];
  return {
    id: row.id,
    projectId: row.projectId,
    functionId: row.functionId,
    versionId: row.versionId,
    sessionId: row.sessionId,
    region: row.region,
    params: params.value,
    paramsJson: params.text,
    status: row.status,
    results: results.value,
    resultsJson: results.text,
    createdAt: new Date(row.createdAt),
    updatedAt: new Date(row.updatedAt),
    startedAt: new Date(row.startedAt ?? row.createdAt),
    endedAt: row.endedAt === null ? undefined : new Date(row.endedAt),
    expiresAt: new Date(row.expiresAt),
    cause: row.cause === null ? undefined : causeToProto(JSON.parse(row.cause)),
  };
}

function causeToProto({ code, message, name, stack }: InvocationCause): Invocation['cause'] {
  return { code, message, name, stack };
}
