/** A thread that reaches its heap limit ends, with its own run only; on both engines. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findRuntime } from '../../../runner/functions/runtime.ts';
import { openYard } from './bundle.ts';

const test = suite('runner/host/heap');
const BOMB = `const all = []; for (let i = 0; ; i++) all.push(String(i).repeat(100).split(''));`;
const SPENT: [when: string, body: string][] = [
  ['in a loop that catches', `for (;;) { try { ${BOMB} } catch {} }`],
  ['in a callback', `setTimeout(() => { ${BOMB} }); await new Promise(() => {});`],
  ['behind its result', `await null; queueMicrotask(() => { ${BOMB} }); return 1;`],
];

for (const kind of ['node', 'deno'] as const) {
  for (const [when, body] of SPENT) {
    test(`${kind}: a heap used up ${when} fails the run but not a concurrent one`, async () => {
      await using yard = await openYard('bwrap', { runtime: await findRuntime(kind, {}) });
      const end = new AbortController();
      const sibling = yard.run(`await new Promise(() => {});`, { signal: end.signal });
      const { outcome } = await yard.run(body);
      assert.equal(outcome, {
        type: 'failure',
        code: 'WORKLOAD_ERROR',
        name: 'OutOfMemory',
        stack: '',
        message: 'the handler ran out of memory: a function may use 256 MiB of JavaScript heap',
      });
      const next = await yard.run(`return 'next';`);
      assert.is(next.outcome.type === 'result' && next.outcome.json, '"next"');
      end.abort();
      assert.is((await sibling).outcome.type, 'aborted', 'not lost with a process');
    });
  }

  test(`${kind}: a run below the heap limit returns its result`, async () => {
    await using yard = await openYard('bwrap', { runtime: await findRuntime(kind, {}) });
    const { outcome } = await yard.run(
      `const all = Array.from({ length: 20 }, () => new Array(1 << 20).fill(0.5));
       await new Promise((resolve) => setTimeout(resolve, 300));
       return all.length;`,
    );
    assert.is(outcome.type === 'result' ? outcome.json : JSON.stringify(outcome), '20');
  });
}

test.run();
