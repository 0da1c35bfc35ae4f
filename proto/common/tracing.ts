/**
 * OpenTelemetry spans, when an SDK was preloaded (`node --import ./tracing.js`), which registers
 * itself in a global of the API. Otherwise the API is not loaded, and a traceparent is passed on
 * unchanged. Names and attributes are routes, RPCs, steps, codes and the id of the work: no tenant
 * data and no other ids.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as Api from '@opentelemetry/api';

/** Global under which the API stores a registered SDK. Source: @opentelemetry/api, global-utils. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');
/** W3C Trace Context, version 00. */
const TRACE_PARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
/** Ours: at exit the process waits this long for the last spans to be sent. */
const FLUSH_MAX_MS = 2_000;

type Attributes = Readonly<Record<string, string | number>>;

export type Scope = {
  /** The traceparent for outgoing calls: of this span, or the incoming one. */
  traceparent: string | undefined;
  /** Attributes that are known only at the end. */
  note(name: string, attributes: Attributes): void;
};

export type Traced = {
  name: string;
  traceparent: string | undefined;
  /** SERVER: a client waits for the response. CONSUMER: the work was queued earlier. */
  kind?: 'SERVER' | 'CONSUMER';
  attributes?: Attributes;
};

let api: typeof Api | undefined;
/**
 * An AsyncLocalStorage of our own: OpenTelemetry's context crosses an await only where an SDK has
 * set that up.
 */
const current = new AsyncLocalStorage<{ span: Api.Span; context: Api.Context }>();

/** Called once when a role starts: detects the SDK. */
export async function startTracing(): Promise<void> {
  if (REGISTERED in globalThis) api = await import('@opentelemetry/api');
}

/** Called before a role exits: flushes the SDK's spans, within a deadline. */
export async function endTracing(maxMs = FLUSH_MAX_MS): Promise<void> {
  const provider: unknown = api?.trace.getTracerProvider();
  const inner = hasDelegate(provider) ? provider.getDelegate() : provider;
  if (!canFlush(inner)) return;
  const flushed = new AbortController();
  const { signal } = flushed;
  const late = sleep(maxMs, undefined, { signal }).catch(() => undefined);
  // a failing exporter writes its own log
  await Promise.race([inner.forceFlush().catch(() => undefined), late]);
  flushed.abort();
}

/** Whether spans are created. */
export function isTracing(): boolean {
  return api !== undefined;
}

/** The traceparent in metadata, when valid: gRPC callers may send anything. */
export function traceparentIn({
  traceparent,
}: Readonly<Record<string, string>>): string | undefined {
  return isTraceparent(traceparent) ? traceparent : undefined;
}

export function isTraceparent(text: unknown): text is string {
  return typeof text === 'string' && TRACE_PARENT.test(text);
}

/** Runs a function in a child span of the incoming one. */
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

/**
 * Runs a function in a child span of the current one; without a current span, no span is created.
 */
export async function step<T>(name: string, run: () => Promise<T>): Promise<T> {
  const above = current.getStore();
  if (api === undefined || above === undefined) return run();
  const span = api.trace.getTracer('tabern').startSpan(name, {}, above.context);
  return inside(api, { span, parent: above.context }, run);
}

/** Wraps a function so that its spans are children of the current span, whenever it is called. */
export function kept<A extends unknown[], T>(run: (...given: A) => T): (...given: A) => T {
  return api === undefined ? run : AsyncLocalStorage.bind(run);
}

/** The outcome of the current span: an error code, or none. */
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
  const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, remote);
}

/** Undefined for a non-recording span: an SDK may be present and record nothing. */
function textOf({ traceId, spanId, traceFlags }: Api.SpanContext): string | undefined {
  if (/^0*$/.test(traceId)) return undefined;
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** The API wraps the SDK's provider in its own. */
function hasDelegate(provider: unknown): provider is { getDelegate(): unknown } {
  return hasMethod(provider, 'getDelegate');
}

/** A member of the SDK's providers, not of the API. */
function canFlush(provider: unknown): provider is { forceFlush(): Promise<void> } {
  return hasMethod(provider, 'forceFlush');
}

function hasMethod(thing: unknown, name: string): boolean {
  return (
    typeof thing === 'object' && thing !== null && typeof Reflect.get(thing, name) === 'function'
  );
}
