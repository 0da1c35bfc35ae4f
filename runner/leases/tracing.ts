/**
 * A piece of leased work in a span of its own, below the request that asked for it; what the runner
 * tells core of it is below that span. Steps within are proto/common/tracing.ts's.
 */

import { traced } from '../../proto/common/tracing.ts';
import type { Work } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';

/** Runs it, with how to call core meanwhile. */
export function inSpan(
  { item, traceparent }: Work,
  call: CallOptions,
  run: (call: CallOptions) => Promise<void>,
): Promise<void> {
  const name = `runner ${item?.$case ?? 'nothing'}`;
  const span = { name, traceparent, kind: 'CONSUMER', attributes: idOf(item) } as const;
  return traced(span, (scope) => run(below(call, scope.traceparent)));
}

/** Leads from a trace to the work's log, and to what GET says of it. */
function idOf(item: Work['item']): Record<string, string> {
  switch (item?.$case) {
    case 'invocation':
      return { 'tabern.invocation.id': item.value.invocationId };
    case 'session':
      return { 'tabern.session.id': item.value.sessionId };
    case 'build':
      return { 'tabern.build.id': item.value.buildId };
    case undefined:
      return {};
  }
}

function below(call: CallOptions, traceparent: string | undefined): CallOptions {
  if (traceparent === undefined) return call;
  return { ...call, metadata: { ...call.metadata, traceparent } };
}
