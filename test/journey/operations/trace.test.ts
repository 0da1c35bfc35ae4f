/**
 * One trace from the client's span to the steps of the runner, over three processes; the console
 * lists the same steps.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import type { Made } from '../../support/service/spans.ts';
import { boot } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/operations/trace');

const PRELOAD = fileURLToPath(new URL('../../support/service/spans-preload.ts', import.meta.url));
const SECRET = 'a-word-of-the-tenant';
const FILES = {
  'package.json': '{"name":"traced","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('works', async (ctx, params) => params);
defineFn('throws', async () => { throw new Error('${SECRET}'); });
`,
};

type Span = Made & { pid: number };

/** The spans of one trace, after the end of its work. */
function readTrace(file: string, traceId: string): Span[] {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const spans = lines.map((line) => JSON.parse(line) as Span);
  return spans.filter(({ own }) => own.traceId === traceId);
}

/** The names from the client's span down to the span of that name. */
function pathTo(spans: readonly Span[], name: string): string[] {
  const path: string[] = [];
  for (let at = spans.find((one) => one.name === name); at !== undefined; ) {
    path.unshift(at.name);
    const above: string | undefined = at.parent?.spanId;
    at = spans.find(({ own }) => own.spanId === above);
  }
  return path;
}

/** A traceparent of a client, and the id of its trace. */
function client(digit: string): { traceId: string; headers: { traceparent: string } } {
  const traceId = digit.repeat(32);
  return { traceId, headers: { traceparent: `00-${traceId}-${'e'.repeat(16)}-01` } };
}

type Client = ReturnType<typeof client>;

/** The service with an OpenTelemetry SDK, and the spans that the SDK received. */
async function bootTraced() {
  await using stack = new AsyncDisposableStack();
  const file = join(stack.use(tempDirectory()).path, 'spans');
  const env = { OTEL_TEST_SPANS_FILE: file, TABERN_SESSION_GRACE_MS: '100' };
  const service = stack.use(await boot({ preload: PRELOAD, env }));
  const kept = stack.move();
  return {
    service,
    text: () => readFileSync(file, 'utf8'),
    traceOf: ({ traceId }: Pick<Client, 'traceId'>, last: string): Promise<Span[]> =>
      until(() => {
        const spans = readTrace(file, traceId);
        return spans.some(({ name }) => name === last) && spans;
      }),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

type Traced = Awaited<ReturnType<typeof bootTraced>>;

/** Invokes the function once; returns the invocation's id. */
async function run({ service }: Traced, functionId: string, { headers }: Client, body: object) {
  const path = `/v1/functions/${functionId}/invoke`;
  const { id } = await service.call<{ id: string }>(path, { json: body, headers });
  return (await ended(service, id)).id;
}

async function expectInvocations(traced: Traced, functions: Record<string, string>) {
  const { service } = traced;
  const [works, throws] = [client('a'), client('b')];
  const contextId = (await service.call<{ id: string }>('/v1/contexts', { json: {} })).id;
  const browserSettings = { context: { id: contextId, persist: true } };
  const asked = { params: { [SECRET]: SECRET }, sessionCreateParams: { browserSettings } };
  const id = await run(traced, must(functions['works'], 'works'), works, asked);
  const spans = await traced.traceOf(works, 'runner invocation');
  const request = ['POST /v1/functions/:function_id/invoke', 'core invokeFunction'];
  const down = [...request, 'runner invocation'];
  for (const step of ['context load', 'browser', 'bundle', 'handler', 'close']) {
    assert.equal(pathTo(spans, step), [...down, step]);
  }
  assert.equal(pathTo(spans, 'context save'), [...down, 'close', 'context save']);
  assert.equal(pathTo(spans, 'core completeInvocation'), [...down, 'core completeInvocation']);
  const [root] = spans.filter(({ name }) => name === 'runner invocation');
  assert.ok((await service.pidsOf('runner')).includes(Number(root?.pid)));
  const received = spans.find(({ name }) => name === request[0]);
  assert.ok((await service.pidsOf('gateway')).includes(Number(received?.pid)));
  assert.equal(root?.attributes, { 'tabern.invocation.id': id, 'tabern.outcome': 'COMPLETED' });
  assert.is(root?.status.code, 0);
  type Listed = { steps: { name: string; endMs: number; failed: boolean }[] };
  const { steps } = await service.call<Listed>(`/console/api/v1/invocations/${id}/steps`);
  const names = steps.map(({ name }) => name).sort();
  const expected = ['browser', 'bundle', 'close', 'context load', 'context save', 'handler'];
  assert.equal(names, expected, 'the console lists the same steps');
  assert.ok(steps.every(({ endMs, failed: hasFailed }) => endMs >= 0 && !hasFailed));

  await run(traced, must(functions['throws'], 'throws'), throws, { params: {} });
  const failed = await traced.traceOf(throws, 'runner invocation');
  const status = failed.find(({ name }) => name === 'runner invocation')?.status;
  assert.equal(status, { code: 2, message: 'WORKLOAD_ERROR' });
  assert.not.ok(traced.text().includes(contextId));
}

async function expectSession(traced: Traced) {
  const own = client('c');
  const init = { method: 'POST', headers: own.headers };
  const { connectUrl } = await traced.service.call<{ connectUrl: string }>('/v1/sessions', init);
  const browser = await chromium.connectOverCDP(connectUrl);
  await browser.contexts()[0]?.pages()[0]?.goto(`about:blank#${SECRET}`);
  await browser.close();
  const spans = await traced.traceOf(own, 'runner session');
  const down = ['POST /v1/sessions', 'core createSession', 'runner session'];
  for (const step of ['browser', 'close', 'core completeSession']) {
    assert.equal(pathTo(spans, step), [...down, step]);
  }
}

async function expectBuild(traced: Traced) {
  const lines = traced.text().split('\n');
  const line = lines.find((one) => one.includes('"runner build"'));
  const { own } = JSON.parse(must(line, 'a build')) as Span;
  const spans = await traced.traceOf(own, 'runner build');
  const down = ['POST /v1/functions/builds', 'core createBuild', 'runner build'];
  for (const step of ['download', 'unpack', 'install', 'bundle', 'introspect', 'upload']) {
    assert.equal(pathTo(spans, step), [...down, step]);
  }
}

journey('a trace has all spans of its request, down to the runner’s steps', async () => {
  await using traced = await bootTraced();
  const { service } = traced;
  const functions = await publish(service, FILES);
  await expectInvocations(traced, functions);
  await expectSession(traced);
  await expectBuild(traced);
  const text = traced.text();
  for (const word of [SECRET, service.apiKey, service.projectId, 'about:blank']) {
    assert.not.ok(text.includes(word), word);
  }
  assert.not.ok(text.includes('"pid":-1'), 'no thread has an SDK of its own');
});

journey.run();
