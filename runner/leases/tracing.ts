/**
 * Each piece of leased work has a span, below the request that created the work. The runner's calls
 * on behalf of the work are below that span. Its steps: proto/common/tracing.ts.
 */

import { traced } from '../../proto/common/tracing.ts';
import type { Work } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';

/** Runs it with the options of its calls to core. */
export function inSpan(
  { item, traceparent }: Work,
  call: CallOptions,
  run: (call: CallOptions) => Promise<void>,
): Promise<void> {
  const name = `runner ${item?.$case ?? 'nothing'}`;
  const span = { name, traceparent, kind: 'CONSUMER', attributes: idOf(item) } as const;
  return traced(span, (scope) => run(below(call, scope.traceparent)));
}

/** The id by which the work's log and its resource are found. */
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
