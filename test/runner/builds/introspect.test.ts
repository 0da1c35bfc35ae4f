/** Introspection finds a bundle's functions in a separate process, within its limits. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { moduleOf, openYard } from '../host/bundle.ts';

const test = suite('runner/builds/introspect');

const PATIENT = { cpuMs: 60_000, wallMs: 240_000 };

async function openAsker() {
  const yard = await openYard();
  const lines: string[] = [];
  const ask = async (source: string, limits = PATIENT) =>
    await yard.hosts.introspect({
      projectId: 'p',
      bundle: await yard.bundle(source),
      limits,
      onLine: ({ message }) => lines.push(message),
      signal: new AbortController().signal,
    });
  return { ask, lines, [Symbol.asyncDispose]: () => yard[Symbol.asyncDispose]() };
}

test('introspection returns the manifests and the printed lines', async () => {
  await using asker = await openAsker();
  const { ask, lines } = asker;
  const found = await ask(
    `console.log('loading'); setInterval(() => {}, 10); ${moduleOf('a() {}, b() {}')}`,
  );
  assert.equal(found, { ok: true, manifests: [{ name: 'a' }, { name: 'b' }] });
  assert.equal(lines, ['loading']);
  const broken = await ask(`throw new SyntaxError('not today'); export {};`);
  assert.ok(!broken.ok && broken.code === 'BUILD_ERROR' && broken.message.includes('not today'));
});

test('a bundle that waits for longer than its limit of CPU time is loaded', async () => {
  await using asker = await openAsker();
  const source = `await new Promise((done) => setTimeout(done, 3_000)); ${moduleOf('a() {}')}`;
  const found = await asker.ask(source, { ...PATIENT, cpuMs: 2_000 });
  assert.equal(found, { ok: true, manifests: [{ name: 'a' }] });
});

test('a loop ends at the limit of CPU time, a wait at the limit of wall time', async () => {
  await using asker = await openAsker();
  const loops = await asker.ask(`for (;;); export {};`, { ...PATIENT, cpuMs: 500 });
  assert.ok(!loops.ok && loops.code === 'TIMED_OUT');
  assert.match(loops.message, 'used more than 0.5 s of CPU time');
  const waits = `setInterval(() => {}, 1_000); await new Promise(() => {}); export {};`;
  const ended = await asker.ask(waits, { ...PATIENT, wallMs: 500 });
  assert.ok(!ended.ok && ended.code === 'TIMED_OUT');
  assert.match(ended.message, 'did not end within 0.5 s');
});

test.run();
