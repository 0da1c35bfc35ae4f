/**
 * Steps within a span: their parents and attributes, and that no span is created without an SDK.
 */
import { trace } from '@opentelemetry/api';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  ended,
  endTracing,
  kept,
  startTracing,
  step,
  traced,
} from '../../../proto/common/tracing.ts';
import { errorOf } from '../../support/fault.ts';
import { type Made, spanProvider } from '../../support/service/spans.ts';

const test = suite('proto/common/tracing');

const made: Made[] = [];
const ROOT = { name: 'root', traceparent: undefined, kind: 'CONSUMER' } as const;

function parentsByName(): Record<string, string | undefined> {
  const names = new Map(made.map((one) => [one.own.spanId, one.name]));
  return Object.fromEntries(made.map((one) => [one.name, names.get(one.parent?.spanId ?? '')]));
}

test('without an SDK steps run unchanged', async () => {
  await startTracing();
  trace.setGlobalTracerProvider(spanProvider((one) => void made.push(one))); // too late
  const act = () => step('a step', async () => 7);
  assert.is(kept(act), act);
  const said = await traced(ROOT, async () => {
    ended('WORKLOAD_ERROR', true);
    return await act();
  });
  assert.is(said, 7);
  await endTracing();
  assert.equal(made, []);
});

test('a step is a child of the step that calls it, concurrently or later', async () => {
  await startTracing();
  made.length = 0;
  let close = async (): Promise<void> => assert.unreachable();
  await traced(ROOT, async () => {
    close = kept(() => step('close', () => step('save', async () => undefined)));
    await Promise.all([
      step('left', async () => {
        await new Promise(setImmediate);
        await step('of the left', async () => undefined);
      }),
      step('right', () => step('of the right', async () => undefined)),
    ]);
  });
  await close(); // called outside every span
  assert.equal(parentsByName(), {
    root: undefined,
    left: 'root',
    right: 'root',
    close: 'root',
    'of the left': 'left',
    'of the right': 'right',
    save: 'close',
  });
});

test('a step outside of a span creates none', async () => {
  await startTracing();
  made.length = 0;
  assert.is(await step('alone', async () => 7), 7);
  assert.equal(made, []);
});

test("a failure is recorded by its code, never by an error's message", async () => {
  await startTracing();
  made.length = 0;
  await traced(ROOT, async () => ended('COMPLETED', false));
  await traced(ROOT, async () => {
    await errorOf(step('handler', async () => Promise.reject(new Error('of a tenant'))));
    ended('TIMED_OUT', true);
  });
  const said = made.map(({ name, status, attributes }) => ({ name, status, attributes }));
  assert.equal(said, [
    { name: 'root', status: { code: 0 }, attributes: { 'tabern.outcome': 'COMPLETED' } },
    { name: 'handler', status: { code: 2 }, attributes: {} },
    {
      name: 'root',
      status: { code: 2, message: 'TIMED_OUT' },
      attributes: { 'tabern.outcome': 'TIMED_OUT' },
    },
  ]);
});

test("the end of a role waits for the SDK's last spans, within a limit", async () => {
  await startTracing();
  let flushed = 0;
  const forceFlush = async () => {
    flushed += 1;
  };
  const inner = { getTracer: () => undefined, forceFlush };
  trace.disable();
  trace.setGlobalTracerProvider(inner as never);
  await endTracing();
  assert.is(flushed, 1);
  trace.disable();
  const failing = { ...inner, forceFlush: () => Promise.reject(new Error('no collector')) };
  trace.setGlobalTracerProvider(failing as never);
  await endTracing();
  trace.disable();
  const stuck = { ...inner, forceFlush: () => new Promise(() => undefined) };
  trace.setGlobalTracerProvider(stuck as never);
  await endTracing(1);
});

test.run();
