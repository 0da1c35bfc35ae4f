/**
 * A browser above the memory limit of its size ends its own session with the reason; others
 * continue.
 */
import { once } from 'node:events';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { boot, type Stack, shareStack } from '../../support/service/stack.ts';

const test = suite('journey/sessions/memory');
const LIMIT_MIB = 768;
/** Below four times the limit. */
const XLARGE_MIB = 1_792;
const lossAt = (mib: number) => `the browser was lost: it used more than ${mib} MiB of memory`;
const LOSS = lossAt(LIMIT_MIB);
const env = {
  TABERN_BROWSER_MEMORY_MB: String(LIMIT_MIB),
  TABERN_BROWSER_MEMORY_MAX_MB: String(XLARGE_MIB),
};
const service = shareStack({ env });

type Session = { id: string; status: string; connectUrl: string };
type Entry = { method: string; request: { rawBody: string } };

/** Script of a page: allocates so many MiB in parts of 16 and writes to each part. */
const take = (mib: number): string => `(async () => {
  globalThis.kept = [];
  for (let taken = 0; taken < ${mib}; taken += 16) {
    kept.push(new Uint8Array(16 << 20).fill(1));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return kept.length * 16;
})()`;

/** Evaluates an expression in its page. */
const HUNGRY = `import { defineFn } from 'tabern';
defineFn('hungry', async (ctx, { expression }) => {
  const socket = new WebSocket(ctx.session.connectUrl);
  const waiting = new Map();
  const ask = (method, params, sessionId) => new Promise((resolve, reject) => {
    const id = waiting.size + 1;
    waiting.set(id, { resolve, reject });
    socket.send(JSON.stringify({ id, method, params, sessionId }));
  });
  socket.onmessage = ({ data }) => {
    const { id, result } = JSON.parse(data);
    waiting.get(id)?.resolve(result);
  };
  socket.onclose = ({ code, reason }) => {
    for (const { reject } of waiting.values()) reject(new Error(code + ' ' + reason));
  };
  await new Promise((resolve) => { socket.onopen = resolve; });
  const { targetInfos } = await ask('Target.getTargets', {});
  const { targetId } = targetInfos.find(({ type }) => type === 'page');
  const { sessionId } = await ask('Target.attachToTarget', { targetId, flatten: true });
  const wanted = { expression, awaitPromise: true, returnByValue: true };
  return (await ask('Runtime.evaluate', wanted, sessionId)).result.value;
});
`;
const PROJECT = {
  'package.json': '{"name":"hungry","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': HUNGRY,
};

type Visit = Awaited<ReturnType<typeof visit>>;

/** A new session, driven by one client and watched by another. */
async function visit(stack: Stack, browserSettings: object = {}) {
  const json = { keepAlive: true, browserSettings };
  const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json });
  const witness = new WebSocket(connectUrl);
  const closed = once(witness, 'close').then(([code, reason]) => `${code} ${reason}`);
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  const evaluate = (expression: string) => page.evaluate<unknown>(expression);
  const read = () => stack.call<Session>(`/v1/sessions/${id}`);
  return { id, closed, evaluate, read, [Symbol.asyncDispose]: () => browser.close() };
}

/** Waits for the end of the session; its log must have the reason. */
async function lost(stack: Stack, { id, read }: Visit, reason: string): Promise<void> {
  const status = await until(async () => {
    const one = await read();
    return one.status !== 'RUNNING' && one.status;
  });
  assert.is(status, 'ERROR');
  const entries = await stack.call<Entry[]>(`/v1/sessions/${id}/logs`);
  const bodies = entries.map(({ request }) => request.rawBody);
  assert.ok(
    bodies.some((body) => body.includes(reason)),
    bodies.join('\n'),
  );
}

test('a session above the limit ends ERROR with the reason; another one continues', async () => {
  const stack = await service.get();
  await using hungry = await visit(stack);
  await using modest = await visit(stack);
  assert.is(await modest.evaluate(take(128)), 128);
  hungry.evaluate(take(8 * LIMIT_MIB)).catch(() => undefined); // no response follows
  assert.is(await hungry.closed, `1011 ${LOSS}`);
  await lost(stack, hungry, LOSS);
  assert.is(await modest.evaluate('kept.length * 16'), 128);
  assert.is((await modest.read()).status, 'RUNNING');
});

for (const [size, limitMib] of [
  ['large', 2 * LIMIT_MIB],
  ['xlarge', XLARGE_MIB],
] as const) {
  test(`${size}: a session lives above the usual limit, and ends at ${limitMib} MiB`, async () => {
    const stack = await service.get();
    await using larger = await visit(stack, { size });
    assert.is(await larger.evaluate(take(LIMIT_MIB)), LIMIT_MIB);
    assert.is((await larger.read()).status, 'RUNNING');
    larger.evaluate(take(8 * LIMIT_MIB)).catch(() => undefined); // no response follows
    assert.is(await larger.closed, `1011 ${lossAt(limitMib)}`);
    await lost(stack, larger, lossAt(limitMib));
  });
}

test('an invocation above the limit ends WORKLOAD_ERROR; a smaller one completes', async () => {
  const stack = await service.get();
  const { hungry = '' } = await publish(stack, PROJECT);
  const run = async (mib: number) => {
    const { id } = await invoke(stack, hungry, { expression: take(mib) });
    return await ended(stack, id);
  };
  const lost = await run(8 * LIMIT_MIB);
  assert.is(lost.cause?.code, 'WORKLOAD_ERROR');
  assert.ok(lost.cause?.message?.startsWith(`${LOSS}: `), lost.cause?.message);
  assert.is((await run(128)).results, 128);
});

test('a limit of 0 disables the check', async () => {
  await using stack = await boot({ env: { TABERN_BROWSER_MEMORY_MB: '0' } });
  await using greedy = await visit(stack);
  assert.is(await greedy.evaluate(take(LIMIT_MIB)), LIMIT_MIB);
  assert.is((await greedy.read()).status, 'RUNNING');
});

test('the service of these tests leaves nothing', () => service.end());

test.run();
