/**
 * Loaded by `node --import`: the tests' OpenTelemetry SDK in another process. Each ended span is a
 * line of OTEL_TEST_SPANS_FILE, with the pid of its process.
 */
import { appendFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { trace } from '@opentelemetry/api';
import { must } from '../../../proto/common/must.ts';
import { spanProvider } from './spans.ts';

const file = must(process.env['OTEL_TEST_SPANS_FILE'], 'where spans go');
// a span of a thread is an error: its pid of -1 shows it
const pid = isMainThread ? process.pid : -1;
trace.setGlobalTracerProvider(
  spanProvider((made) => appendFileSync(file, `${JSON.stringify({ pid, ...made })}\n`)),
);
