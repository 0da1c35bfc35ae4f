/** A host that uses too much memory is ended, which affects its own project only. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openYard } from '../host/bundle.ts';

const test = suite('runner/functions/host-memory');
const MIB = 2 ** 20;

for (const sandbox of ['bwrap', 'landlock'] as const) {
  test(`${sandbox}: a host above its memory limit ends; its run gives the reason`, async () => {
    await using yard = await openYard(sandbox, { memoryMaxBytes: 256 * MIB });
    const other = yard.run(
      `console.log('here'); await new Promise((r) => ctx.signal.addEventListener('abort', r))`,
      { projectId: 'other', endOn: 'here' },
    );
    const { outcome } = await yard.run(
      `globalThis.kept = Buffer.alloc(${384 * MIB}, 1); await new Promise(() => {});`,
    );
    assert.is(outcome.type === 'failure' && outcome.code, 'WORKLOAD_ERROR');
    const message = outcome.type === 'failure' ? outcome.message : '';
    assert.match(message, /process was lost: it used more than 256 MiB of memory/);
    assert.is((await other).outcome.type, 'aborted');
    const next = await yard.run(`return 'next';`);
    assert.is(next.outcome.type === 'result' && next.outcome.json, '"next"');
  });
}

test.run();
