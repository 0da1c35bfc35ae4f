/**
 * `node --import` of it: the tests' SDK in a process of its own. Each span that ends is a line of
 * OTEL_TEST_SPANS_FILE, with the process that made it.
 */
import { appendFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { trace } from '@opentelemetry/api';
import { must } from '../../../proto/common/must.ts';
import { spanProvider } from './spans.ts';

const file = must(process.env['OTEL_TEST_SPANS_FILE'], 'where spans go');
// one that comes from a thread has no business there: it has been told so by its pid
const pid = isMainThread ? process.pid : -1;
trace.setGlobalTracerProvider(
  spanProvider((made) => appendFileSync(file, `${JSON.stringify({ pid, ...made })}\n`)),
);
