/** Bundles: their exports and contents. Each bundle is imported. */
import { cp, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import type { Definition, Manifest } from '../../../../runner/sdk/types.ts';
import { bundle } from '../../../support/runner/bundle.ts';
import { directory } from '../../../support/runner/project.ts';

const bundles = suite('runner/builds/bundle/bundle');

type Loaded = {
  definitions(): ReadonlyMap<string, Definition>;
  manifests(): Manifest[];
};

const PACKAGES = join(import.meta.dirname, '../../../../node_modules');

function make(root: string, entrypoint = 'index.ts') {
  const outFile = join(root, 'out.mjs');
  return bundle({ root, entrypoint, outFile });
}

async function load(root: string, entrypoint?: string): Promise<Loaded> {
  await make(root, entrypoint);
  return import(pathToFileURL(join(root, 'out.mjs')).href);
}

function run(loaded: Loaded, name: string): Promise<unknown> {
  const { handler } = must(loaded.definitions().get(name), 'definition');
  return (handler as (context: object, params: object) => Promise<unknown>)({}, {});
}

bundles('a TypeScript entry and an imported file define functions', async () => {
  await using project = directory({
    'src/index.ts': `
      import { defineFn } from 'tabern';
      import { type Shape, twice } from './lib/twice.ts';
      import './more.js';
      const shape: Shape = { n: 21 };
      defineFn('first', async () => twice(shape.n) as number);`,
    'src/more.ts': `import { defineFn } from 'tabern'; defineFn('second', async () => 'more');`,
    'src/lib/twice.ts':
      'export type Shape = { n: number }; export const twice = (n: number) => n * 2;',
  });
  const loaded = await load(project.path, 'src/index.ts');
  assert.equal([...loaded.definitions().keys()].sort(), ['first', 'second']);
  assert.equal(
    loaded
      .manifests()
      .map(({ name }) => name)
      .sort(),
    ['first', 'second'],
  );
  assert.is(await run(loaded, 'first'), 42);
  assert.is(await run(loaded, 'second'), 'more');
});

bundles('the service’s SDK replaces the published one, which need not be installed', async () => {
  await using project = directory({
    'index.ts': `
      import { defineFn } from '@browserbasehq/sdk-functions';
      import { defineFn as small } from '@tabern/functions';
      import { defineFn as ours } from 'npm:tabern';
      import { defineFn as denos } from 'npm:@tabern/functions@1';
      defineFn('theirs', async () => [ours, small, denos].every((one) => one === defineFn));`,
  });
  assert.is(await run(await load(project.path), 'theirs'), true);
});

bundles('a file that only defines functions stays under sideEffects: false', async () => {
  await using project = directory({
    'package.json': '{"sideEffects": false}',
    'index.ts': `import './more.ts';`,
    'more.ts': `import { defineFn } from 'tabern'; defineFn('kept', async () => 1);`,
  });
  assert.ok((await load(project.path)).definitions().has('kept'));
});

bundles('a CommonJS dependency has require, __filename and __dirname', async () => {
  await using project = directory({
    'index.ts': `
      import { defineFn } from 'tabern';
      import old from 'old';
      const require = 'mine';
      const __dirname = 'mine too';
      defineFn('old', async () => [old.separator, typeof old.at, require, __dirname]);`,
    'node_modules/old/package.json': '{"name": "old", "main": "main.js"}',
    'node_modules/old/main.js': `
      const name = 'path'; exports.separator = require(name).sep + require('./part').x;
      exports.at = __dirname + __filename;`,
    'node_modules/old/part.js': 'exports.x = require("os").EOL;',
  });
  const answer = await run(await load(project.path), 'old');
  assert.equal(answer, ['/\n', 'string', 'mine', 'mine too']);
});

bundles('a source may declare require and __dirname when nothing else needs them', async () => {
  await using project = directory({
    'index.ts': `
      import { createRequire } from 'node:module';
      import { defineFn } from 'npm:tabern@1';
      const require = createRequire(import.meta.url);
      const __dirname = import.meta.dirname;
      defineFn('own', async () => [typeof require('node:os').EOL, typeof __dirname]);`,
  });
  assert.equal(await run(await load(project.path), 'own'), ['string', 'string']);
});

bundles('playwright-core works in a bundle', async () => {
  await using project = directory({
    'index.ts': `
      import { chromium } from 'npm:playwright-core@1.65.1';
      import { defineFn } from 'tabern';
      defineFn('name', async () => chromium.name());`,
  });
  await mkdir(join(project.path, 'node_modules'));
  const target = join(project.path, 'node_modules/playwright-core');
  await cp(join(PACKAGES, 'playwright-core'), target, { recursive: true });
  assert.is(await run(await load(project.path), 'name'), 'chromium');
  const { size } = await make(project.path);
  assert.ok(size < 8 * 1024 * 1024, `${size} bytes: dependencies are in the source map again`);
});

bundles('functions inside page.evaluate contain no helper of the bundler', async () => {
  await using project = directory({
    'index.ts': `
      import { defineFn } from 'tabern';
      defineFn('sent', async () => String(() => {
        const named = () => 1; function f() {} return [named, f];
      }));`,
  });
  assert.not.match(String(await run(await load(project.path), 'sent')), '__name');
});

bundles('schemas of zod and zod/mini become manifests', async () => {
  await using project = directory({
    'index.ts': `
      import * as z from 'zod/mini';
      import { defineFn } from 'tabern';
      defineFn('strict', async () => 1, { parametersSchema: z.object({ url: z.string() }) });`,
  });
  await mkdir(join(project.path, 'node_modules'));
  await cp(join(PACKAGES, 'zod'), join(project.path, 'node_modules/zod'), { recursive: true });
  const manifest = must((await load(project.path)).manifests()[0], 'manifest');
  assert.equal((manifest.parametersSchema as { required: unknown }).required, ['url']);
});

bundles('the source map contains the sources and no path of this machine', async () => {
  await using project = directory({
    'index.ts': `import { defineFn } from 'tabern'; defineFn('mapped', async () => 'grüße');`,
  });
  const { sha256, size } = await make(project.path);
  const text = await readFile(join(project.path, 'out.mjs'), 'utf8');
  assert.is(Buffer.byteLength(text), size);
  assert.match(sha256, /^[0-9a-f]{64}$/);
  const encoded = text.slice(text.lastIndexOf('base64,') + 'base64,'.length);
  const map = JSON.parse(Buffer.from(encoded, 'base64').toString());
  assert.ok(map.sources.includes('index.ts'));
  assert.match(map.sourcesContent.join(), 'grüße');
  assert.not.match(text + map.sources.join(), project.path);
  assert.not.match(text + map.sources.join(), import.meta.dirname);
});

bundles('the same sources result in the same bundle', async () => {
  const files = { 'index.ts': `import { defineFn } from 'tabern'; defineFn('x', () => 1);` };
  await using one = directory(files);
  await using two = directory(files);
  assert.is((await make(one.path)).sha256, (await make(two.path)).sha256);
});

bundles.run();
