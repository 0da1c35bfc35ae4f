/** Bundles: what they export and carry, and what may not get into one. Each is really imported. */
import { cp, mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../proto/must.ts';
import { type Bundle, BundleError, bundle } from '../../runner/bundle.ts';
import type { Definition, Manifest } from '../../runner/sdk/types.ts';
import { directory } from '../support/project.ts';

const bundles = suite('runner/bundle');

type Loaded = {
  definitions(): ReadonlyMap<string, Definition>;
  manifests(): Manifest[];
};

const PACKAGES = join(import.meta.dirname, '../../node_modules');

function make(root: string, entrypoint = 'index.ts'): Promise<Bundle> {
  const outFile = join(root, 'out.mjs');
  return bundle({ root, entrypoint, outFile, signal: AbortSignal.timeout(30_000) });
}

async function load(root: string, entrypoint?: string): Promise<Loaded> {
  await make(root, entrypoint);
  return import(pathToFileURL(join(root, 'out.mjs')).href);
}

async function refusalOf(files: Record<string, string>): Promise<string> {
  await using project = directory(files);
  return await refusal(project.path);
}

async function refusal(root: string): Promise<string> {
  try {
    await make(root);
  } catch (error) {
    assert.instance(error, BundleError);
    const { message } = error as BundleError;
    assert.not.match(message, root);
    return message;
  }
  throw new Error('it was bundled');
}

function run(loaded: Loaded, name: string): Promise<unknown> {
  const { handler } = must(loaded.definitions().get(name), 'definition');
  return (handler as (context: object, params: object) => Promise<unknown>)({}, {});
}

bundles('an entry and a file it imports define functions, in TypeScript', async () => {
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

bundles('the published SDK is replaced by ours and need not be installed', async () => {
  await using project = directory({
    'index.ts': `
      import { defineFn } from '@browserbasehq/sdk-functions';
      import { defineFn as ours } from 'npm:tabern';
      defineFn('theirs', async () => ours === defineFn);`,
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

bundles('a CommonJS dependency finds require, its file and its directory', async () => {
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

bundles('playwright-core works out of a bundle', async () => {
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

bundles('functions inside page.evaluate carry no helper of the bundler', async () => {
  await using project = directory({
    'index.ts': `
      import { defineFn } from 'tabern';
      defineFn('sent', async () => String(() => { const named = () => 1; function f() {} return [named, f]; }));`,
  });
  assert.not.match(String(await run(await load(project.path), 'sent')), '__name');
});

bundles('zod schemas become manifests, of mini too', async () => {
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

bundles('the source map carries the sources and no path of this machine', async () => {
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

bundles('the same sources give the same bundle', async () => {
  const files = { 'index.ts': `import { defineFn } from 'tabern'; defineFn('x', () => 1);` };
  await using one = directory(files);
  await using two = directory(files);
  assert.is((await make(one.path)).sha256, (await make(two.path)).sha256);
});

bundles('a syntax error names its file and line', async () => {
  const text = await refusalOf({
    'index.ts': `import './src/bad.ts';`,
    'src/bad.ts': 'let a = 1;\nlet = ;',
  });
  assert.match(text, /^src\/bad\.ts:2: /);
});

bundles('a missing package names who wants it', async () => {
  const text = await refusalOf({ 'index.ts': `import 'not-there-at-all';` });
  assert.match(text, 'index.ts:1: Could not resolve "not-there-at-all"');
});

for (const [what, source, problem] of [
  [
    'https: imports',
    `import 'https://example.com/x.js';`,
    /index\.ts:1: https: imports are refused/,
  ],
  ['jsr: imports', `import 'jsr:@std/path';`, /jsr: imports are not supported/],
  ['native addons', `require('./addon.node');`, /native addons cannot run here: \.\/addon\.node/],
  [
    'an absolute path',
    `import x from '/etc/passwd'; console.log(x)`,
    /index\.ts:1: the import leads/,
  ],
  ['a file URL', `import x from 'file:///etc/passwd'; console.log(x)`, /index\.ts:1: /],
  ['a path that climbs', `import '../../../../../../etc/passwd';`, /index\.ts:1: the import leads/],
  ['an absolute require', `require('/etc/hostname');`, /index\.ts:1: the import leads/],
] as const) {
  bundles(`${what}: refused`, async () => {
    const text = await refusalOf({ 'index.ts': source, 'addon.node': 'x' });
    assert.match(text, problem);
    assert.not.match(text, /root:/);
  });
}

bundles('a link that leads out of the project is refused', async () => {
  await using secret = directory({ 'secret.ts': `export const secret = 'host';` });
  await using project = directory({
    'index.ts': `import { secret } from './inner.ts'; console.log(secret)`,
  });
  await symlink(join(secret.path, 'secret.ts'), join(project.path, 'inner.ts'));
  assert.match(await refusal(project.path), /index\.ts:1: the import leads outside the project/);
});

bundles('a package of a directory above the project is not there', async () => {
  await using outer = directory({
    'node_modules/above/index.js': 'exports.x = 1',
    'project/index.ts': `import 'above';`,
  });
  const text = await refusal(join(outer.path, 'project'));
  assert.match(text, 'index.ts:1: the package "above" is not installed in the project');
});

bundles('a tsconfig.json that extends a file of the host tells nothing of it', async () => {
  await using host = directory({ 'secrets.json': 'root:x:0:0' });
  await using project = directory({
    'index.ts': 'let = ;',
    'tsconfig.json': JSON.stringify({ extends: join(host.path, 'secrets.json') }),
  });
  const text = await refusal(project.path);
  assert.not.match(text, 'root');
  assert.not.match(text, host.path);
});

bundles('a settings file above the project has no say', async () => {
  await using outer = directory({
    'tsconfig.json': '{"compilerOptions": {"paths": {"there": ["./project/there.ts"]}}}',
    'project/there.ts': 'export {}',
    'project/index.ts': `import 'there';`,
  });
  assert.match(await refusal(join(outer.path, 'project')), 'Could not resolve "there"');
});

bundles('an aborted bundle rejects with the reason of its end', async () => {
  await using project = directory({ 'index.ts': 'export {}' });
  const reason = new Error('time is over');
  const outFile = join(project.path, 'out.mjs');
  const signal = AbortSignal.abort(reason);
  const got = await bundle({ root: project.path, entrypoint: 'index.ts', outFile, signal }).catch(
    (error: unknown) => error,
  );
  assert.is(got, reason);
});

bundles.run();
