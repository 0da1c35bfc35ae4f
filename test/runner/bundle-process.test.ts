/** A bundler that dies costs one build, and ends when it shall. */
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../proto/log.ts';
import { bundleApart } from '../../runner/bundle-process.ts';
import { DEFINES } from '../support/build.ts';
import { until } from '../support/poll.ts';
import { processesNaming } from '../support/processes.ts';
import { directory } from '../support/project.ts';

const apart = suite('runner/bundle-process');
const log = openLog({ role: 'test', level: 'silent' });

async function bundled(files: Record<string, string>, signal = new AbortController().signal) {
  await using project = directory(files);
  const outFile = join(project.path, 'out.mjs');
  const made = await bundleApart({
    root: project.path,
    entrypoint: 'index.ts',
    outFile,
    signal,
    log,
  }).catch((error: Error) => error);
  await until(() => processesNaming(project.path).length === 0); // no process is left
  return made;
}

apart('a project is bundled, and what is wrong with one is said', async () => {
  const made = await bundled({ 'index.ts': DEFINES });
  assert.match((made as { sha256: string }).sha256, /^[0-9a-f]{64}$/);
  const wrong = (await bundled({ 'index.ts': 'let = ;' })) as Error;
  assert.is(wrong.name, 'BundleError');
  assert.match(wrong.message, /^index\.ts:1: /);
});

apart('sources that esbuild does not survive fail their own build only', async () => {
  // one level of the parser's stack for each: it ends esbuild, or its memory does
  const deep = (await bundled({ 'index.ts': `export const x = ${'['.repeat(8e6)}` })) as Error;
  assert.is(deep.name, 'BundleError');
  assert.match(deep.message, /ran out of memory or crashed/);
  const next = await bundled({ 'index.ts': DEFINES });
  assert.ok((next as { size: number }).size > 0, String(next));
});

apart('it ends with the signal', async () => {
  const late = AbortSignal.timeout(150);
  const ended = (await bundled(
    { 'index.ts': `export const x = ${'1+'.repeat(2e6)}1` },
    late,
  )) as Error;
  assert.is(ended.name, 'TimeoutError');
});

apart.run();
