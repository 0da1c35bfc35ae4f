/**
 * OpenTelemetry spans, when an SDK was preloaded (`node --import ./tracing.js`): it leaves itself
 * in a global of the API. Else the API is not even loaded, and a traceparent passes as it came.
 * Names and attributes are routes, RPCs, steps and codes of our own, and the id of a piece of work:
 * nothing that a tenant said, and no other id.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as Api from '@opentelemetry/api';

/** Where the API keeps what an SDK has registered. Source: @opentelemetry/api, global-utils. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');
/** W3C Trace Context, version 00. */
const TRACE_PARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
/** Ours: how long the end of a process waits for its last spans to be sent. */
const FLUSH_MAX_MS = 2_000;

type Attributes = Readonly<Record<string, string | number>>;

export type Scope = {
  /** For what is called from here: of this span, or the one that came in. */
  traceparent: string | undefined;
  /** What is known only once it is over. */
  note(name: string, attributes: Attributes): void;
};

export type Traced = {
  name: string;
  traceparent: string | undefined;
  /** SERVER: somebody waits for an answer. CONSUMER: it was asked for earlier. */
  kind?: 'SERVER' | 'CONSUMER';
  attributes?: Attributes;
};

let api: typeof Api | undefined;
/** Of our own: a `Context` finds its way through an await only where an SDK has seen to that. */
const current = new AsyncLocalStorage<{ span: Api.Span; context: Api.Context }>();

/** Once, when a role starts: looks whether there is an SDK. */
export async function startTracing(): Promise<void> {
  if (REGISTERED in globalThis) api = await import('@opentelemetry/api');
}

/** Before a role ends its process: what an SDK still holds is sent, unless that takes too long. */
export async function endTracing(maxMs = FLUSH_MAX_MS): Promise<void> {
  const provider: unknown = api?.trace.getTracerProvider();
  const inner = hasDelegate(provider) ? provider.getDelegate() : provider;
  if (!canFlush(inner)) return;
  const flushed = new AbortController();
  const { signal } = flushed;
  const late = sleep(maxMs, undefined, { signal }).catch(() => undefined);
  // an exporter that fails has told its own log
  await Promise.race([inner.forceFlush().catch(() => undefined), late]);
  flushed.abort();
}

/** Whether spans are made. */
export function isTracing(): boolean {
  return api !== undefined;
}

/** The one that metadata carry, when it is one: callers of gRPC send what they like. */
export function traceparentIn({
  traceparent,
}: Readonly<Record<string, string>>): string | undefined {
  return isTraceparent(traceparent) ? traceparent : undefined;
}

export function isTraceparent(text: unknown): text is string {
  return typeof text === 'string' && TRACE_PARENT.test(text);
}

/** Runs it in a span of its own below the one that came in. */
export async function traced<T>(span: Traced, run: (scope: Scope) => Promise<T>): Promise<T> {
  const { name, traceparent, kind = 'SERVER', attributes = {} } = span;
  if (api === undefined) return run({ traceparent, note: () => undefined });
  const { SpanKind, trace } = api;
  const parent = parentOf(api, traceparent);
  const options = { kind: SpanKind[kind], attributes };
  const own = trace.getTracer('tabern').startSpan(name, options, parent);
  const scope: Scope = {
    traceparent: textOf(own.spanContext()) ?? traceparent,
    note: (final, more) => void own.updateName(final).setAttributes(more),
  };
  return inside(api, { span: own, parent }, () => run(scope));
}

/** Runs it in a span below the one that it is called in; outside of any there is none. */
export async function step<T>(name: string, run: () => Promise<T>): Promise<T> {
  const above = current.getStore();
  if (api === undefined || above === undefined) return run();
  const span = api.trace.getTracer('tabern').startSpan(name, {}, above.context);
  return inside(api, { span, parent: above.context }, run);
}

/** The same function, whose steps are below the span that is current now, whoever calls it then. */
export function kept<A extends unknown[], T>(run: (...given: A) => T): (...given: A) => T {
  return api === undefined ? run : AsyncLocalStorage.bind(run);
}

/** How the work of the current span ended: a code of ours, which is a failure or none. */
export function ended(code: string, isFailure: boolean): void {
  const span = current.getStore()?.span;
  if (api === undefined || span === undefined) return;
  span.setAttributes({ 'tabern.outcome': code });
  if (isFailure) span.setStatus({ code: api.SpanStatusCode.ERROR, message: code });
}

async function inside<T>(
  { context, SpanStatusCode, trace }: typeof Api,
  { span, parent }: { span: Api.Span; parent: Api.Context },
  run: () => Promise<T>,
): Promise<T> {
  const own = trace.setSpan(parent, span);
  try {
    return await current.run({ span, context: own }, () => context.with(own, run));
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR });
    throw error;
  } finally {
    span.end();
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

/** The API's own provider stands before that of the SDK. */
function hasDelegate(provider: unknown): provider is { getDelegate(): unknown } {
  return hasMethod(provider, 'getDelegate');
}

/** Of the SDK's providers, not of the API. */
function canFlush(provider: unknown): provider is { forceFlush(): Promise<void> } {
  return hasMethod(provider, 'forceFlush');
}

function hasMethod(thing: unknown, name: string): boolean {
  return (
    typeof thing === 'object' && thing !== null && typeof Reflect.get(thing, name) === 'function'
  );
}
