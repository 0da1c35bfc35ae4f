/** Spans of a request and of its call, when an SDK is there; without one a traceparent passes. */
import { trace } from '@opentelemetry/api';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startTracing, traced } from '../../../proto/common/tracing.ts';
import { errorOf } from '../../support/fault.ts';
import { type Made, spanProvider } from '../../support/service/spans.ts';
import { ask, KEY, openGateway } from '../sessions/runner.ts';

const test = suite('gateway/http/trace');

const CAME = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

/** The traceparent that core receives for a request. */
async function heardBy(headers: Record<string, string>): Promise<(string | undefined)[]> {
  const heard: (string | undefined)[] = [];
  await using gateway = await openGateway({
    contexts: {
      async getContext(_request, call) {
        heard.push(call.metadata['traceparent']);
        return { context: undefined };
      },
    },
  });
  const all = { headers: { 'x-svc-api-key': KEY, ...headers } };
  await ask(gateway.url, 'GET', '/v1/contexts/01a1fce4-ed84-7600-895f-0cf6ab39edc7', all);
  return heard;
}

test('without an SDK a traceparent is passed unchanged, and an invalid one is not', async () => {
  await startTracing();
  assert.equal(await heardBy({ traceparent: CAME }), [CAME]);
  assert.equal(await heardBy({ traceparent: '00-x' }), [undefined]);
  assert.is(await traced({ name: 'a', traceparent: 'p' }, async (scope) => scope.traceparent), 'p');
});

test('with an SDK, spans of client, request and call are nested', async () => {
  const ended: Made[] = [];
  trace.setGlobalTracerProvider(spanProvider((made) => void ended.push(made)));
  await startTracing();
  const [heard] = await heardBy({ traceparent: CAME });
  const [span] = ended;
  assert.is(span?.name, 'GET /v1/contexts/:id');
  assert.is(span?.parent?.spanId, 'b'.repeat(16));
  assert.is(heard, `00-${'a'.repeat(32)}-${span?.own.spanId}-01`);
  const [alone] = await heardBy({});
  const root = ended.at(-1)?.own;
  assert.is(alone, `00-${root?.traceId}-${root?.spanId}-01`);
  assert.is.not(root?.traceId, 'a'.repeat(32));
  await errorOf(
    traced({ name: 'fails', traceparent: undefined }, async () => {
      throw new Error('no');
    }),
  );
  assert.equal([ended.at(-1)?.name, ended.at(-1)?.status.code], ['fails', 2]);
});

test.run();
