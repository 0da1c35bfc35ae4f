/**
 * An OpenTelemetry SDK for tests, which passes on each ended span. It propagates no context by
 * itself, like an SDK that was set up without a context manager.
 */
import { randomBytes } from 'node:crypto';
import {
  type Attributes,
  type Context,
  type Span,
  type SpanContext,
  type SpanOptions,
  type SpanStatus,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';

/** `status` is 0 until one is set, 2 for an error. Times are milliseconds of the Unix epoch. */
export type Made = {
  name: string;
  kind: number | undefined;
  own: SpanContext;
  parent: SpanContext | undefined;
  status: SpanStatus;
  attributes: Attributes;
  startTime: number;
  endTime: number;
};

export function spanProvider(ended: (made: Made) => void): TracerProvider {
  const startSpan = (name: string, options: SpanOptions = {}, context?: Context): Span => {
    const parent = context && trace.getSpanContext(context);
    const traceId = parent?.traceId ?? randomBytes(16).toString('hex');
    const own = { traceId, spanId: randomBytes(8).toString('hex'), traceFlags: 1 };
    const { kind, attributes = {} } = options;
    const status = { code: 0 };
    const made: Made = {
      name,
      kind,
      own,
      parent,
      status,
      attributes,
      startTime: now(),
      endTime: 0,
    };
    return spanOf(made, ended);
  };
  return { getTracer: () => ({ startSpan }) } as unknown as TracerProvider;
}

/** The parts of a span that the code uses. */
function spanOf(made: Made, ended: (made: Made) => void): Span {
  const span: Partial<Span> = {
    spanContext: () => made.own,
    updateName(final) {
      made.name = final;
      return span as Span;
    },
    setAttributes(more) {
      made.attributes = { ...made.attributes, ...more };
      return span as Span;
    },
    setStatus(status) {
      made.status = status;
      return span as Span;
    },
    end() {
      made.endTime = now();
      ended(made);
    },
  };
  return span as Span;
}

/** Comparable between processes of one machine. */
function now(): number {
  return performance.timeOrigin + performance.now();
}
