/** A build worker that dies costs one build, and ends when it shall. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../proto/log.ts';
import { openPlace } from '../../runner/build-place.ts';
import { startBuildWorker } from '../../runner/build-worker.ts';
import { openJail } from '../../runner/jail/ladder.ts';
import { DEFINES } from '../support/build.ts';
import { until } from '../support/poll.ts';
import { familyOf } from '../support/processes.ts';
import { tempDirectory } from '../support/temp.ts';

const workers = suite('runner/build-worker');
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

workers('a project is bundled, and what is wrong with one is said', async () => {
  const { made } = await bundled(DEFINES);
  assert.match((made as { sha256: string }).sha256, /^[0-9a-f]{64}$/);
  const { made: wrong, said } = await bundled('let = ;');
  assert.match(String(wrong), 'the sources cannot be bundled: index.ts:1: ');
  assert.match(said[0] ?? '', /^index\.ts:1: /);
});

workers('sources that esbuild does not survive fail their own build only', async () => {
  // one level of the parser's stack for each: it ends esbuild, or its memory does
  const { made: deep } = await bundled(`export const x = ${'['.repeat(8e6)}`);
  assert.match(String(deep), /^BuildFailure: .*ran out of memory or crashed/);
  const { made: next } = await bundled(DEFINES);
  assert.ok((next as { size: number }).size > 0, String(next));
});

workers('it ends with the signal', async () => {
  const late = AbortSignal.timeout(150);
  const { made } = await bundled(`export const x = ${'1+'.repeat(2e6)}1`, late);
  assert.is((made as Error).name, 'TimeoutError');
});

workers.run();
