/**
 * OpenTelemetry spans, when an SDK was preloaded (`node --import ./tracing.js`): it leaves itself
 * in a global of the API. Else the API is not even loaded, and a traceparent passes as it came.
 * Names and attributes are routes and RPCs, never an id or what a tenant said.
 */
import type * as Api from '@opentelemetry/api';

/** Where the API keeps what an SDK has registered. Source: @opentelemetry/api, global-utils. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');
/** W3C Trace Context, version 00. */
const TRACE_PARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

export type Scope = {
  /** For what is called from here: of this span, or the one that came in. */
  traceparent: string | undefined;
  /** What is known only once it is over. */
  note(name: string, attributes: Readonly<Record<string, string | number>>): void;
};

let api: typeof Api | undefined;

/** Once, when a role starts: looks whether there is an SDK. */
export async function startTracing(): Promise<void> {
  if (REGISTERED in globalThis) api = await import('@opentelemetry/api');
}

/** Runs it in a span of its own below the one that came in. */
export async function traced<T>(
  span: { name: string; traceparent: string | undefined },
  run: (scope: Scope) => Promise<T>,
): Promise<T> {
  const { name, traceparent } = span;
  if (api === undefined) return run({ traceparent, note: () => undefined });
  const { context, SpanKind, SpanStatusCode, trace } = api;
  const parent = parentOf(api, traceparent);
  const own = trace.getTracer('tabern').startSpan(name, { kind: SpanKind.SERVER }, parent);
  const scope: Scope = {
    traceparent: textOf(own.spanContext()) ?? traceparent,
    note: (final, attributes) => void own.updateName(final).setAttributes(attributes),
  };
  try {
    return await context.with(trace.setSpan(parent, own), () => run(scope));
  } catch (error) {
    own.setStatus({ code: SpanStatusCode.ERROR });
    throw error;
  } finally {
    own.end();
  }
}

function parentOf(
  { ROOT_CONTEXT, trace }: typeof Api,
  traceparent: string | undefined,
): Api.Context {
  const [, traceId, spanId, flags] = TRACE_PARENT.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return ROOT_CONTEXT;
  const came = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, came);
}

/** Undefined for a span that is none: an SDK may be there and record nothing. */
function textOf({ traceId, spanId, traceFlags }: Api.SpanContext): string | undefined {
  if (/^0*$/.test(traceId)) return undefined;
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}
