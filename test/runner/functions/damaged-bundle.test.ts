/** A bundle whose file is damaged on the runner is not the function's failure. */
import { writeFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { NO_REGISTRY } from '../../../runner/host/messages.ts';
import { moduleOf, openYard } from '../host/bundle.ts';

const test = suite('runner/functions/damaged-bundle');

test('a bundle that is damaged on the runner is an internal error', async () => {
  await using yard = await openYard();
  const bundle = await yard.bundle(moduleOf('f: async () => 1'));
  writeFileSync(bundle.path, '');
  const { outcome } = await yard.run('', { bundle });
  assert.is(outcome.type === 'failure' && outcome.code, 'INTERNAL_ERROR');
  const whole = await yard.bundle(moduleOf('f: async () => 2'));
  const next = await yard.run('', { bundle: whole });
  assert.is(next.outcome.type === 'result' && next.outcome.json, '2');
});

test('a handler that throws the message of a damaged bundle is a workload error', async () => {
  await using yard = await openYard();
  const { outcome } = await yard.run(`throw new Error('${NO_REGISTRY}');`);
  assert.is(outcome.type === 'failure' && outcome.code, 'WORKLOAD_ERROR');
});

test.run();
