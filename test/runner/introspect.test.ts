/** Introspection: what a bundle defines is found in a process of its own, within its time. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { moduleOf, openYard } from './host/bundle.ts';

const test = suite('runner/hosts introspect');

test('introspection answers manifests and what was printed', async () => {
  await using yard = await openYard();
  const lines: string[] = [];
  const ask = async (source: string, timeoutMs = 60_000) =>
    await yard.hosts.introspect({
      projectId: 'p',
      bundle: await yard.bundle(source),
      timeoutMs,
      onLine: ({ message }) => lines.push(message),
      signal: new AbortController().signal,
    });
  const found = await ask(
    `console.log('loading'); setInterval(() => {}, 10); ${moduleOf('a() {}, b() {}')}`,
  );
  assert.equal(found, { ok: true, manifests: [{ name: 'a' }, { name: 'b' }] });
  assert.equal(lines, ['loading']);
  const broken = await ask(`throw new SyntaxError('not today'); export {};`);
  assert.ok(!broken.ok && broken.code === 'BUILD_ERROR' && broken.message.includes('not today'));
  const hangs = await ask(`for (;;); export {};`, 500);
  assert.ok(!hangs.ok && hangs.code === 'TIMED_OUT');
});

test.run();
