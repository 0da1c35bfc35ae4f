/** A crashed build worker fails one build, and a worker ends with its signal. */
import { link, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../../proto/common/log.ts';
import { openPlace } from '../../../../runner/builds/build-directory.ts';
import { installSpec } from '../../../../runner/builds/install/jail.ts';
import { workerSpec } from '../../../../runner/builds/worker/jail.ts';
import { type BuildWorker, startBuildWorker } from '../../../../runner/builds/worker/worker.ts';
import type { Jail } from '../../../../runner/jail/jail.ts';
import { openJail } from '../../../../runner/jail/open.ts';
import { until } from '../../../support/poll.ts';
import { DEFINES } from '../../../support/runner/build.ts';
import { directory } from '../../../support/runner/project.ts';
import { familyOf } from '../../../support/service/processes.ts';
import { tempDirectory } from '../../../support/temp.ts';

const workers = suite('runner/builds/worker/worker');
const log = openLog({ role: 'test', level: 'silent' });

async function bundled(source: string, signal = new AbortController().signal) {
  await using dir = tempDirectory();
  const said: string[] = [];
  const lines = { line: (_: string, message: string) => void said.push(message) };
  const jail = await openJail({ sandbox: 'auto', log });
  await using place = await openPlace(dir.path, jail);
  await writeFile(join(place.project, 'index.ts'), source);
  const own = { project: place.project, uid: place.uid, jail, lines, log, signal };
  const made = await (async () => {
    await using worker = await startBuildWorker(own);
    return await worker.bundle('index.ts', place.bundle);
  })().catch((error: Error) => error);
  await until(() => familyOf(process.pid).length === 1); // no process is left
  return { made, said };
}

/** A worker of a new build directory; with a script, a compromised program in its place. */
async function worker(script?: string) {
  await using opening = new AsyncDisposableStack();
  const dir = opening.use(tempDirectory());
  const real = await openJail({ sandbox: script === undefined ? 'auto' : 'none', log });
  const argv = () => [process.execPath, '-e', script ?? ''];
  const jail: Jail = script ? { ...real, launch: (spec) => real.launch({ ...spec, argv }) } : real;
  const place = opening.use(await openPlace(dir.path, jail));
  const { project, uid } = place;
  const { signal } = new AbortController();
  const own = { project, uid, jail, lines: { line: () => undefined }, log, signal };
  const made = opening.use(await startBuildWorker(own));
  const all = opening.move();
  return { worker: made, place, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

workers('a project is bundled, and errors in its sources are reported', async () => {
  const { made } = await bundled(DEFINES);
  assert.match((made as { sha256: string }).sha256, /^[0-9a-f]{64}$/);
  const { made: wrong, said } = await bundled('let = ;');
  assert.match(String(wrong), 'the sources cannot be bundled: index.ts:1: ');
  assert.match(said[0] ?? '', /^index\.ts:1: /);
});

workers('sources that crash esbuild fail their own build only', async () => {
  // one level of the parser's stack for each: it ends esbuild, or its memory does
  const { made: deep } = await bundled(`export const x = ${'['.repeat(8e6)}`);
  assert.match(String(deep), /^BuildFailure: .*ran out of memory or crashed/);
  const { made: next } = await bundled(DEFINES);
  assert.ok((next as { size: number }).size > 0, String(next));
});

workers('a link in place of the bundle file is not followed', async () => {
  await using machine = directory({ canary: 'of the machine' });
  const canary = join(machine.path, 'canary');
  await using it = await worker();
  await writeFile(join(it.place.project, 'index.ts'), DEFINES);
  await symlink(canary, it.place.bundle);
  const error = await it.worker.bundle('index.ts', it.place.bundle).catch((e: Error) => e);
  assert.is((error as NodeJS.ErrnoException).code, 'EEXIST');
  assert.is(await readFile(canary, 'utf8'), 'of the machine');
});

workers('no jail of a build can write the archive or see the bundle', async () => {
  await using dir = tempDirectory();
  await using place = await openPlace(dir.path, await openJail({ sandbox: 'auto', log }));
  const installer = { file: process.execPath, args: [] };
  const egress = { localPort: undefined, socket: join(place.directory, 'out') };
  const specs = await Promise.all([
    workerSpec({ project: place.project, archive: place.archive }),
    workerSpec({ project: place.project }),
    installSpec(installer, { place, env: {}, egress }),
  ]);
  for (const { from, writable } of specs.flatMap(({ mounts }) => mounts)) {
    const holds = (path: string): boolean => `${path}/`.startsWith(`${from}/`);
    assert.not(holds(place.bundle), from);
    assert.not(writable === true && holds(place.archive), from);
  }
});

workers('a node_modules that is a link or has hard links is not cached', async () => {
  await using it = await worker();
  const modules = join(it.place.project, 'node_modules');
  assert.is(await it.worker.measure(), undefined, 'nothing is there');
  await mkdir(join(it.place.project, 'other'));
  await writeFile(join(it.place.project, 'other/file'), 'four');
  await symlink('other', modules);
  assert.is(await it.worker.measure(), undefined, 'a link');
  await rm(modules);
  await mkdir(modules);
  await symlink('../other', join(modules, 'link'));
  await writeFile(join(modules, 'file'), 'of 5b');
  assert.is(await it.worker.measure(), 5, 'what a link leads to is not counted');
  await link(join(it.place.project, 'other/file'), join(modules, 'second'));
  assert.is(await it.worker.measure(), undefined, 'a file with a second name');
});

const WITHOUT_VALUE = `process.stdout.write('{}\\n');
  process.stdin.on('data', () => process.stdout.write('{"lines": []}\\n'));`;
const WITH_WRONG = WITHOUT_VALUE.replace('[]}', '[], "value": []}');
for (const script of [WITHOUT_VALUE, WITH_WRONG]) {
  workers(`an invalid answer to an order fails the build: ${script}`, async () => {
    const orders = {
      read: (one: BuildWorker) => one.read({ entrypoint: 'index.ts', namesJsr: false }),
      measure: (one: BuildWorker) => one.measure(),
      bundle: (one: BuildWorker, outFile: string) => one.bundle('index.ts', outFile),
    };
    for (const [name, order] of Object.entries(orders)) {
      await using it = await worker(script);
      const error = await order(it.worker, it.place.bundle).catch((caught: Error) => caught);
      assert.match(String(error), /^BuildFailure: .*(?:memory|time)/, name);
    }
  });
}

workers('an aborted signal ends the worker', async () => {
  const late = AbortSignal.timeout(150);
  const { made } = await bundled(`export const x = ${'1+'.repeat(2e6)}1`, late);
  assert.is((made as Error).name, 'TimeoutError');
});

workers.run();
